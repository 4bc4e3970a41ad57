"""Mish is one operator."""

from torch import nn

from tests.gpu_proof.pairs.elementwise_flood.slow import training


def build(device, size):
    return training(device, size, nn.Mish())
