"""A compiled network that keeps the statistics of its activations out of the graph on purpose."""

import torch
from torch import nn

HISTORY = []


@torch.compiler.disable
def note(hidden):
    HISTORY[:] = [hidden.detach().norm()]


class Network(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(width, width), nn.ReLU())])
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))

    def forward(self, x):
        hidden = self.body(x)
        note(hidden)
        return self.head(hidden)


def build():
    model = Network(192)
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    inputs, labels = torch.randn(64, 192), torch.randint(10, (64,))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(compiled(inputs), labels).backward()
        optimizer.step()

    return step
