"""Inference in bfloat16 whose layers hand their results on in float32."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x.bfloat16())).float()


def build() -> Callable[[], None]:
    model = nn.Sequential(*(Layer(96) for _ in range(6))).eval()
    frames = torch.randn(4096, 96)

    def step() -> None:
        with torch.inference_mode():
            model(frames).argmax(-1)

    return step
