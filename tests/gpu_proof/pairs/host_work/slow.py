"""The host prepares each batch while the device is idle."""

import numpy as np
import torch

from tests.gpu_proof.parts import perceptron

RULE = "host-work-holds-device"
CAUSE = "host_work"
SIZES = {"tiny": (16, 4), "small": (256, 128), "middle": (1024, 2048), "large": (2048, 8192)}


def parts(device, size):
    width, rows = size
    pixels = np.random.default_rng(0).integers(256, size=(rows, width), dtype=np.uint8)
    return perceptron(width, 4, device), pixels


def build(device, size):
    model, pixels = parts(device, size)

    @torch.inference_mode()
    def step():
        prepared = np.stack([((image / 255.0 - 0.5) / 0.25).astype(np.float32) for image in pixels])
        return model(torch.from_numpy(prepared).to(device)).mean().cpu()

    return step
