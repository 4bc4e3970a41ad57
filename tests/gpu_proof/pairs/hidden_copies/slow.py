"""Transposed activations are copied before each normalisation."""

import torch
from torch.nn import functional

RULE = "hidden-contiguous-copy"
CAUSE = "compute"
SIZES = {"tiny": (4, 8), "small": (64, 64), "middle": (512, 1024), "large": (1024, 8192)}
LAYERS = 8


def run(device, size, layout):
    channels, length = size
    inputs = layout(torch.randn(4, channels, length, device=device).transpose(1, 2))

    @torch.inference_mode()
    def step():
        total = torch.zeros((), device=device)
        for _ in range(LAYERS):
            total += functional.layer_norm(inputs.contiguous(), (channels,)).abs().mean()
        return total

    return step


def build(device, size):
    return run(device, size, lambda x: x)
