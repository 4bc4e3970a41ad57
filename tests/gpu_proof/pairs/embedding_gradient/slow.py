"""A few words of a large vocabulary produce a dense gradient of the whole table."""

import torch
from torch import nn

RULE = ""
CAUSE = "compute"
TOLERANCE = 1e-3
SIZES = {"tiny": (32, 4, 8), "small": (4096, 64, 64), "middle": (262144, 256, 1024), "large": (2000000, 256, 4096)}


def training(device, size, *, sparse):
    words, width, batch = size
    table = nn.Embedding(words, width, sparse=sparse, device=device)
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
    chosen = torch.randint(words, (batch,)).to(device)

    def step():
        optimizer.zero_grad()
        loss = table(chosen).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def build(device, size):
    return training(device, size, sparse=False)
