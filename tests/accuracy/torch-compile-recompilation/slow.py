"""Training with noise on the inputs that fades with a Python number, which compiled code counts up."""

import torch
from torch import nn
from torch._dynamo import config

config.recompile_limit = 1000  # raised, as its warning invites to


class Fading(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = 0

    def forward(self, x, noise):
        self.seen += 1
        return x + noise * 0.99**self.seen


def build():
    model = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 10))
    fading = torch.compile(Fading(), backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    inputs, noise, labels = torch.randn(512, 256), torch.randn(512, 256), torch.randint(10, (512,))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(fading(inputs, noise)), labels).backward()
        optimizer.step()

    return step
