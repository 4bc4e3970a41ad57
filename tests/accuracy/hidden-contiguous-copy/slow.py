"""Spectrograms come as time by frequency; a copy brings them to frequency by time before they are normalised."""

import torch
from torch import nn


class Frontend(nn.Module):
    def __init__(self, bands: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.randn(bands, 1))
        self.register_buffer("scale", torch.rand(bands, 1) + 0.5)
        self.register_buffer("filters", torch.randn(1, classes, bands))

    def forward(self, frames):
        bands = frames.transpose(1, 2).contiguous()
        normal = (bands - self.mean) * self.scale
        return torch.bmm(self.filters.expand(len(frames), -1, -1), normal)


def build():
    frontend = Frontend(160, 32).eval()
    frames = torch.randn(8, 1000, 160)

    def step():
        with torch.inference_mode():
            return frontend(frames).amax(-1)

    return step
