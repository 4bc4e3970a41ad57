"""A mask of positions is made on the CPU and moved, in each of eight layers."""

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
