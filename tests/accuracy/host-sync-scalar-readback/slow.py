"""Inference that counts how sure a classifier is of each sample, reading one confidence after the other."""

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 32), nn.Softmax(dim=1)).eval()
    samples = torch.randn(4096, 128)
    counts = [0] * 11

    def step():
        with torch.inference_mode():
            confidence = model(samples).amax(dim=1)
        for value in confidence:
            counts[int(10 * value.item())] += 1

    return step
