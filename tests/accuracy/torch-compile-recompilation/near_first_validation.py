"""Training with one smaller batch, and a score that is compiled when the first validation comes."""

import torch
from torch import nn

ALSO = {"recording-not-steady": "the score is compiled within the few steps that are recorded, and takes most of them"}


def scaled(x):
    return x * 0.5


def is_right(logits, labels):
    return logits.argmax(dim=1) == labels


def build():
    model = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 10))
    prepare = torch.compile(scaled, backend="eager", dynamic=False)
    score = torch.compile(is_right, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    inputs, labels = torch.randn(512, 256), torch.randint(10, (512,))
    steps = iter(range(1000))

    def step():
        number = next(steps)
        size = 384 if number == 5 else 512
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(prepare(inputs[:size])), labels[:size]).backward()
        optimizer.step()
        if number == 6:
            with torch.no_grad():
                score(model(inputs), labels)

    return step
