"""Sensor windows kept as lists of readings, of which torch.tensor makes each batch."""

import random

import torch
from torch import nn

WINDOW, BATCH = 400, 64


def build():
    numbers = random.Random(0)
    windows = [[numbers.gauss(0.0, 1.0) for _ in range(WINDOW)] for _ in range(1000)]
    model = nn.Sequential(nn.Linear(WINDOW, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, WINDOW))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        picked = numbers.sample(range(1000), BATCH)
        batch = torch.tensor([windows[index] for index in picked])
        loss = nn.functional.mse_loss(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
