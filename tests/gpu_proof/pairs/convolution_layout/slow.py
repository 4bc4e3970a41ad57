"""Half-precision convolutions train on images in NCHW layout."""

import torch
from torch.nn import functional

from tests.gpu_proof.parts import convolutions

RULE = "convolution-layout-converted"
CAUSE = "compute"
TOLERANCE = 3e-2
SIZES = {"tiny": (4, 8), "small": (32, 32), "middle": (64, 112), "large": (128, 224)}


def trained(device, size, layout):
    channels, side = size
    model = convolutions(channels).to(device).to(memory_format=layout)
    images = torch.randn(16, 3, side, side, device=device).to(memory_format=layout)
    labels = torch.arange(16, device=device) % 10

    def step():
        model.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        return loss.detach()

    return step


def build(device, size):
    return trained(device, size, torch.contiguous_format)
