"""Residual blocks, a learned gate, and a loss of a few terms: elementwise work, but never eight operators in a row."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.outer, self.gate = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.inner(x))
        gated = self.outer(hidden) * torch.sigmoid(self.gate(x))
        return x + self.scale * gated


def build() -> Callable[[], None]:
    model = nn.Sequential(Block(256), Block(256), Block(256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    x, target, weight = torch.randn(256, 256), torch.randn(256, 256), torch.rand(256, 1)

    def step() -> None:
        optimizer.zero_grad()
        loss = (weight * (model(x) - target).abs()).mean()
        loss.backward()
        optimizer.step()

    return step
