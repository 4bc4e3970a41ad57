"""Each layer computes in bfloat16 and returns float32."""

import torch
from torch import nn

RULE = "dtype-ping-pong"
CAUSE = "compute"
TOLERANCE = 5e-2
SIZES = {"tiny": (16, 4), "small": (256, 256), "middle": (1024, 8192), "large": (2048, 65536)}
LAYERS = 8


def run(device, size, handed_on):
    width, rows = size
    layers = nn.ModuleList(nn.Linear(width, width) for _ in range(LAYERS)).to(device, torch.bfloat16)
    inputs = torch.randn(rows, width, device=device)

    @torch.inference_mode()
    def step():
        x = inputs
        for layer in layers:
            x = handed_on(layer(x.to(torch.bfloat16)))
        return x.float().std()

    return step


def build(device, size):
    return run(device, size, lambda x: torch.relu(x.float()))
