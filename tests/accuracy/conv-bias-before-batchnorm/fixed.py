"""Shared layers of a network on point clouds: pointwise convolutions without a bias, each before a batch norm."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

CLOUDS, CHANNELS, GROUPS, POINTS, CLASSES = 15, 64, 4, 4, 10


def block() -> nn.Sequential:
    convolution = nn.Conv2d(CHANNELS, CHANNELS, 1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(CHANNELS), nn.ReLU())


def build() -> Callable[[], None]:
    layers = [block() for _ in range(16)]
    network = nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(CHANNELS, CLASSES))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    points, label = torch.randn(CLOUDS, CHANNELS, GROUPS, POINTS), torch.randint(CLASSES, (CLOUDS,))

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(network(points), label).backward()
        optimizer.step()

    return step
