"""Decorators, generators, closures, properties, partial functions, hooks and autograd functions."""

import functools

import torch
from torch import nn


def logged(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        result = function(*args, **kwargs)
        return result * 1.0

    return inner


@logged
def normalised(x, eps=1e-6):
    norm = x.pow(2).sum(-1, keepdim=True)
    return x * torch.rsqrt(norm + eps)


def chunks(x, size):
    for start in range(0, len(x), size):
        piece = x[start : start + size]
        yield piece - piece.mean()
    yield x.sum(0, keepdim=True)


def delegated(x):
    yield from chunks(x, 2)
    yield x * 0


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() < 4)


class Gate(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.lift = nn.Linear(size, size)
        self.blocks = nn.ModuleList(nn.Linear(size, size) for _ in range(2))
        self.acts = {"a": torch.tanh, "b": functools.partial(nn.functional.leaky_relu, negative_slope=0.1)}
        self.register_buffer("offset", torch.zeros(size))

    @property
    def scale(self):
        return self.lift.weight.abs().mean() + 1

    @staticmethod
    def mixed(a, b, weight):
        return torch.lerp(a, b, weight)

    def forward(self, x):
        y = self.lift(x) / self.scale + self.offset
        for name, block in zip(("a", "b"), self.blocks, strict=True):
            y = self.mixed(y, self.acts[name](block(y)), 0.5)
        return Straight.apply(y) + (lambda t: t * 2)(y)


def build():
    gate = Gate(8)
    optimizer = torch.optim.SGD(gate.parameters(), lr=0.1)
    gate.lift.register_forward_hook(lambda module, inputs, output: output + 0.1)

    def step():
        x = torch.randn(6, 8)
        optimizer.zero_grad()
        out = normalised(gate(x))
        pieces = [piece.sum() for piece in delegated(out)]
        loss = torch.stack(pieces).mean() + sum(parameter.norm() for parameter in gate.parameters())
        loss.backward()
        for parameter in gate.parameters():
            if parameter.grad is not None:
                parameter.grad.clamp_(-1, 1)
        optimizer.step()
        return loss

    return step
