"""Message passing, scatter, sparse products, equivariant sums, kernels, optimal transport: math-heavy code."""

from typing import Callable, Iterable, Union

import torch
from torch import Tensor, nn


class MLP(nn.Sequential):
    def __init__(self, *sizes: int, act: Callable[[], nn.Module] = nn.SiLU):
        layers = []
        for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
            layers += [nn.Linear(a, b)] + ([act()] if i < len(sizes) - 2 else [])
        super().__init__(*layers)


def scatter(src: Tensor, index: Tensor, size: int, reduce: str = "sum") -> Tensor:
    out = src.new_zeros(size, *src.shape[1:])
    out.index_add_(0, index, src)
    if reduce == "mean":
        count = torch.bincount(index, minlength=size).clamp(min=1)
        out = out / count.view(-1, *[1] * (src.dim() - 1))
    return out


class Conv(nn.Module):
    aggregate = "sum"

    def __init__(self, width):
        super().__init__()
        self.edge = MLP(2 * width + 1, width, width)
        self.node = MLP(2 * width, width, width)
        self.coord = MLP(width, width, 1)

    def message(self, h_i, h_j, d2): return self.edge(torch.cat((h_i, h_j, d2), dim=-1))

    def forward(self, h, x, edges):
        (src, dst), n = edges, h.size(0)
        rel = x[src] - x[dst]
        d2 = (rel ** 2).sum(-1, keepdim=True)
        m = self.message(h[dst], h[src], d2)
        x = x + scatter(rel * self.coord(m), dst, n, "mean")
        h = h + self.node(torch.cat([h, scatter(m, dst, n, self.aggregate)], -1))
        return h, x


class MeanConv(Conv):
    aggregate = "mean"

    def message(self, *args):
        out = super().message(*args)
        return out * out.sigmoid()


class Net(nn.Module):
    def __init__(self, width=8, kinds: Iterable[type] = (Conv, MeanConv)):
        super().__init__()
        self.convs = nn.ModuleList(kind(width) for kind in kinds)
        self.heads = nn.ModuleDict({"energy": nn.Linear(width, 1), "class": nn.Linear(width, 3)})

    def forward(self, h, x, edges, batch):
        for conv in self.convs: h, x = conv(h, x, edges)
        pooled = {name: scatter(head(h), batch, int(batch.max()) + 1) for name, head in self.heads.items()}
        return pooled, x


def sinkhorn(cost: Tensor, eps: float = 0.1, n: int = 3) -> Tensor:
    K = (-cost / eps).exp()
    u, v = torch.ones(K.shape[0]) / K.shape[0], torch.ones(K.shape[1]) / K.shape[1]
    a, b = u.clone(), v.clone()
    for _ in range(n):
        u = a / (K @ v)
        v = b / (K.T @ u)
    return u[:, None] * K * v


def rbf(x: Tensor, y: Union[Tensor, None] = None, scales=(0.5, 1.0, 2.0)) -> Tensor:
    y = x if y is None else y
    d = torch.cdist(x, y) ** 2
    return sum(torch.exp(-d / (2 * s ** 2)) for s in scales)


def mmd(x, y): return rbf(x).mean() + rbf(y).mean() - 2 * rbf(x, y).mean()


def power_iteration(A, n=4):
    v = torch.ones(A.shape[-1])
    for _ in range(n):
        w = A @ v
        v = w / w.norm()
    return (v @ A @ v) / (v @ v), v


def laplacian(edges, n):
    A = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (n, n)).coalesce()
    deg = torch.sparse.sum(A, 1).to_dense()
    L = torch.diag(deg) - A.to_dense()
    D = deg.clamp(min=1).rsqrt().diag()
    return D @ L @ D


def build():
    net = Net()
    opt = torch.optim.LBFGS(net.heads.parameters(), max_iter=2)

    def step():
        n = 10
        h, x = torch.randn(n, 8), torch.randn(n, 3)
        edges = torch.stack([torch.randint(0, n, (30,)), torch.randint(0, n, (30,))])
        batch = torch.arange(n) // 5

        def closure():
            opt.zero_grad()
            out, pos = net(h, x, edges, batch)
            loss = out["energy"].pow(2).mean() + out["class"].logsumexp(-1).mean() + (pos - x).norm(dim=-1).mean()
            loss.backward()
            return loss

        loss = opt.step(closure)
        plan = sinkhorn(torch.cdist(x[:5], x[5:]))
        distance = (plan * torch.cdist(x[:5], x[5:])).sum()
        eigen, vector = power_iteration(laplacian(edges, n))
        values, vectors = torch.linalg.eigh(x.T @ x + torch.eye(3) * 1e-3)
        whitened = (x - x.mean(0)) @ vectors @ torch.diag_embed(values ** -0.5)
        q, r = torch.linalg.qr(whitened)
        return loss + distance + eigen * vector.sum() + mmd(x, q) + r.diagonal().log1p().nansum()

    return step
