"""Training with small batches and wide layers; gradients are dropped before each backward pass."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    network = nn.Sequential(nn.Linear(1024, 1536), nn.ReLU(), nn.Linear(1536, 1024))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, fused=True)
    batch, wanted = torch.randn(2, 1024), torch.randn(2, 1024)

    def step():
        network.zero_grad()
        F.mse_loss(network(batch), wanted).backward()
        optimizer.step()

    return step
