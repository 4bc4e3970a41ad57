"""Sampling sorts the whole vocabulary to keep fifty words."""

import torch

RULE = ""
CAUSE = "compute"
SIZES = {"tiny": (2, 128), "small": (4, 4096), "middle": (64, 50304), "large": (512, 128256)}
KEPT = 50


def sampling(device, size, best):
    logits = torch.randn(size, device=device)

    @torch.inference_mode()
    def step():
        return best(logits).softmax(-1)

    return step


def build(device, size):
    return sampling(device, size, lambda logits: logits.sort(descending=True).values[:, :KEPT])
