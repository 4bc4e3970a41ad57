"""A batch that torch.tensor copies from one array, and its labels from a short list."""

import random

import numpy as np
import torch
from torch import nn

WINDOW, BATCH = 400, 64


def build():
    numbers = random.Random(0)
    windows = np.array([[numbers.gauss(0.0, 1.0) for _ in range(WINDOW)] for _ in range(1000)], dtype=np.float32)
    labels = [numbers.randrange(8) for _ in range(1000)]
    model = nn.Sequential(nn.Linear(WINDOW, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        picked = numbers.sample(range(1000), BATCH)
        batch = torch.tensor(windows[picked])
        target = torch.tensor([labels[index] for index in picked])
        loss = nn.functional.cross_entropy(model(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
