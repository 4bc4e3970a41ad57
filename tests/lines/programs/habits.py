"""Odd habits: everything on one line, nested calls over many lines, lambdas in tables, rebound names, conditional code."""

import importlib
import types
from contextlib import ExitStack, nullcontext

import torch
from torch import nn

try:
    from torch.nn.functional import scaled_dot_product_attention as sdpa
except ImportError:
    sdpa = None

LOSSES = {
    "l1": lambda a, b: (a - b).abs().mean(),
    "l2": lambda a, b: ((a - b) ** 2).mean(),
    "huber": lambda a, b, d=1.0: torch.where((a - b).abs() < d, 0.5 * (a - b) ** 2, d * ((a - b).abs() - 0.5 * d)).mean(),
    "cos": lambda a, b: 1 - torch.cosine_similarity(a, b, dim=-1).mean(),
}
ACT = types.SimpleNamespace(relu=torch.relu, gelu=torch.nn.functional.gelu, square=lambda x: x * x)


def traced(cls):
    """Wraps forward of a class."""
    forward = cls.forward

    def timed(self, *args, **kwargs):
        self.calls = getattr(self, "calls", 0) + 1
        return forward(self, *args, **kwargs)

    cls.forward = timed
    return cls


@traced
class Mixer(nn.Module):
    def __init__(self, n, d, act="gelu"):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.tok = nn.Sequential(nn.Linear(n, n), nn.GELU(), nn.Linear(n, n))
        self.ch = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.Linear(d, d))
        self.act = getattr(ACT, act)
        self.gamma = nn.Parameter(1e-1 * torch.ones(d)) if act != "square" else None

    def forward(self, x, mask=None):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        y = self.ch(self.n2(x)); y = self.act(y); y = y if self.gamma is None else self.gamma * y
        return x + (y if mask is None else y * mask[..., None])


def attend(q, k, v, causal=True):
    return sdpa(q, k, v, is_causal=causal) if sdpa else (
        (q @ k.transpose(-2, -1) / q.size(-1) ** 0.5).softmax(-1) @ v
    )


def pick(x, how): return {"max": x.max, "min": x.min, "mean": x.mean}[how]()


def apply_all(x, *fs, **named):
    for f in fs: x = f(x)
    for name, args in named.items():
        x = getattr(x, name)(*args) if isinstance(args, tuple) else getattr(torch, name)(x, **args)
    return x


def cascade(x):
    if x.mean() > 10: x = x - 10
    elif x.mean() < -10: x = x + 10
    elif x.std() > 10 or x.abs().max() > 100: x = x / 10
    elif (m := x.median()) > 0.5: x = x - m
    else: x = x * 2
    return x


def nested(x):
    def outer(y):
        def inner(z, k=2):
            nonlocal count
            count += 1
            return z ** k + y.mean()
        return inner(y) + inner(y * 2, k=3)
    count = 0
    return outer(x) * count


class Stats:
    __slots__ = ("n", "mean", "m2")

    def __init__(self): self.n = 0; self.mean = torch.zeros(4); self.m2 = torch.zeros(4)

    def __iadd__(self, x):
        self.n += 1
        delta = x - self.mean
        self.mean = self.mean + delta / self.n
        self.m2 += delta * (x - self.mean)
        return self

    def __bool__(self): return bool(self.mean.sum() < 1e9)

    var = property(lambda self: self.m2 / max(self.n - 1, 1))
    std = property(fget=lambda self: self.var.sqrt())


def build():
    mixer, other = Mixer(5, 4), Mixer(5, 4, act="square")
    ops = importlib.import_module("torch")

    def step():
        x = torch.randn(2, 5, 4); mask = torch.ones(2, 5)
        y = mixer(x); z = other(x, mask=mask) if torch.is_tensor(mask) else other(x)
        losses = {name: f(y, z) for name, f in LOSSES.items()}
        total = sum(w * losses[k] for k, w in dict(l1=1, l2=.5, huber=.1, cos=2).items())
        total.backward()
        att = attend(*(t.unsqueeze(1) for t in torch.randn(3, 2, 5, 4).unbind(0)))
        p = pick(att, "max") + pick(att, "mean")
        q = apply_all(x, torch.abs, lambda t: t + 1, lambda t: t.log(), pow=(2,), sum=dict(dim=0), transpose=(0, 1))
        r = cascade(x); r = nested(r)
        s = Stats()
        for row in x.view(-1, 4): s += row
        t = (s.std if s else s.var).sum()
        with ExitStack() as stack:
            for cm in (torch.no_grad(), nullcontext(), torch.autograd.set_detect_anomaly(False)): stack.enter_context(cm)
            u = ops.einsum("bij,bkj->bik", x, x).diagonal(dim1=-2, dim2=-1).sum(
                -1
            ).mean()
        v = torch.stack(
            [
                torch.cat(
                    (
                        a.relu(),
                        b.neg(),
                    ),
                    dim=-1,
                )
                for a, b in zip(
                    x[0],
                    x[1],
                )
                if a.sum() <
                b.sum() + 100
            ]
        ).mean(); w = (x.sum() if x.numel() else x.mean()) if v is not None else -v
        a = b = x[0] * 2; a += 1; b = b - a if (a > b).any() else b
        return float(p), q.shape, r.sum().item(), [*map(float, (t, u, v, w))], {**losses, "b": b}

    return step
