"""Branches, loops, exceptions, context managers and early exits."""

import contextlib

import torch
from torch import nn


class Stop(Exception):
    pass


@contextlib.contextmanager
def scaled(x):
    y = x * 0.5
    try:
        yield y
    finally:
        y.mul_(2)


def search(x, limit):
    for attempt in range(5):
        x = x + 0.25
        if x.mean() > limit:
            break
        if attempt == 1:
            continue
        x = torch.relu(x)
    else:
        x = x.neg()
    return x


def guarded(x, fail):
    try:
        y = x.exp()
        if fail:
            raise Stop
        y = y.log1p()
    except Stop:
        y = x.sigmoid()
    else:
        y = y.sqrt()
    finally:
        x = x.clamp(min=0)
    return x + y


def chosen(x, kind):
    match kind:
        case "relu" | "clip":
            return x.clamp(min=0)
        case {"scale": float(scale)}:
            return x * scale
        case [first, *rest] if len(rest) > 1:
            return x[first] - x[rest[0]]
        case _:
            return -x


def halved(x):
    while x.abs().max() > 1:
        x = x / 2
        if x.numel() == 0:
            return x
    return x


def both(a, b, flag):
    if flag and a.sum() > 0 or not (b < 0).any():
        return a - b
    return a @ b.T if a.shape == b.shape else b.flip(0)


def build():
    layer = nn.Linear(8, 8)

    def step():
        x = torch.randn(4, 8)
        with scaled(x) as y, torch.no_grad():
            z = layer(y)
        total = search(z, 0.4).sum()
        for fail in (False, True):
            total = total + guarded(z, fail).mean()
        for kind in ("clip", {"scale": 0.5}, [0, 1, 2], None):
            total = total + chosen(z, kind).sum()
        total += halved(z * 10).sum()
        total -= both(z, z, True).sum()
        assert torch.isfinite(total), "must be finite"
        return total

    return step
