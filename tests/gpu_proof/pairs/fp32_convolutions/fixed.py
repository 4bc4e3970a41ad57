"""Convolutions train in bfloat16 by autocast."""

import torch

from tests.gpu_proof.pairs.fp32_convolutions.slow import trained


def build(device, size):
    return trained(device, size, torch.autocast(device, torch.bfloat16))
