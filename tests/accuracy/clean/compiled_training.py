"""Training with torch.compile, compiled before the recorded steps."""

import torch
import torch.nn.functional as F
from torch import nn


class Gated(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.value = nn.Linear(width, 2 * width, bias=False)
        self.out = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return x + self.out(F.silu(self.gate(y)) * self.value(y))


def build():
    model = nn.Sequential(nn.Linear(64, 256), Gated(256), Gated(256), nn.Linear(256, 16))
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs, targets = torch.randn(4096, 64), torch.randint(16, (4096,))

    def step() -> None:
        chosen = torch.randint(len(inputs), (256,))
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(compiled(inputs[chosen]), targets[chosen]).backward()
        optimizer.step()

    for _ in range(3):
        step()
    return step
