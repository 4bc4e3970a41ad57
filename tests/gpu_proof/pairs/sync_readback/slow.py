"""Training reads the loss of each micro-batch."""

import torch

from tests.gpu_proof.parts import perceptron

RULE = "host-sync-scalar-readback"
CAUSE = "synchronisation"
SIZES = {"tiny": (16, 4), "small": (256, 64), "middle": (1024, 1024), "large": (4096, 4096)}
MICRO_BATCHES = 8


def parts(device, size):
    width, batch = size
    model = perceptron(width, 4, device)
    return model, torch.randn(MICRO_BATCHES, batch, width, device=device)


def build(device, size):
    model, batches = parts(device, size)

    def step():
        total = 0.0
        model.zero_grad()
        for batch in batches:
            loss = model(batch).square().mean()
            loss.backward()
            total += loss.item()
        return torch.tensor(total)

    return step
