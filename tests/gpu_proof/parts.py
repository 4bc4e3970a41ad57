"""What many pairs are built of: models, optimizers, and what a CPU has another form of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def pinned(tensor: Tensor, device: str) -> Tensor:
    """The tensor in pinned memory, or as it is where no device copies from there."""
    return tensor.pin_memory() if device == "cuda" else tensor


def half(device: str) -> torch.dtype:
    """bfloat16; on a CPU, which rounds differently with and without fusing, float32."""
    return torch.bfloat16 if device == "cuda" else torch.float32


def compiled(function: Callable[..., Any], device: str) -> Callable[..., Any]:
    """The function compiled; on a CPU traced only, since a rehearsal needs no kernels."""
    return torch.compile(function, backend="inductor" if device == "cuda" else "eager")


def graphed(function: Callable[[], Tensor], device: str) -> Callable[[], Tensor]:
    """The function as one CUDA graph, whose result lies in one place; on a CPU as it is."""
    if device != "cuda":
        return function
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()

    def replayed() -> Tensor:
        graph.replay()
        return result

    return replayed


def perceptron(width: int, depth: int, device: str) -> nn.Sequential:
    """Linear layers of one width with GELU between them."""
    with torch.device(device):
        return nn.Sequential(*(layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.GELU())))


def convolutions(channels: int) -> nn.Sequential:
    """Three convolutions with batch norm and ReLU, and a head of ten classes, over RGB images."""
    layers: list[nn.Module] = []
    for before, after in ((3, channels), (channels, channels), (channels, 2 * channels)):
        layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * channels, 10))


class Attention(nn.Module):
    """Causal self-attention with heads of 64, by PyTorch's fused operator."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(width // 64, 1)
        self.inner, self.outer = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def mixed(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Values weighted by attention."""
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    def forward(self, x: Tensor) -> Tensor:
        parts = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.inner(x).chunk(3, -1))
        result: Tensor = self.outer(self.mixed(*parts).transpose(1, 2).flatten(-2))
        return result


class Block(nn.Module):
    """A decoder's block: attention, then two linear layers, each after a norm."""

    def __init__(
        self, width: int, attention: nn.Module | None = None, norm: Callable[[int], nn.Module] = nn.LayerNorm
    ) -> None:
        super().__init__()
        self.first, self.second = norm(width), norm(width)
        self.attention = attention or Attention(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        result: Tensor = x + self.narrow(functional.gelu(self.wide(self.second(x))))
        return result


def training(model: nn.Module, *inputs: Tensor) -> Callable[[], Tensor]:
    """A step of training by AdamW towards outputs of mean square zero; it returns the loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = model(*inputs).float().square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.detach()

    return step
