"""A recommendation model in the manner of DLRM: many tables of embeddings, pairs of features, clicks."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Sizes:
    batch, tables, rows, width, per_bag, dense = 256, 10, 20_000, 16, 4, 13


class Losses:
    dense_gradients = True
    pair_by_pair = True
    indices_from_lists = True
    update_by_hand = True


KNOWN = {
    "dense_gradients": ("Tables have gradients for all rows, although a batch uses few", ["embedding-gradient-dense"]),
    "pair_by_pair": (
        "The product of each pair of features is computed separately",
        ["python-loop-tensor-indexing", "elementwise-op-flood"],
    ),
    "indices_from_lists": (
        "Indices are Python lists, converted to tensors number by number",
        ["tensor-from-python-data"],
    ),
    "update_by_hand": ("The towers' weights are updated one by one, by hand", ["optimizer-single-tensor"]),
}
TINY = {"batch": 3, "tables": 3, "rows": 20, "width": 4, "per_bag": 2, "dense": 4}


def create_mlp(sizes):
    layers = []
    for n, m in zip(sizes, sizes[1:]):
        layers += [nn.Linear(n, m), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class DLRMNet(nn.Module):
    def __init__(self):
        super().__init__()
        sparse = not Losses.dense_gradients
        tables = [nn.EmbeddingBag(Sizes.rows, Sizes.width, mode="sum", sparse=sparse) for _ in range(Sizes.tables)]
        self.emb_l = nn.ModuleList(tables)
        self.bot_l = create_mlp([Sizes.dense, 64, Sizes.width])
        pairs = (Sizes.tables + 1) * Sizes.tables // 2
        self.top_l = create_mlp([pairs + Sizes.width, 64, 1])
        self.pairs = torch.triu_indices(Sizes.tables + 1, Sizes.tables + 1, offset=1)

    def interact_features(self, x, ly):
        if Losses.pair_by_pair:
            features = [x, *ly]
            products = [
                (features[i] * features[j]).sum(1)  # loss: pair_by_pair
                for i in range(len(features))
                for j in range(i + 1, len(features))
            ]
            return torch.cat([x, torch.stack(products, dim=1)], dim=1)
        features = torch.stack([x, *ly], dim=1)
        products = torch.bmm(features, features.transpose(1, 2))
        return torch.cat([x, products[:, self.pairs[0], self.pairs[1]]], dim=1)

    def forward(self, dense_x, offsets, indices):
        x = self.bot_l(dense_x)
        ly = [table(each, offsets) for table, each in zip(self.emb_l, indices)]  # loss: dense_gradients
        return self.top_l(self.interact_features(x, ly)).squeeze(1)


def collate(indices):
    if Losses.indices_from_lists:
        return [torch.tensor(each) for each in indices]  # loss: indices_from_lists
    return list(torch.from_numpy(np.array(indices)))


def build():
    dice = np.random.default_rng(0)
    shape = (4, Sizes.tables, Sizes.batch * Sizes.per_bag)
    raw = dice.integers(0, Sizes.rows, shape)
    batches = raw.tolist() if Losses.indices_from_lists else raw
    offsets = torch.arange(0, Sizes.batch * Sizes.per_bag, Sizes.per_bag)
    dense, clicks = torch.rand(4, Sizes.batch, Sizes.dense), torch.randint(2, (4, Sizes.batch)).float()
    model = DLRMNet()
    towers = [*model.bot_l.parameters(), *model.top_l.parameters()]
    of_tables = torch.optim.SGD(model.emb_l.parameters(), lr=0.1)
    of_towers = torch.optim.SGD(towers, lr=0.1, fused=True)

    def update():
        of_tables.step()  # loss: dense_gradients
        if Losses.update_by_hand:
            for weight in towers:
                weight.data.add_(weight.grad.data, alpha=-0.1)  # loss: update_by_hand
        else:
            of_towers.step()

    def iteration():
        for at in range(4):
            loss = F.binary_cross_entropy_with_logits(model(dense[at], offsets, collate(batches[at])), clicks[at])
            model.zero_grad()
            loss.backward()
            update()
            yield loss.item()

    def forever():
        while True:
            yield from iteration()

    return forever().__next__
