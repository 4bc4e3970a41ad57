"""Gradients accumulate over sixteen small micro-batches."""

import torch

from tests.gpu_proof.parts import perceptron

RULE = "gpu-idle-host-bound"
CAUSE = "launch_pace"
TOLERANCE = 1e-3
SIZES = {"tiny": (8, 16), "small": (256, 256), "middle": (1024, 2048), "large": (4096, 8192)}


def training(device, size, pieces):
    width, rows = size
    model, inputs = perceptron(width, 8, device), torch.randn(rows, width, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        total = torch.zeros((), device=device)
        for batch in inputs.chunk(pieces):
            loss = (model(batch) - 1).square().mean() / pieces
            loss.backward()
            total += loss.detach()
        optimizer.step()
        return total

    return step


def build(device, size):
    return training(device, size, 16)
