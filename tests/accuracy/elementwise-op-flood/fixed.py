"""Detector neck with Mish as one operator."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional


class Neck(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(16, 32, 3, padding=1)
        self.second = nn.Conv2d(32, 32, 3, padding=1)
        self.boxes = nn.Conv2d(32, 8, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.boxes(functional.mish(self.second(functional.mish(self.first(features)))))


def build() -> Callable[[], None]:
    neck = Neck()
    optimizer = torch.optim.SGD(neck.parameters(), lr=0.01, fused=True)
    features, target = torch.randn(4, 16, 48, 48), torch.randn(4, 8, 48, 48)

    def step() -> None:
        optimizer.zero_grad()
        functional.smooth_l1_loss(neck(features), target).backward()
        optimizer.step()

    return step
