"""Gradients are dropped."""

from tests.gpu_proof.pairs.zero_grad_fill.slow import training


def build(device, size):
    return training(device, size)
