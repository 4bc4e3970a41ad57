"""Each step empties the allocator's cache."""

import torch

from tests.gpu_proof.parts import perceptron, training

RULE = ""
CAUSE = "allocation"
CPU = "torch does not cache CPU memory: there is nothing to empty"
SIZES = {"tiny": (8, 4), "small": (256, 64), "middle": (2048, 2048), "large": (8192, 8192)}


def trained(device, size):
    width, rows = size
    return training(perceptron(width, 3, device), torch.randn(rows, width, device=device))


def build(device, size):
    train = trained(device, size)

    def step():
        loss = train()
        torch.cuda.empty_cache()
        return loss

    return step
