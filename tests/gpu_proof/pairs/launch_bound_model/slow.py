"""A deep and narrow model takes longer to launch than to run."""

import torch

from tests.gpu_proof.parts import perceptron

RULE = "gpu-idle-host-bound"
CAUSE = "launch_pace"
CPU = "a CPU has no graphs: both programs launch the same operators"
SIZES = {"tiny": (8, 4, 4), "small": (64, 128, 64), "middle": (512, 96, 512), "large": (4096, 64, 2048)}


def inference(device, size):
    width, depth, rows = size
    model, inputs = perceptron(width, depth, device), torch.randn(rows, width, device=device)

    @torch.no_grad()
    def run():
        return model(inputs).std()

    return run


def build(device, size):
    return inference(device, size)
