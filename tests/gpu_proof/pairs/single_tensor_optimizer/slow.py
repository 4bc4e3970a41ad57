"""AdamW updates the many parameters of a deep model one at a time."""

import torch

from tests.gpu_proof.parts import perceptron

RULE = "optimizer-single-tensor"
CAUSE = "launch_pace"
SIZES = {"tiny": (8, 4), "small": (128, 64), "middle": (1024, 48), "large": (4096, 24)}


def model_and_inputs(device, size):
    width, depth = size
    return perceptron(width, depth, device), torch.randn(64, width, device=device)


def training(model, inputs, **how):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **how)

    def step():
        optimizer.zero_grad()
        loss = (model(inputs) - 1).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def build(device, size):
    return training(*model_and_inputs(device, size), foreach=False, fused=False)
