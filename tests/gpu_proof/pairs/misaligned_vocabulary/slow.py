"""The head of a language model has an odd vocabulary size."""

import torch
from torch import nn
from torch.nn import functional

from tests.gpu_proof.parts import half

RULE = "tensor-core-shape-misaligned"
CAUSE = "compute"
TOLERANCE = 3e-2
SIZES = {"tiny": (16, 33, 4), "small": (256, 4097, 128), "middle": (768, 50257, 2048), "large": (1024, 128257, 8192)}


def parts(device, size):
    width, words, rows = size
    head = nn.Linear(width, words, bias=False, device=device, dtype=half(device))
    rows_of = torch.randn(rows, width, device=device, dtype=half(device))
    return head, rows_of, torch.arange(rows, device=device) % words


def losses(head, rows, labels, words):
    def step():
        head.zero_grad()
        loss = functional.cross_entropy(head(rows)[:, :words], labels)
        loss.backward()
        return loss.detach()

    return step


def build(device, size):
    return losses(*parts(device, size), size[1])
