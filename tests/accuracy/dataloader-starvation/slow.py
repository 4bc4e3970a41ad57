"""Images that take a while to read, and one worker to read them."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TIMED = "the loader and the step keep their pace on idle cores only"

READ_S = 0.001


class Images(Dataset):
    """Images on slow storage: each takes a millisecond to arrive, whoever asks for it."""

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        time.sleep(READ_S)
        return torch.full((3, 32, 32), (index % 256) / 255), index % 10


def build():
    model = nn.Sequential(nn.Conv2d(3, 48, 5), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(2352, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(DataLoader(Images(), batch_size=24, num_workers=1))

    def step():
        images, labels = next(batches)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
