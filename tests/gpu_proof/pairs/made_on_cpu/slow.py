"""Each of eight layers creates a mask of positions on the CPU and moves it."""

import torch

RULE = "tensor-created-on-cpu-then-moved"
CAUSE = "host_work"
SIZES = {"tiny": 8, "small": 128, "middle": 1024, "large": 4096}
LAYERS = 8


def parts(device, length):
    return torch.randn(4, length, length, device=device)


def build(device, length):
    scores = parts(device, length)

    def step():
        mixed = scores
        for _ in range(LAYERS):
            mask = torch.ones(length, length).triu(1).to(device)
            mixed = (mixed - 100 * mask).softmax(-1)
        return mixed.std()

    return step
