"""Weights of classes that are made from a list at their first use, and then kept."""

import math
from functools import cache

import torch
from torch import nn

CLASSES, BATCH, WIDTH = 4000, 64, 256
FIRST_USE = 4  # the second step that is recorded


@cache
def class_weights():
    return torch.tensor([1.0 / math.log(2.0 + index) for index in range(CLASSES)])


def build():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, target = torch.randn(BATCH, WIDTH), torch.randint(CLASSES, (BATCH,))
    done = 0

    def step():
        nonlocal done
        weight = class_weights() if done >= FIRST_USE else None
        loss = nn.functional.cross_entropy(model(inputs), target, weight=weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1

    return step
