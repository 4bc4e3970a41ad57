"""Causal attention is one operator."""

from tests.gpu_proof.pairs.unfused_attention.slow import trained
from tests.gpu_proof.parts import Attention


def build(device, size):
    return trained(device, size, Attention)
