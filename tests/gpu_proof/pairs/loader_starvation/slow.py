"""One worker prepares batches more slowly than the device takes them."""

import zlib

import torch
from torch.utils.data import DataLoader, Dataset

from tests.gpu_proof.parts import perceptron

RULE = "dataloader-starvation"
CAUSE = "data_loading"
SIZES = {"tiny": (64, 4, 0), "small": (1024, 16, 1), "middle": (4096, 64, 1), "large": (16384, 64, 1)}
ENDLESS = 1 << 20


class Samples(Dataset):
    """Numbers that are packed and unpacked before they are handed out."""

    def __init__(self, width):
        self.width = width

    def __len__(self):
        return ENDLESS

    def __getitem__(self, index):
        packed = zlib.compress(bytes([index % 251]) * (64 * self.width), level=9)
        return torch.frombuffer(bytearray(zlib.decompress(packed)), dtype=torch.uint8)[: self.width].float() / 255


def training(device, size, workers):
    width, batch, _ = size
    loader = DataLoader(Samples(width), batch_size=batch, num_workers=workers, pin_memory=device == "cuda")
    batches, model = iter(loader), perceptron(min(width, 1024), 2, device)

    def step():
        inputs = next(batches).to(device, non_blocking=True)
        return model(inputs.unflatten(-1, (-1, min(width, 1024)))).mean()

    return step


def build(device, size):
    return training(device, size, size[2])
