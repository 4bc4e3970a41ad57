"""A convolutional network on a data set in memory, split into batches by index."""

import torch
from torch import nn


def build():
    pictures = torch.randn(4096, 1, 28, 28)
    labels = torch.randint(10, (4096,))
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(64 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    loss_of = nn.CrossEntropyLoss()
    batches = iter(torch.randperm(4096).split(64))

    def step() -> None:
        chosen = next(batches)
        loss = loss_of(model(pictures[chosen]), labels[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step
