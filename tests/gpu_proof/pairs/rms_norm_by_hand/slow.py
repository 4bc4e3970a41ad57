"""RMSNorm is written out, in float32, before each layer."""

import torch
from torch import nn

from tests.gpu_proof.parts import Block, half, training

RULE = "decoder-pieces-written-out"
CAUSE = "compute"
TOLERANCE = 3e-2
SIZES = {"tiny": (64, 8), "small": (256, 128), "middle": (1024, 1024), "large": (4096, 2048)}
LAYERS = 4


class Written(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        variance = x.float().pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + 1e-6)).to(x.dtype)


def trained(device, size, norm):
    width, length = size
    with torch.device(device):
        model = nn.Sequential(*(Block(width, norm=norm) for _ in range(LAYERS)))
    return training(model.to(half(device)), torch.randn(2, length, width, device=device, dtype=half(device)))


def build(device, size):
    return trained(device, size, Written)
