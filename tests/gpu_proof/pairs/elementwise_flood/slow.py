"""Mish is written out between the convolutions of a detector's neck."""

import torch
from torch import nn

RULE = "elementwise-op-flood"
CAUSE = "compute"
SIZES = {"tiny": (4, 8), "small": (32, 16), "middle": (64, 128), "large": (128, 256)}
LAYERS = 4


class Mish(nn.Module):
    def forward(self, x):
        softplus = torch.log1p(torch.exp(-torch.abs(x))) + torch.clamp(x, min=0)
        return x * torch.tanh(softplus)


def training(device, size, activation):
    channels, side = size
    layers = [layer for _ in range(LAYERS) for layer in (nn.Conv2d(channels, channels, 3, padding=1), activation)]
    model, images = nn.Sequential(*layers).to(device), torch.randn(8, channels, side, side, device=device)

    def step():
        model.zero_grad()
        loss = model(images).square().mean()
        loss.backward()
        return loss.detach()

    return step


def build(device, size):
    return training(device, size, Mish())
