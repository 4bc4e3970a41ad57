"""Operators, subscripts, chains, comprehensions and calls inside calls, over several lines."""

import torch
import torch.nn.functional as F


def chain(x):
    return (
        x.float()
        .sub(x.mean(dim=-1, keepdim=True))
        .div(
            x.std(dim=-1, keepdim=True).add(1e-5),
        )
    )


def subscripts(x):
    x[0] = 1.0
    x[1:, ::2] = x[1:, 1::2]
    x[..., -1] += 2
    x[x > 2] = 0
    picked = x[[0, 2]], x[None, :, 0], x[:, None]
    first, *others = x
    return picked[0].sum() + picked[1].sum() + picked[2].mean() + first.max() + others[-1].min()


def arithmetic(a, b, scale=2.0, count=3):
    steps = count * 2 + 1
    c = (a + b) * (a - b) / scale
    c = c**2 + a % 3 - -b
    c //= count
    c += 1 - a
    c = a @ b.t() @ c if steps > 2 else c
    flags = (a > 0) & (b <= 1) | ~(a == b)
    return c.sum() + flags.sum() + (0 < scale < 3)


def comprehended(x, count):
    parts = [row * index for index, row in enumerate(x) if row.sum() > -1e9]
    table = {index: part.exp() for index, part in enumerate(parts)}
    total = sum(value.mean() for value in table.values())
    nested = [[cell + 1 for cell in row[:2]] for row in x[:2]]
    return total + torch.stack([torch.stack(row) for row in nested]).sum() + max(parts[i].max() for i in range(count))


def texts(x):
    label = f"{x.mean():.3f} of {x.shape[0]} at {x[0].sum().item():>{6}.1f}"
    return label, "%s" % x.max().item(), str(x.argmin())


def build():
    def step():
        x = torch.randn(6, 8)
        y = chain(x)
        loss = F.mse_loss(
            F.softmax(y * 0.1, dim=-1),
            torch.ones_like(y) / y.shape[-1],
        ) + F.l1_loss(x, y)
        loss = loss + subscripts(x.clone()) + arithmetic(x, y)
        loss = loss + comprehended(x, 2)
        texts(x)
        squares = list(map(lambda row: row * row, x))
        pairs = [a + b for a, b in zip(squares[:-1], squares[1:], strict=True)]
        return loss, torch.cat(pairs).sum()

    return step
