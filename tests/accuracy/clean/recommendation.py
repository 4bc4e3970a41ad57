"""A recommender: embedding bags of many features with sparse gradients, and a tower over them."""

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, ROWS, PER_BAG, WIDTH = 6, 20_000, 12, 32


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.EmbeddingBag(FEATURES * ROWS, WIDTH, mode="sum", sparse=True)
        self.dense = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, WIDTH), nn.ReLU())
        self.tower = nn.Sequential(nn.Linear((FEATURES + 1) * WIDTH, 128), nn.ReLU(), nn.Linear(128, 1))
        self.register_buffer("offsets", torch.arange(FEATURES).mul_(ROWS)[:, None])

    def forward(self, numbers, ids):
        batch = len(ids)
        flat = (ids + self.offsets).view(batch * FEATURES, PER_BAG)
        pooled = self.bags(flat).view(batch, FEATURES * WIDTH)
        return self.tower(torch.cat([self.dense(numbers), pooled], dim=1)).squeeze(1)


def build():
    numbers, ids = torch.randn(4096, 13), torch.randint(ROWS, (4096, FEATURES, PER_BAG))
    clicks = torch.randint(2, (4096,)).float()
    model = Recommender()
    sparse = torch.optim.SGD(model.bags.parameters(), lr=0.1)
    dense = torch.optim.Adam([*model.dense.parameters(), *model.tower.parameters()], lr=1e-3, fused=True)

    def step() -> None:
        chosen = torch.randint(len(numbers), (1024,))
        loss = F.binary_cross_entropy_with_logits(model(numbers[chosen], ids[chosen]), clicks[chosen])
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()

    return step
