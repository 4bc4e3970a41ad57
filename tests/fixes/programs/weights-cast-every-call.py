"""Inference under autocast with weights in float32."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide, self.narrow = None, None
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


def build():
    model = nn.Sequential(*(Block(192) for _ in range(4))).eval()
    x = torch.randn(16, 192)

    def step():
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x).sum()

    return step
