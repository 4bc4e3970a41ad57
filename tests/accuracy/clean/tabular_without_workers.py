"""Rows of a table in memory: a loader without workers, which fetches a whole batch by one index."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler


class Table(Dataset):
    def __init__(self, rows: int) -> None:
        self.numbers, self.kinds = torch.randn(rows, 20), torch.randint(50, (rows, 6))
        self.prices = torch.rand(rows)

    def __len__(self) -> int:
        return len(self.prices)

    def __getitem__(self, rows):
        return self.numbers[rows], self.kinds[rows], self.prices[rows]


class Batches(Sampler):
    """Rows of each batch as one tensor, in a new order each epoch."""

    def __init__(self, rows: int, size: int) -> None:
        self.rows, self.size = rows, size

    def __len__(self) -> int:
        return math.ceil(self.rows / self.size)

    def __iter__(self):
        yield from torch.randperm(self.rows).split(self.size)


class Regression(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.Embedding(6 * 50, 12)
        self.body = nn.Sequential(
            nn.Linear(20 + 6 * 12, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
        )
        self.register_buffer("offsets", torch.arange(6) * 50)

    def forward(self, numbers, kinds):
        return self.body(torch.cat([numbers, self.kinds(kinds + self.offsets).flatten(1)], dim=1)).squeeze(1)


def build():
    table = Table(100_000)
    loader = DataLoader(table, sampler=Batches(len(table), 1024), batch_size=None)
    model = Regression()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    batches = iter(loader)

    def step() -> None:
        numbers, kinds, prices = next(batches)
        optimizer.zero_grad()
        F.huber_loss(model(numbers, kinds), prices).backward()
        optimizer.step()

    return step
