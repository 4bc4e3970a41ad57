"""The host waits for each of many copies from pinned memory."""

import torch

from tests.gpu_proof.parts import perceptron, pinned

RULE = ""
CAUSE = "synchronisation"
SIZES = {"tiny": (16, 4), "small": (512, 64), "middle": (1024, 1024), "large": (2048, 8192)}
COPIES = 16


def parts(device, size):
    width, rows = size
    return perceptron(width, 2, device), [pinned(torch.randn(rows, width), device) for _ in range(COPIES)]


def build(device, size):
    model, batches = parts(device, size)

    @torch.inference_mode()
    def step():
        return torch.stack([model(batch.to(device)).mean() for batch in batches])

    return step
