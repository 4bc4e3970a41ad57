"""Training with Adam, which reads a step counter per parameter: 700 reads per step that are its own business."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.inner(self.norm(x)))


def build():
    model = nn.Sequential(*(Layer(96) for _ in range(35)))
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3, foreach=True)
    samples = torch.randn(128, 96)

    def step():
        loss = model(samples).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
