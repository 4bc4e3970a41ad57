"""Training on batches of different sizes, which are said to change: one variant is compiled for all of them."""

import torch
from torch import nn
from torch._dynamo import mark_dynamic


def scaled(x):
    return x * 0.5


def build():
    model = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 10))
    prepare = torch.compile(scaled, backend="eager", dynamic=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    inputs, labels = torch.randn(512, 256), torch.randint(10, (512,))
    sizes = iter(range(480, 512))

    def step():
        size = next(sizes)
        batch = inputs[:size]
        mark_dynamic(batch, 0)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(prepare(batch)), labels[:size]).backward()
        optimizer.step()

    return step
