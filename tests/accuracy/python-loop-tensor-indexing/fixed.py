"""Each sensor of a batch is calibrated by its own gain and offset, all at once, before a small network."""

import torch
from torch import nn


def calibrated(readings, gains, offsets):
    return readings * gains[:, None] + offsets[:, None]


def build():
    network = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 16)).eval()
    readings, gains, offsets = torch.randn(512, 128), torch.rand(512), torch.randn(512)

    def step():
        with torch.inference_mode():
            return network(calibrated(readings, gains, offsets)).softmax(-1)

    return step
