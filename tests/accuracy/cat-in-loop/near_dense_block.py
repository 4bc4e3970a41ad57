"""A densely connected network: each layer reads what all layers before it made, so its input grows."""

import torch
from torch import nn


class DenseBlock(nn.Module):
    def __init__(self, channels: int, growth: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(channels + at * growth, growth, 3, padding=1) for at in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, torch.relu(layer(x))], dim=1)
        return x


def build():
    block = DenseBlock(16, 8, 8).eval()
    images = torch.randn(4, 16, 48, 48)

    def step():
        with torch.inference_mode():
            return block(images).mean((2, 3))

    return step
