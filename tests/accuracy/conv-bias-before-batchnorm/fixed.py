"""Head of a segmenter: pointwise convolutions without a bias, each before a batch norm."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional


def block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


def build() -> Callable[[], None]:
    head = nn.Sequential(block(4, 32), block(32, 8), block(8, 32), nn.Conv2d(32, 3, 1))
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01, fused=True)
    features, label = torch.randn(8, 4, 48, 48), torch.randint(3, (8, 48, 48))

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(head(features), label).backward()
        optimizer.step()

    return step
