"""A branch on a tensor's value breaks the compiled model in each layer."""

import torch
from torch import nn

from tests.gpu_proof.parts import compiled

RULE = "torch-compile-graph-break"
CAUSE = "synchronisation"
TOLERANCE = 1e-3
SIZES = {"tiny": (8, 4), "small": (256, 64), "middle": (1024, 2048), "large": (4096, 8192)}
LAYERS = 4


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        x = self.linear(x)
        return x.clamp(-1, 1) if x.abs().max() > 1 else x


def run(device, size, layer):
    width, rows = size
    model = nn.Sequential(*(layer(width) for _ in range(LAYERS))).to(device)
    inputs, function = torch.randn(rows, width, device=device), compiled(model, device)

    @torch.no_grad()
    def step():
        return function(inputs).std()

    return step


def build(device, size):
    return run(device, size, Layer)
