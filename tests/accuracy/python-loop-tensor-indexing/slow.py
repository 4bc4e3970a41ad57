"""Each sensor of a batch is calibrated by its own gain and offset, one after the other, before a small network."""

import torch
from torch import nn


def calibrated(readings, gains, offsets):
    found = torch.empty_like(readings)
    for sensor in range(len(readings)):
        found[sensor] = readings[sensor] * gains[sensor] + offsets[sensor]
    return found


def build():
    network = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 16)).eval()
    readings, gains, offsets = torch.randn(512, 128), torch.rand(512), torch.randn(512)

    def step():
        with torch.inference_mode():
            return network(calibrated(readings, gains, offsets)).softmax(-1)

    return step
