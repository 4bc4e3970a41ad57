"""Convolutions train in full float32."""

import contextlib

import torch
from torch.nn import functional

from tests.gpu_proof.parts import convolutions

RULE = "fp32-on-ordinary-cores"
CAUSE = "compute"
TOLERANCE = 3e-2
SIZES = {"tiny": (4, 8), "small": (16, 32), "middle": (64, 112), "large": (128, 224)}


def trained(device, size, mode):
    channels, side = size
    torch.backends.cudnn.allow_tf32 = False
    model, images = convolutions(channels).to(device), torch.randn(16, 3, side, side, device=device)
    labels = torch.arange(16, device=device) % 10

    def step():
        model.zero_grad()
        with mode:
            loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        return loss.detach()

    return step


def build(device, size):
    return trained(device, size, contextlib.nullcontext())
