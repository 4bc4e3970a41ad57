"""Training under autocast, with a norm, a softmax and a loss in float32: casts to and fro, each with its purpose."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

WIDTH = 128


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = functional.silu(self.inner(self.norm(x)))
        weights = torch.softmax(hidden.float(), dim=-1).bfloat16()
        return x + self.outer(weights * hidden)


def build() -> Callable[[], None]:
    model = nn.Sequential(Block(), Block(), nn.Linear(WIDTH, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x, label = torch.randn(1024, WIDTH), torch.randint(16, (1024,))

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(x)
        functional.cross_entropy(logits.float(), label).backward()
        optimizer.step()

    return step
