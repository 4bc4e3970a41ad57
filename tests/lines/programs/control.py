"""Nested control flow: retries, early exits, generators that send, while-else, exception groups of habits."""

import contextlib
import logging
import warnings

import torch
from torch import nn

log = logging.getLogger(__name__)


class Diverged(RuntimeError):
    def __init__(self, loss):
        super().__init__(f"loss is {loss.item():.2f}")
        self.loss = loss


def retried(times=3):
    def decorate(function):
        def attempt(*args, **kwargs):
            for left in reversed(range(times)):
                try:
                    return function(*args, **kwargs, left=left)
                except (Diverged, ValueError) as problem:
                    if not left:
                        raise
                    log.debug("again: %s", problem)
        return attempt
    return decorate


@retried(times=3)
def unstable(x, left):
    y = x.exp()
    if left > 1:
        raise Diverged(y.sum())
    z = y.log()
    if left == 1:
        raise ValueError
    return z * 3


@contextlib.contextmanager
def frozen(module):
    states = [p.requires_grad for p in module.parameters()]
    for p in module.parameters(): p.requires_grad_(False)
    try:
        yield module
    finally:
        for p, state in zip(module.parameters(), states): p.requires_grad_(state)


def windows(x, size, step=1):
    start = 0
    while start + size <= x.shape[0]:
        offset = yield x[start : start + size].mean()
        start += step + (offset or 0)
    else:
        yield x.sum()
    return x.numel()


def driven(x):
    gen = windows(x, 2)
    found = [next(gen)]
    with contextlib.suppress(StopIteration):
        while True:
            found.append(gen.send(1))
    return found


def flattened(nested):
    for each in nested:
        if isinstance(each, (list, tuple)):
            yield from flattened(each)
        else:
            yield each * 1.5


def first_good(model, candidates):
    with torch.no_grad():
        for candidate in candidates:
            out = model(candidate)
            if out.mean() > 100:
                return out
            try:
                if out.std() < 0:
                    continue
                bad = candidate.view(3, -1)
            except RuntimeError:
                bad = candidate.flatten()
            finally:
                out = out + 1
            if bad.max() < 100 and not (out < -100).all():
                return bad - 1
    return None


def newton(f, x, tolerance=1e-4):
    for iteration in range(20):
        x = x.detach().requires_grad_()
        y = f(x)
        (slope,) = torch.autograd.grad(y, x)
        if abs(y.item()) < tolerance: break
        x = x - y / slope
    else:
        warnings.warn("not found")
    return x, iteration


def by_kind(event, x):
    match event:
        case {"kind": "scale", "by": by}: x = x * by
        case {"kind": "shift", "by": int() | float() as by}: x = x + by
        case ("crop", start, stop) if stop > start: x = x[start:stop]
        case ("pad", *sizes):
            x = torch.cat([x, x.new_zeros(*sizes)])
        case str(name) if hasattr(x, name):
            x = getattr(x, name)()
        case _:
            raise TypeError(event)
    return x


def step_size(losses, size):
    return size if len(losses) < 2 else size * 0.5 if losses[-1] > losses[-2] else size * 1.1


def build():
    model = nn.Linear(6, 6)

    def step():
        x = torch.randn(6, 6)
        a = unstable(x)
        with frozen(model) as m, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            b = m(x)
        c = sum(driven(x[:, 0]))
        d = sum(each.sum() for each in flattened([x[0], [x[1], (x[2], [x[3]])]]))
        e = first_good(model, x.split(2))
        f, count = newton(lambda t: t ** 2 - 2, torch.tensor(1.0))
        g = x[0]
        for event in ({"kind": "scale", "by": 2}, {"kind": "shift", "by": 1}, ("crop", 1, 4), ("pad", 2), "exp"):
            g = by_kind(event, g)
        losses, size = [], 0.1
        for w in x.unbind(0):
            losses.append((w * size).square().mean()); size = step_size(losses, size)
        try:
            by_kind(3, g)
        except TypeError as problem:
            g = g / len(str(problem))
        return a.sum() + b.sum() + c + d + e.sum() + f + g.sum() + sum(losses)

    return step
