"""Causal attention of a small language model, as one operator."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

HEADS, WIDTH, LENGTH = 4, 128, 256


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        shape = (batch, length, HEADS, width // HEADS)
        query, key, value = (each.view(shape).transpose(1, 2) for each in self.project(x).chunk(3, dim=-1))
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first_norm, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.second_norm = nn.LayerNorm(WIDTH)
        self.mixed = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.first_norm(x))
        return x + self.mixed(self.second_norm(x))


def build() -> Callable[[], None]:
    model = nn.Sequential(nn.Embedding(96, WIDTH), Block(), Block(), nn.Linear(WIDTH, 96))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    words = torch.randint(96, (2, LENGTH + 1))

    def step() -> None:
        optimizer.zero_grad()
        logits = model(words[:, :-1])
        functional.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten()).backward()
        optimizer.step()

    return step
