"""All layers stay in bfloat16."""

import torch

from tests.gpu_proof.pairs.dtype_ping_pong.slow import run


def build(device, size):
    return run(device, size, torch.relu)
