"""An average of the weights is kept: a short sequence of operators for each parameter, none of which uses another's."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

ALSO = {"moving-average-per-parameter": "one list operation averages all weights"}


def build() -> Callable[[], None]:
    model = nn.Sequential(*(module for _ in range(6) for module in (nn.Linear(192, 192), nn.ReLU())))
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    x, target = torch.randn(256, 192), torch.randn(256, 192)

    def step() -> None:
        optimizer.zero_grad()
        functional.mse_loss(model(x), target).backward()
        optimizer.step()
        with torch.no_grad():
            for kept, trained in zip(average.parameters(), model.parameters(), strict=True):
                kept.mul_(0.99).add_(trained, alpha=0.01)

    return step
