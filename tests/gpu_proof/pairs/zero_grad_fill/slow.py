"""Gradients are filled with zeros and added to."""

import torch

from tests.gpu_proof.parts import perceptron

RULE = "zero-grad-memset"
CAUSE = "compute"
SIZES = {"tiny": (8, 2), "small": (128, 32), "middle": (2048, 24), "large": (8192, 8)}


def training(device, size, **how):
    width, depth = size
    model, inputs = perceptron(width, depth, device), torch.randn(32, width, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)

    def step():
        optimizer.zero_grad(**how)
        loss = (model(inputs) - 1).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def build(device, size):
    return training(device, size, set_to_none=False)
