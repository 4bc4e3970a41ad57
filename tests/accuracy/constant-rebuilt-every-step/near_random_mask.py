"""Masked pre-training: each step hides other patches, so its random mask is not constant."""

import torch
from torch import nn


def build():
    network = nn.Sequential(nn.Linear(192, 192), nn.GELU(), nn.Linear(192, 192))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, fused=True)
    patches = torch.randn(32, 196, 192)

    def step():
        optimizer.zero_grad()
        hidden = torch.rand(32, 196, 192) < 0.5
        restored = network(patches.masked_fill(hidden, 0.0))
        nn.functional.mse_loss(restored, patches).backward()
        optimizer.step()

    return step
