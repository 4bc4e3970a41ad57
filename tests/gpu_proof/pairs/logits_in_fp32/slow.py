"""The product in a language model's head runs in float32."""

import torch
from torch import nn
from torch.nn import functional

RULE = ""
CAUSE = "compute"
TOLERANCE = 3e-2
SIZES = {"tiny": (16, 64, 8), "small": (256, 4096, 128), "middle": (768, 50304, 2048), "large": (2048, 128256, 4096)}


def parts(device, size):
    width, words, rows = size
    head = nn.Linear(width, words, bias=False, device=device, dtype=torch.bfloat16)
    return head, torch.randn(rows, width).to(device, torch.bfloat16), torch.arange(rows, device=device) % words


def losses(head, labels, logits):
    def step():
        head.zero_grad()
        loss = functional.cross_entropy(logits(), labels)
        loss.backward()
        return loss.detach()

    return step


def build(device, size):
    head, rows, labels = parts(device, size)
    return losses(head, labels, lambda: rows.float() @ head.weight.float().T)
