"""Causal attention is two products and a softmax."""

import torch
from torch import nn

from tests.gpu_proof.parts import Attention, Block, half, training

RULE = "unfused-attention"
CAUSE = "compute"
TOLERANCE = 3e-2
SIZES = {"tiny": (64, 8), "small": (256, 128), "middle": (768, 1024), "large": (1024, 4096)}
LAYERS = 2


class Written(Attention):
    def mixed(self, query, key, value):
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        return scores.masked_fill(future, float("-inf")).softmax(-1) @ value


def trained(device, size, attention):
    width, length = size
    with torch.device(device):
        model = nn.Sequential(*(Block(width, attention(width)) for _ in range(LAYERS)))
    return training(model.to(half(device)), torch.randn(2, length, width, device=device, dtype=half(device)))


def build(device, size):
    return trained(device, size, Written)
