"""Batches are copied to the device from ordinary memory."""

import torch

from tests.gpu_proof.parts import perceptron

RULE = "pageable-h2d-copy"
CAUSE = "copy"
SIZES = {"tiny": (16, 4), "small": (1024, 256), "middle": (2048, 4096), "large": (2048, 32768)}


def parts(device, size):
    width, rows = size
    return perceptron(width, 2, device), torch.randn(rows, width)


def build(device, size):
    model, batch = parts(device, size)

    def step():
        loss = model(batch.to(device)).square().mean()
        loss.backward()
        return loss.detach()

    return step
