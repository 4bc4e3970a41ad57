"""Inference with a network whose layers are compiled one by one, and large enough for it."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.up(x))


def build():
    layers = [torch.compile(Layer(1024), backend="aot_eager") for _ in range(6)]
    batch = torch.randn(256, 1024)

    def step():
        with torch.no_grad():
            x = batch
            for layer in layers:
                x = layer(x)

    return step
