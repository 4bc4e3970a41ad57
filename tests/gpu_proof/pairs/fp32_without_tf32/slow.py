"""Products of float32 run in full precision."""

import torch

from tests.gpu_proof.parts import perceptron, training

RULE = "fp32-matmul-no-tf32"
CAUSE = "compute"
CPU = "a CPU has no TF32: both programs compute the same"
TOLERANCE = 1e-2
SIZES = {"tiny": (16, 4), "small": (256, 64), "middle": (2048, 2048), "large": (8192, 8192)}


def trained(device, size, *, tf32):
    width, batch = size
    torch.backends.cuda.matmul.allow_tf32 = tf32
    return training(perceptron(width, 3, device), torch.randn(batch, width, device=device))


def build(device, size):
    return trained(device, size, tf32=False)
