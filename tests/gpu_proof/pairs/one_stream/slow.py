"""Each batch is copied on the compute stream."""

import torch

from tests.gpu_proof.parts import perceptron, pinned

RULE = ""
CAUSE = "copy"
CPU = "a CPU has no streams: both programs do the same"
SIZES = {"tiny": (8, 4), "small": (256, 256), "middle": (2048, 8192), "large": (4096, 32768)}
BATCHES = 4


def parts(device, size):
    width, rows = size
    return perceptron(width, 2, device), [pinned(torch.randn(rows, width), device) for _ in range(BATCHES)]


def build(device, size):
    model, batches = parts(device, size)

    @torch.inference_mode()
    def step():
        return torch.stack([model(batch.to(device, non_blocking=True)).mean() for batch in batches])

    return step
