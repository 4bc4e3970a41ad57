"""Sound clips that are read and cut to length in the training process."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TIMED = "the loader and the step keep their pace on idle cores only"

READ_S = 0.0005


class Clips(Dataset):
    """Clips on storage that takes half a millisecond for each."""

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        time.sleep(READ_S)
        return torch.full((1, 2048), (index % 100) / 100), index % 12


def build():
    model = nn.Sequential(
        nn.Conv1d(1, 24, 64, stride=8),
        nn.ReLU(),
        nn.Conv1d(24, 48, 16, stride=4),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(12),
    )
    model(torch.zeros(1, 1, 2048))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(DataLoader(Clips(), batch_size=16, num_workers=0))

    def step():
        clips, labels = next(batches)
        loss = nn.functional.cross_entropy(model(clips), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
