"""The rotary embedding of queries and keys is written out."""

import torch

from tests.gpu_proof.parts import half

RULE = "decoder-pieces-written-out"
CAUSE = "compute"
TOLERANCE = 3e-2
CPU = "nothing is compiled on a CPU: both programs launch the same operators"
SIZES = {"tiny": (2, 8), "small": (4, 128), "middle": (16, 2048), "large": (32, 8192)}
LAYERS = 8


def rotated(x):
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def embedded(x, cos, sin):
    return x * cos + rotated(x) * sin


def embedding(device, size, embed):
    heads, length = size
    angles = torch.randn(length, 64, device=device)
    cos, sin = angles.cos().to(half(device)), angles.sin().to(half(device))
    query = torch.randn(2, heads, length, 64, device=device, dtype=half(device))

    @torch.inference_mode()
    def step():
        mixed = query
        for _ in range(LAYERS):
            mixed = embed(mixed, cos, sin)
        return mixed.float().std()

    return step


def build(device, size):
    return embedding(device, size, embedded)
