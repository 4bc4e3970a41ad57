"""A decoder generates token by token, operator by operator."""

import torch
from torch import nn

from tests.gpu_proof.parts import Block, half

RULE = "gpu-idle-host-bound"
CAUSE = "launch_pace"
TOLERANCE = 1e-2
CPU = "a CPU has no graphs: both programs launch the same operators"
SIZES = {"tiny": (64, 1, 2), "small": (256, 4, 8), "middle": (1024, 12, 8), "large": (4096, 16, 8)}
TOKENS = 4


def one_token(device, size):
    width, depth, batch = size
    with torch.device(device):
        model = nn.Sequential(*(Block(width) for _ in range(depth))).to(half(device)).eval()
    token = torch.randn(batch, 1, width, device=device, dtype=half(device))

    @torch.no_grad()
    def decoded():
        token.copy_(torch.tanh(model(token)))
        return token

    return decoded, token


def generating(decoded):
    def step():
        for _ in range(TOKENS):
            token = decoded()
        return token.float().std()

    return step


def build(device, size):
    decoded, _ = one_token(device, size)
    return generating(decoded)
