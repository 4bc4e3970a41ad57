"""Inference with a network that is compiled as a whole."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.up(x))


def build():
    network = torch.compile(nn.Sequential(*[Layer(32) for _ in range(12)]), backend="aot_eager")
    batch = torch.randn(16, 32)

    def step():
        with torch.no_grad():
            network(batch)

    return step
