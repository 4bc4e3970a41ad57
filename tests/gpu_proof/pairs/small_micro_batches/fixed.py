"""Gradients accumulate over two larger micro-batches."""

from tests.gpu_proof.pairs.small_micro_batches.slow import training


def build(device, size):
    return training(device, size, 2)
