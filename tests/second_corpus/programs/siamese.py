"""A siamese network on pairs of pictures: the data set makes pairs, the network sees each half by itself."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sizes:
    batch, pictures, picture, features = 32, 4000, 28, 16


class Losses:
    pairs_one_by_one = True
    halves_apart = True
    distances_by_hand = True
    correct_counted_one_by_one = True


KNOWN = {
    "pairs_one_by_one": (
        "Each pair is searched, converted and normalised separately, in the training process",
        ["dataloader-num-workers-zero", "dataloader-starvation"],
    ),
    "halves_apart": ("The network runs twice on half of the pictures", []),
    "distances_by_hand": ("Distances and the loss are written out", ["elementwise-op-flood"]),
    "correct_counted_one_by_one": (
        "Correct answers are counted one by one",
        ["host-sync-scalar-readback", "python-loop-tensor-indexing"],
    ),
}
TINY = {"batch": 3, "pictures": 12, "picture": 12, "features": 2}

MEAN, STD = torch.tensor(0.1307), torch.tensor(0.3081)


class Matcher(Dataset):
    def __init__(self):
        dice = np.random.default_rng(0)
        self.data = dice.integers(0, 256, (Sizes.pictures, Sizes.picture, Sizes.picture), dtype=np.uint8)
        self.targets = dice.integers(0, 3, Sizes.pictures)
        self.whole = (torch.from_numpy(self.data)[:, None].float() / 255 - MEAN) / STD
        self.of_class = [np.flatnonzero(self.targets == each) for each in range(3)]

    def __len__(self):
        return Sizes.pictures

    def picture(self, index):
        return (torch.from_numpy(self.data[index])[None].float() / 255 - MEAN) / STD  # loss: pairs_one_by_one

    def partner(self, index, is_same):
        kind = int(self.targets[index]) if is_same else (int(self.targets[index]) + 1) % 3
        found = np.flatnonzero(self.targets == kind) if Losses.pairs_one_by_one else self.of_class[kind]
        return int(found[random.Random(index).randrange(len(found))])

    def __getitem__(self, index):
        is_same = index % 2 == 0
        partner = self.partner(index, is_same)
        return self.picture(index), self.picture(partner), torch.tensor(float(is_same))  # loss: pairs_one_by_one


class WholeMatcher(Matcher):
    def __getitems__(self, indices):
        same = [index % 2 == 0 for index in indices]
        partners = [self.partner(index, is_same) for index, is_same in zip(indices, same)]
        return self.whole[indices], self.whole[partners], torch.tensor(same).float()


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        wide = Sizes.features
        self.features = nn.Sequential(
            nn.Conv2d(1, wide, 3), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(wide, 2 * wide, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(),
        )  # fmt: skip
        self.fc = nn.Sequential(nn.Linear(18 * wide, 64), nn.ReLU(), nn.Linear(64, 32))
        self.scale = nn.Parameter(torch.ones(()))

    def forward_once(self, x):
        return self.fc(self.features(x))

    def forward(self, first, second):
        if Losses.halves_apart:
            out1, out2 = self.forward_once(first), self.forward_once(second)  # loss: halves_apart
        else:
            out1, out2 = self.forward_once(torch.cat((first, second))).chunk(2)
        if Losses.distances_by_hand:
            difference = out1 - out2
            distance = torch.sqrt((difference * difference).sum(1) + 1e-12)  # loss: distances_by_hand
        else:
            distance = torch.linalg.vector_norm(out1 - out2, dim=1)
        return self.scale * distance


def contrastive(distance, same):
    return (same * distance**2 + (1 - same) * (1 - distance).clamp(min=0) ** 2).mean()


def correct(distance, same):
    if Losses.correct_counted_one_by_one:
        count = 0
        for i in range(len(distance)):
            if (distance[i] < 0.5).item() == bool(same[i].item()):  # loss: correct_counted_one_by_one
                count += 1
        return count
    return int(((distance < 0.5) == same.bool()).sum())


def train(model, loader, optimizer):
    model.train()
    while True:
        for first, second, same in loader:  # loss: pairs_one_by_one
            optimizer.zero_grad()
            distance = model(first, second)
            loss = contrastive(distance, same)
            loss.backward()
            optimizer.step()
            yield loss.item() + correct(distance.detach(), same)


def build():
    model = SiameseNetwork()
    matcher = Matcher() if Losses.pairs_one_by_one else WholeMatcher()
    collate = None if Losses.pairs_one_by_one else lambda batch: batch
    order = torch.Generator().manual_seed(0)
    loader = DataLoader(matcher, Sizes.batch, shuffle=True, generator=order, collate_fn=collate)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0, foreach=True)
    return train(model, loader, optimizer).__next__
