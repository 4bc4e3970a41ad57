"""Model and images are laid out with channels last."""

import torch

from tests.gpu_proof.pairs.convolution_layout.slow import trained


def build(device, size):
    return trained(device, size, torch.channels_last)
