"""Functional transforms, checkpoints, own autograd functions, tensor subclasses, operators as values."""

import functools
import itertools
import operator
from functools import partial, reduce

import numpy as np
import torch
from torch.func import functional_call, grad, jacrev, vmap
from torch.utils.checkpoint import checkpoint

OPS = {
    "+": operator.add, "*": operator.mul,
    "relu": lambda t, _: t.clamp_min(0),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
}


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        gate = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, gate)
        ctx.beta = beta
        return x * gate

    @staticmethod
    def backward(ctx, out):
        x, gate = ctx.saved_tensors
        inner = gate + ctx.beta * x * gate * (1 - gate)
        return out * inner, None


class Meters(torch.Tensor):
    """A tensor that knows its unit."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})

    def kilometres(self):
        return self / 1000


class Lazy:
    def __init__(self, make): self.make = make

    def __set_name__(self, owner, name): self.name = f"_{name}"

    def __get__(self, held, owner=None):
        if not hasattr(held, self.name):
            setattr(held, self.name, self.make(held))
        return getattr(held, self.name)


class Features:
    doubled = Lazy(lambda self: self.x * 2)

    def __init__(self, x): self.x = x

    def __getattr__(self, name):
        if name.startswith("power_"):
            return self.x ** int(name[6:])
        raise AttributeError(name)

    def __call__(self, *args, scale=1.0):
        return sum(args) * scale + self.x

    def __matmul__(self, other):
        return Features(self.x @ other.x.T)

    def __len__(self): return len(self.x)

    def __getitem__(self, index): return self.x[index] + 1


def energy(w, x):
    h = torch.tanh(x @ w)
    return (h ** 2).sum()


def per_sample(w, xs):
    return vmap(grad(energy), in_dims=(None, 0))(w, xs)


def evaluated(tokens, stack=()):
    """A little stack machine, recursive."""
    if not tokens:
        return stack[-1]
    head, *rest = tokens
    if isinstance(head, torch.Tensor):
        return evaluated(rest, (*stack, head))
    *below, a, b = stack
    return evaluated(rest, (*below, OPS[head](a, b)))


def tree(depth, x):
    if depth == 0:
        return x.sin()
    left = tree(depth - 1, x * 0.5)
    right = tree(depth - 1, x - 1)
    return left + right


def compose(*functions):
    return reduce(lambda f, g: lambda x: g(f(x)), functions)


def build():
    layer = torch.nn.Linear(6, 6)
    swish = partial(Swish.apply, beta=1.5) if False else (lambda x: Swish.apply(x, 1.5))
    pipeline = compose(torch.abs, partial(torch.add, other=1), torch.log, swish)

    def block(x, w):
        y = x @ w
        y = torch.relu(y)
        return y.cumsum(0)

    def step():
        w = torch.randn(6, 6, requires_grad=True)
        x = torch.randn(5, 6)
        grads = per_sample(w.detach(), x)
        jacobian = jacrev(energy)(w.detach(), x)
        y = checkpoint(block, x, w, use_reentrant=False)
        z = pipeline(y)
        loss = z.mean() + (grads * jacobian).sum()
        loss.backward()
        out = functional_call(layer, {k: v * 0.5 for k, v in layer.named_parameters()}, (x,))
        stack = evaluated([x, out, "+", x, "*", out, "relu", x, "lerp"])
        total = tree(2, stack)
        m = torch.randn(3).as_subclass(Meters)
        km = (m * 2).kilometres() + m.abs()
        f = Features(x)
        a = f.doubled + f.power_2 - f(x, out, scale=0.5)
        b = (f @ f).x[0] + f[1].sum() + len(f)
        array = np.asarray(a.detach()) * 2
        c = torch.from_numpy(array).add_(1).to(torch.float64)
        order = sorted(range(len(c)), key=lambda i: c[i].sum().item(), reverse=True)
        d = c[order][::2].flip(0)
        e = torch.stack(list(filter(lambda row: row.norm() > 0, d)))
        g = sum(p.sum() for p in map(torch.neg, e)) + max(e.unbind(), key=torch.Tensor.sum).mean()
        pairs = [torch.dot(p, q) for p, q in itertools.combinations(e, 2)]
        first = next((p for p in pairs if p > -1e9), None)
        return total, km, b, g, first, functools.reduce(torch.maximum, pairs), operator.itemgetter(0)(e).sum()

    return step
