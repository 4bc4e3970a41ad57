"""What each rule makes of code with its pattern, and what it declines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

import pytest
from msgspec.structs import fields

from tb_tidy_plugin.fixes.change import Change, Spot, Unfixable, collide, spliced
from tb_tidy_plugin.fixes.code import Code
from tb_tidy_plugin.rulekit import Rule, Sizes
from tb_tidy_plugin.rules import catalogue
from tb_tidy_plugin.words.units import Count
from tests.support.recordings import ROOT

RULES: Mapping[str, type[Rule]] = {rule.name(): rule for rule in catalogue() if issubclass(rule, Rule)}
FIXERS = sorted(name for name, rule in RULES.items() if rule.can_fix())

HERE = "# here"
"""Marks the finding's line in a source; the comment stays."""

TRAIN = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
"""

FACTS: Mapping[str, Mapping[str, object]] = {
    "optimizer-single-tensor": {"optimizer": "SGD", "algorithm": "sgd"},
    "dataloader-num-workers-zero": {"at_once": 3},
    "tensor-from-python-data": {"holds_arrays": False, "dtype": "float32"},
    "fp32-on-ordinary-cores": {"has_bfloat16": True},
    "hidden-contiguous-copy": {"is_needed": False},
    "garbage-collected-in-step": {"explicit": True},
    "embedding-gradient-dense": {"rows": Count(100_000)},
    "dtype-ping-pong": {"dtype": "bfloat16", "other": "float32"},
    "weights-cast-every-call": {"dtype": "bfloat16"},
    "index-gradient-accumulated": {"table": Sizes((9, 4)), "picked": Sizes((5, 4))},
}
"""Those facts of a match that its fixer reads."""

# Rule, lines of the source with HERE on the finding's, and the lines that differ afterwards.
CASES: list[tuple[str, str, dict[str, str]]] = [
    (
        "optimizer-single-tensor",
        "optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)  # as in the paper\noptimizer.step()  # here",
        {
            "optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)  # as in the paper": (
                "optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)  # as in the paper"
            )
        },
    ),
    (
        "optimizer-single-tensor",
        "a = optim.SGD(one, fused=False)\nb = optim.SGD(two)\na.step()  # here",
        {"a = optim.SGD(one, fused=False)": "a = optim.SGD(one, fused=True)"},
    ),
    (
        "optimizer-single-tensor",
        "a = optim.SGD(\n\tone,\n\tlr=0.1,  # rate\n)\nscaler.step(a)  # here",
        {"\tlr=0.1,  # rate": "\tlr=0.1,  # rate\n\tfused=True,"},
    ),
    (
        "optimizer-single-tensor",
        "a = optim.SGD(one)\ndef start(self, opt):\n    self.opt = opt\ndef fit(self):\n    self.opt.step()  # here",
        {"a = optim.SGD(one)": "a = optim.SGD(one, fused=True)"},
    ),
    (
        "zero-grad-memset",
        "optimizer.zero_grad(set_to_none=False)  # here",
        {"optimizer.zero_grad(set_to_none=False)  # here": "optimizer.zero_grad()  # here"},
    ),
    (
        "dataloader-num-workers-zero",
        "loader = DataLoader(data, 64, num_workers=0)\nfor x in tqdm(loader):  # here\n    train(x)",
        {
            "loader = DataLoader(data, 64, num_workers=0)": (
                "loader = DataLoader(data, 64, num_workers=3, persistent_workers=True)"
            )
        },
    ),
    (
        "pageable-h2d-copy",
        "loader = DataLoader(data)\nfor x, y in loader:\n    x, y = x.to(device), y.to(device)  # here",
        {
            "loader = DataLoader(data)": "loader = DataLoader(data, pin_memory=True)",
            "    x, y = x.to(device), y.to(device)  # here": (
                "    x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)  # here"
            ),
        },
    ),
    (
        "tensor-created-on-cpu-then-moved",
        'mask = torch.ones(batch, length).to("cuda")  # here',
        {
            'mask = torch.ones(batch, length).to("cuda")  # here': (
                'mask = torch.ones(batch, length, device="cuda")  # here'
            )
        },
    ),
    (
        "tensor-created-on-cpu-then-moved",
        "x = torch.zeros(4, dtype=torch.long).to(y.device) + 1  # here",
        {
            "x = torch.zeros(4, dtype=torch.long).to(y.device) + 1  # here": (
                "x = torch.zeros(4, dtype=torch.long, device=y.device) + 1  # here"
            )
        },
    ),
    (
        "tensor-from-python-data",
        "x = torch.tensor([buffer[i] for i in picked])  # here",
        {
            "from torch.utils.data import DataLoader": "from torch.utils.data import DataLoader\nimport numpy as np",
            "x = torch.tensor([buffer[i] for i in picked])  # here": (
                "x = torch.from_numpy(np.array([buffer[i] for i in picked], dtype=np.float32))  # here"
            ),
        },
    ),
    (
        "workers-started-every-epoch",
        "loader = DataLoader(data, num_workers=4)\nfor x in loader:  # here\n    train(x)",
        {
            "loader = DataLoader(data, num_workers=4)": (
                "loader = DataLoader(data, num_workers=4, persistent_workers=True)"
            )
        },
    ),
    (
        "ddp-gradients-copied",
        "model = nn.parallel.DistributedDataParallel(model)\nloss.backward()  # here",
        {
            "model = nn.parallel.DistributedDataParallel(model)": (
                "model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)"
            )
        },
    ),
    (
        "ddp-buffers-broadcast",
        "model = nn.parallel.DistributedDataParallel(model, broadcast_buffers=True)\ny = model(x)  # here",
        {
            "model = nn.parallel.DistributedDataParallel(model, broadcast_buffers=True)": (
                "model = nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)"
            )
        },
    ),
    (
        "cache-emptied-in-step",
        "for x in xs:\n    train(x)\n    torch.cuda.empty_cache()  # here",
        {"    torch.cuda.empty_cache()  # here": "    # here"},
    ),
    (
        "barrier-in-step",
        "import torch.distributed as dist\nfor x in xs:\n    train(x)\n    dist.barrier(group)  # here",
        {"    dist.barrier(group)  # here": "    # here"},
    ),
    (
        "garbage-collected-in-step",
        "import gc\nfor x in xs:\n    train(x)\n    gc.collect()  # here",
        {"    gc.collect()  # here": "    # here"},
    ),
    (
        "gradients-clipped-one-by-one",
        "from torch.nn.utils import clip_grad_norm_ as clip\nnorm = clip(ps, 1.0, foreach=False)  # here",
        {"norm = clip(ps, 1.0, foreach=False)  # here": "norm = clip(ps, 1.0)  # here"},
    ),
    (
        "logits-for-all-positions",
        "def f(self):\n    self.out = nn.Linear(8, 9)\ndef g(self, h):\n    return self.out(h.x)[:, -1] + 1  # here",
        {"    return self.out(h.x)[:, -1] + 1  # here": "    return self.out(h.x[:, -1]) + 1  # here"},
    ),
    (
        "device-synchronized-in-step",
        "for x in xs:\n    train(x)\n    torch.cuda.synchronize()  # here",
        {"    torch.cuda.synchronize()  # here": "    # here"},
    ),
    (
        "distribution-arguments-validated",
        "y = torch.distributions.Normal(0.0, x)  # here",
        {
            "from torch.utils.data import DataLoader": (
                "from torch.utils.data import DataLoader\n\n"
                "torch.distributions.Distribution.set_default_validate_args(False)"
            )
        },
    ),
    (
        "cat-in-loop",
        "rows = torch.empty(0, 8)\nfor x in xs:\n    rows = torch.cat([rows, model(x)], dim=0)  # here\nprint(rows)",
        {
            "rows = torch.empty(0, 8)": "rows = [torch.empty(0, 8)]",
            "    rows = torch.cat([rows, model(x)], dim=0)  # here": (
                "    rows.append(model(x))  # here\nrows = torch.cat(rows, dim=0)"
            ),
        },
    ),
    (
        "host-sync-scalar-readback",
        "for x in xs:\n    total += loss(x).item()  # here",
        {"    total += loss(x).item()  # here": "    total += loss(x).detach()  # here"},
    ),
    (
        "host-sync-scalar-readback",
        "for value in y.amax(dim=1):\n    counts[int(value.item())] += 1  # here",
        {
            "for value in y.amax(dim=1):": "for value in y.amax(dim=1).tolist():",
            "    counts[int(value.item())] += 1  # here": "    counts[int(value)] += 1  # here",
        },
    ),
    (
        "host-sync-scalar-readback",
        "total = sum(v.item() for v in losses.detach() if v.item() > 0)  # here",
        {
            "total = sum(v.item() for v in losses.detach() if v.item() > 0)  # here": (
                "total = sum(v for v in losses.detach().tolist() if v > 0)  # here"
            )
        },
    ),
    (
        "grad-graph-never-consumed",
        "def validate():\n    y = model(\n        x,\n    )  # here\n    return y",
        {
            "    y = model(": "    with torch.no_grad():\n        y = model(",
            "        x,": "            x,",
            "    )  # here": "        )  # here",
        },
    ),
    (
        "fp32-matmul-no-tf32",
        "y = model(x)  # here",
        {
            "from torch.utils.data import DataLoader": (
                'from torch.utils.data import DataLoader\n\ntorch.set_float32_matmul_precision("high")'
            )
        },
    ),
    (
        "fp32-on-ordinary-cores",
        "loss = loss_fn(model(x), y)  # here\nloss.backward()",
        {
            "loss = loss_fn(model(x), y)  # here": (
                'with torch.autocast("cuda", dtype=torch.bfloat16):\n    loss = loss_fn(model(x), y)  # here'
            )
        },
    ),
    (
        "conv-bias-before-batchnorm",
        "conv = nn.Conv2d(3, 64, 3)\nnorm = nn.BatchNorm2d(64)\nx = conv(x)  # here\nx = norm(x)",
        {"conv = nn.Conv2d(3, 64, 3)": "conv = nn.Conv2d(3, 64, 3, bias=False)"},
    ),
    (
        "conv-bias-before-batchnorm",
        "conv = nn.Conv2d(3, 64, 3)\nmodel = nn.Sequential(conv, nn.BatchNorm2d(64), nn.ReLU())\nx = model(x)  # here",
        {"conv = nn.Conv2d(3, 64, 3)": "conv = nn.Conv2d(3, 64, 3, bias=False)"},
    ),
    (
        "convolution-layout-converted",
        "model = build().cuda()\ny = model(x)  # here",
        {"model = build().cuda()": "model = build().cuda().to(memory_format=torch.channels_last)"},
    ),
    (
        "anomaly-mode-enabled",
        "torch.autograd.set_detect_anomaly(True)\nloss.backward()  # here",
        {"torch.autograd.set_detect_anomaly(True)": "torch.autograd.set_detect_anomaly(False)"},
    ),
    (
        "anomaly-mode-enabled",
        "with torch.autograd.detect_anomaly():\n    loss.backward()  # here",
        {"with torch.autograd.detect_anomaly():": "with torch.autograd.set_detect_anomaly(False):"},
    ),
    (
        "hidden-contiguous-copy",
        "y = (x.transpose(1, 2).contiguous() - mean)  # here",
        {"y = (x.transpose(1, 2).contiguous() - mean)  # here": "y = (x.transpose(1, 2) - mean)  # here"},
    ),
    (
        "torch-compile-recompilation",
        "run = torch.compile(loss, dynamic=False)\nrun(x)  # here",
        {"run = torch.compile(loss, dynamic=False)": "run = torch.compile(loss, dynamic=True)"},
    ),
    (
        "elementwise-op-flood",
        "def gelu(x):\n    y = torch.tanh(0.8 * x)  # here\n    return 0.5 * x * (1 + y)",
        {"def gelu(x):": "@torch.compile\ndef gelu(x):"},
    ),
    (
        "dtype-ping-pong",
        "x = torch.relu(layer(x.bfloat16())).float()  # here",
        {"x = torch.relu(layer(x.bfloat16())).float()  # here": "x = torch.relu(layer(x.bfloat16()))  # here"},
    ),
    (
        "weights-cast-every-call",
        """\
class Net(nn.Module):
    def build(self):
        self.first = nn.Linear(
            8, 9
        )
        self.last = nn.Conv1d(9, 8, 1, bias=False)
    def run(self, x):
        return self.last(torch.relu(self.first(x)))  # here""",
        {
            "        )": "        ).to(torch.bfloat16)",
            "        self.last = nn.Conv1d(9, 8, 1, bias=False)": (
                "        self.last = nn.Conv1d(9, 8, 1, bias=False).to(torch.bfloat16)"
            ),
        },
    ),
    (
        "weights-cast-every-call",
        "model = Net().eval()\ny = model(x)  # here",
        {"model = Net().eval()": "model = Net().eval().to(torch.bfloat16)"},
    ),
    (
        "index-gradient-accumulated",
        'y = torch.cat([self.h[edge["from"]], f(self.h[edge["to"]])])  # here',
        {
            'y = torch.cat([self.h[edge["from"]], f(self.h[edge["to"]])])  # here': (
                'y = torch.cat([self.h.index_select(0, edge["from"]), f(self.h.index_select(0, edge["to"]))])  # here'
            )
        },
    ),
    (
        "embedding-gradient-dense",
        """\
table = nn.Embedding(100_000, 8)
small = nn.Embedding(9, 8)
some = nn.Embedding(n, 8)
opt = optim.SGD(table.parameters(), 0.1)
y = table(x) + small(x) + some(x)  # here""",
        {"table = nn.Embedding(100_000, 8)": "table = nn.Embedding(100_000, 8, sparse=True)"},
    ),
    (
        "embedding-gradient-dense",
        "opt = optim.Adagrad(ps, lr=0.1)\ny = nn.functional.embedding(x, w, sparse=False)  # here",
        {
            "y = nn.functional.embedding(x, w, sparse=False)  # here": (
                "y = nn.functional.embedding(x, w, sparse=True)  # here"
            )
        },
    ),
]

DECLINED: list[tuple[str, str, str]] = [
    ("optimizer-single-tensor", "a = optim.SGD(one)\nb = optim.SGD(two)\nstep()  # here", "creates 2 of the kind"),
    ("optimizer-single-tensor", "a = optim.SGD(one, **more)\na.step()  # here", "through `*` or `**`"),
    ("optimizer-single-tensor", "a = optim.Adam(one)\na.step()  # here", "does not create the optimizer"),
    ("optimizer-single-tensor", "a = optim.SGD(one, fused=quick)\na.step()  # here", "already has `fused=quick`"),
    ("optimizer-single-tensor", "a, b = both\nb = optim.SGD(one)\na.step()  # here", "does not use"),
    (
        "dataloader-num-workers-zero",
        "loader = DataLoader(a)\nother = DataLoader(b)\ndef f(loader):\n    for x in loader:  # here\n        x()",
        "creates 2 of the kind",
    ),
    ("dataloader-num-workers-zero", "held_out = DataLoader(a)\nfor x in batches:  # here\n    x()", "does not use"),
    ("zero-grad-memset", "optimizer.zero_grad(set_to_none=flag)  # here", "does not pass `set_to_none=False`"),
    ("dataloader-num-workers-zero", "loader = Loader(data)\nfor x in loader:  # here\n    f(x)", "does not create the"),
    ("tensor-created-on-cpu-then-moved", "x = torch.ones(4).to(torch.float16)  # here", "more than a device"),
    ("tensor-created-on-cpu-then-moved", "x = make(4).to(device)  # here", "do not contain a `torch` factory"),
    ("tensor-from-python-data", "x = torch.tensor([1, 2], device=d)  # here", "only a list"),
    (
        "cat-in-loop",
        "rows = first\nfor x in xs:\n    rows = torch.cat([rows, x])  # here\n    print(rows)",
        "does more with `rows`",
    ),
    ("cat-in-loop", "for x in xs:\n    rows = torch.cat([rows, x])  # here\nprint(rows)", "first value"),
    (
        "cat-in-loop",
        "rows = first\nfor x in xs:\n    rows = torch.cat([x, rows])  # here\nprint(rows)",
        "do not contain a single",
    ),
    ("host-sync-scalar-readback", "print(loss.item())  # here", "do not add"),
    ("host-sync-scalar-readback", "for v in vs:\n    f(v.item(), v)  # here", "do not add"),
    ("host-sync-scalar-readback", "for v in vs:\n    f(v.item())  # here\nprint(v)", "do not add"),
    ("host-sync-scalar-readback", "for v in map(f, vs):\n    g(v.item())  # here", "do not add"),
    ("host-sync-scalar-readback", "for i, v in enumerate(vs):\n    g(v.item())  # here", "do not add"),
    ("cache-emptied-in-step", "if full():\n    torch.cuda.empty_cache()  # here", "only statement"),
    ("barrier-in-step", "work = dist.barrier(async_op=True)  # here", "only calls `barrier`"),
    ("garbage-collected-in-step", "found = gc.collect()  # here", "only calls `collect`"),
    ("gradients-clipped-one-by-one", "nn.utils.clip_grad_norm_(ps, 1.0)  # here", "clips with `foreach=False`"),
    ("gradients-clipped-one-by-one", "nn.utils.clip_grad_norm_(ps, 1.0, foreach=slow)  # here", "clips with"),
    ("gradients-clipped-one-by-one", "optim.SGD(ps, foreach=False)  # here", "clips with"),
    ("logits-for-all-positions", "out = nn.LSTM(8, 9)\ny = out(h)[:, -1]  # here", "a single `Linear`"),
    ("logits-for-all-positions", "out = nn.Linear(8, 9)\ny = out(h)[:, a:b]  # here", "select one position"),
    ("logits-for-all-positions", "out = nn.Linear(8, 9)\ny = out(h)[-1]  # here", "select one position"),
    ("logits-for-all-positions", "out = nn.Linear(8, 9)\ny = out(h + 1)[:, -1]  # here", "not a plain name"),
    ("logits-for-all-positions", "y = model(h)[:, -1]  # here", "does not show which call creates `model`"),
    ("device-synchronized-in-step", "a = torch.cuda.synchronize()  # here", "only calls"),
    ("tensor-from-python-data", "np = 1\nx = torch.tensor([1.0])  # here", "uses the name `np`"),
    (
        "conv-bias-before-batchnorm",
        "c = nn.Conv2d(3, 6, 3)\nm = nn.Sequential(c, nn.BatchNorm2d(6))\ny = m(x) + c(x)  # here",
        "do not contain one convolution",
    ),
    ("grad-graph-never-consumed", "def forward(self, x):\n    return net(x)  # here", "belongs to a model"),
    ("grad-graph-never-consumed", "if model(x):  # here\n    pass", "not a complete statement"),
    ("fp32-on-ordinary-cores", "model(x).backward()  # here", "forward pass"),
    ("conv-bias-before-batchnorm", "y = self.norm(self.conv(x))  # here", "do not contain one convolution"),
    ("hidden-contiguous-copy", "y = x.reshape(2, 3)  # here", "do not contain a single call of `contiguous`"),
    (
        "elementwise-op-flood",
        "def f(x):\n    for y in x:\n        x = x + y  # here\n    return x",
        "their own function",
    ),
    ("dtype-ping-pong", "y = x.float() + z.float()  # here", "a single cast to float32"),
    ("dtype-ping-pong", "y = x.half() + z.to(torch.float, copy=True)  # here", "a single cast to float32"),
    ("dtype-ping-pong", "y = (\n    x  # kept\n    .float()\n)  # here", "has a comment beside it"),
    ("weights-cast-every-call", "y = F.linear(x, w)  # here", "do not call a layer"),
    ("weights-cast-every-call", "y = net.first(x)  # here", "do not call a layer"),
    ("index-gradient-accumulated", "y = h[0] + h[:, i] + h[a:b] + h[..., i]  # here", "do not select rows"),
    ("index-gradient-accumulated", "y = h[order[i]]  # here", "do not select rows"),
    ("index-gradient-accumulated", "h[i] = y  # here", "do not select rows"),
    ("index-gradient-accumulated", "h[i] += y  # here", "do not select rows"),
    ("index-gradient-accumulated", "del h[i]  # here", "do not select rows"),
    ("index-gradient-accumulated", "y = h[\n    i  # rows\n]  # here", "has a comment"),
    ("embedding-gradient-dense", "t = nn.Embedding(n, 9)\ny = t(x)  # here", "does not create the optimizer"),
    (
        "embedding-gradient-dense",
        "t = nn.Embedding(n, 9)\no = optim.AdamW(t.parameters())\ny = t(x)  # here",
        "does not take sparse",
    ),
    (
        "embedding-gradient-dense",
        "t = nn.Embedding(n, 9)\no = optim.SGD(ps, lr=0.1, momentum=0.9)\ny = t(x)  # here",
        "does not take sparse",
    ),
    (
        "embedding-gradient-dense",
        "t = nn.Embedding(n, 9)\no = optim.SGD(ps)\nnn.utils.clip_grad_norm_(ps, 1)\ny = t(x)  # here",
        "cannot be clipped",
    ),
    (
        "moving-average-per-parameter",
        "for a, p in zip(xs, ys):\n    a.mul_(0.9).add_(p, alpha=0.2)  # here",
        "may not add up",
    ),
    (
        "moving-average-per-parameter",
        "for a, p in zip(xs, ys):\n    a.mul_(d).add_(p, alpha=1 - e)  # here",
        "may not add up",
    ),
    (
        "moving-average-per-parameter",
        "for a, p in zip(xs, ys):\n    a.mul_(d)\n    p.add_(a, alpha=1 - d)  # here",
        "may not add up",
    ),
    (
        "moving-average-per-parameter",
        "for a, p in zip(xs, ys):\n    a.mul_(d)\n    print(a)\n    a.add_(p, alpha=1 - d)  # here",
        "does more than",
    ),
    (
        "moving-average-per-parameter",
        "for a, p in zip(xs, ys):\n    a.lerp_(q, w)  # here",
        "tensors of `zip`",
    ),
    (
        "moving-average-per-parameter",
        "for a, p in zip(xs, ys):\n    a.lerp_(p, w[a])  # here",
        "tensors of `zip`",
    ),
    ("moving-average-per-parameter", "for a in xs:\n    a.lerp_(ys[a], w)  # here", "iterate over a `zip`"),
    ("moving-average-per-parameter", "a.lerp_(b, w)  # here", "not in a separate loop"),
    (
        "moving-average-per-parameter",
        "for a, p in zip(xs, ys):  # slowly\n    a.lerp_(p, w)  # here",
        "contains a comment",
    ),
    (
        "finite-check-per-tensor",
        "for g in gs:\n    if torch.isnan(g).any():  # here\n        a()\n    b(g)",
        "does more than check one tensor",
    ),
    (
        "finite-check-per-tensor",
        "for g in gs:\n    if torch.isfinite(g).all():  # here\n        good += 1",
        "does more than check one tensor",
    ),
    (
        "finite-check-per-tensor",
        "for g in gs:\n    if g is None or torch.isnan(g).any():  # here\n        a()",
        "does more than check one tensor",
    ),
    (
        "finite-check-per-tensor",
        "for g in gs:\n    if x is not None and torch.isnan(g).any():  # here\n        a()",
        "does more than check one tensor",
    ),
    (
        "finite-check-per-tensor",
        "for g in gs:\n    if torch.isnan(g).any():  # here\n        a()\n    else:\n        b()",
        "does more than check one tensor",
    ),
    (
        "finite-check-per-tensor",
        "for g in gs:\n    assert not torch.isnan(g).any() and g is not None  # here",
        "does more than check one tensor",
    ),
    ("finite-check-per-tensor", "for g in make(f):\n    assert torch.isfinite(g).all()  # here", "a second time"),
    ("finite-check-per-tensor", "assert torch.isfinite(g).all()  # here", "not in a loop"),
    (
        "finite-check-per-tensor",
        "for x in xs:\n    def f(g):\n        assert torch.isfinite(g).all()  # here",
        "not in a loop",
    ),
    (
        "finite-check-per-tensor",
        'for g in gs:\n    assert torch.isfinite(g).all(), """a\nb"""  # here',
        "multi-line string",
    ),
    (
        "constant-rebuilt-every-step",
        "for x in xs:\n    m = torch.ones(len(x))  # here\n    f(m)",
        "names that are not",
    ),
    (
        "constant-rebuilt-every-step",
        "for x in xs:\n    m = torch.rand(9)  # here\n    f(m)",
        "names that are not",
    ),
    (
        "constant-rebuilt-every-step",
        "for x in xs:\n    m = torch.empty(9)  # here\n    f(m)",
        "names that are not",
    ),
    ("constant-rebuilt-every-step", "for x in xs:\n    m = torch.zeros(9)  # here\n    m[0] += x", "writes to `m`"),
    ("constant-rebuilt-every-step", "for x in xs:\n    m = torch.zeros(9)  # here\n    m.add_(x)", "writes to `m`"),
    ("constant-rebuilt-every-step", "for x in xs:\n    m = torch.zeros(9)  # here\n    f(x, out=m)", "writes to `m`"),
    (
        "constant-rebuilt-every-step",
        "for x in xs:\n    m = torch.zeros(9)  # here\n    m = m + x",
        "more than one value",
    ),
    ("constant-rebuilt-every-step", "for x in xs:\n    f(torch.zeros(9))  # here", "a name"),
    ("constant-rebuilt-every-step", "for x in xs:\n    m = torch.zeros(9)  # here", "only statement"),
    (
        "constant-rebuilt-every-step",
        "for x in xs:\n    if x:\n        m = torch.zeros(9)  # here\n        f(m)",
        "names that are not",
    ),
    (
        "constant-rebuilt-every-step",
        "def step():\n    m = torch.zeros(late)  # here\n    f(m)\nlate = 9",
        "names that are not",
    ),
    (
        "constant-rebuilt-every-step",
        (
            "class Net(nn.Module):\n    def __init__(self):\n        self.n = 1\n    def grow(self):\n"
            "        self.n += 1\n    def forward(self):\n        m = torch.zeros(self.n)  # here\n        return m"
        ),
        "may depend on the module's arguments",
    ),
    (
        "constant-rebuilt-every-step",
        "class Net:\n    def forward(self):\n        m = torch.zeros(9)  # here\n        return m",
        "not in a module",
    ),
    (
        "constant-rebuilt-every-step",
        (
            "class Net(nn.Module):\n    def __init__(self):\n        self.n = 1\n    def forward(self):\n"
            "        m = torch.zeros(self.n).mul_(x)  # here\n        return m"
        ),
        "writes to the tensor",
    ),
    ("embedding-gradient-dense", "o = optim.SGD(ps)\ny = model(x)  # here", "do not look up"),
    ("embedding-gradient-dense", "t = nn.Embedding(7, 9)\no = optim.SGD(ps)\ny = t(x)  # here", "do not look up"),
    ("elementwise-op-flood", "def f(x):\n    print(x)\n    return x + 1  # here", "their own function"),
]


# Rule, source and the source afterwards, where lines come or go.
LAYOUTS: list[tuple[str, str, str]] = [
    (
        "dtype-ping-pong",
        "y = (\n\tlayer(x)\n\t.to(dtype=torch.float)\n)  # here",
        "y = (\n\tlayer(x)\n)  # here",
    ),
    (
        "dtype-ping-pong",
        "y = f'{(x.float()).sum()}' + \"é\"  # here",
        "y = f'{(x).sum()}' + \"é\"  # here",
    ),
    (
        "index-gradient-accumulated",
        "y = g(h[\n\tsrc.long()\n])  # here",
        "y = g(h.index_select(0, src.long()))  # here",
    ),
    (
        "moving-average-per-parameter",
        (
            "@torch.no_grad()\ndef update(average, model, decay=0.99):\n"
            "    for a, p in zip(average.parameters(), model.parameters()):\n"
            "        a.mul_(decay).add_(p, alpha=1 - decay)  # here"
        ),
        (
            "@torch.no_grad()\ndef update(average, model, decay=0.99):\n"
            "    torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - decay)  # here"
        ),
    ),
    (
        "moving-average-per-parameter",
        "for p, a in zip(model.parameters(), averages, strict=True):\n    a.lerp_(p.data, weight=0.01)  # here",
        "torch._foreach_lerp_(list(averages), [p.data for p in model.parameters()], 0.01)  # here",
    ),
    (
        "moving-average-per-parameter",
        (
            "for one, two in zip(self.target_network.parameters(), self.network.parameters()):\n"
            "\tone.data.copy_((1. - self.tau) * one.data + two.data * self.tau)  # here\nf()"
        ),
        (
            "torch._foreach_lerp_(\n"
            "\t[one.data for one in self.target_network.parameters()],\n"
            "\t[two.data for two in self.network.parameters()],\n"
            "\tself.tau,\n)  # here\nf()"
        ),
    ),
    (
        "moving-average-per-parameter",
        (
            "if late:\n    for (_, a), (_, p) in zip(old.items(), new.items()):\n"
            "        a.mul_(0.9)\n        a.add_(p, alpha=0.1)  # here"
        ),
        "if late:\n    torch._foreach_lerp_([a for (_, a) in old.items()], [p for (_, p) in new.items()], 0.1)  # here",
    ),
    (
        "finite-check-per-tensor",
        "for gradient in gradients:\n    assert torch.isfinite(gradient).all(), f'é'  # here",
        (
            "if not torch.isfinite(torch.nn.utils.get_total_norm(gradients)):\n"
            "    for gradient in gradients:\n        assert torch.isfinite(gradient).all(), f'é'  # here"
        ),
    ),
    (
        "finite-check-per-tensor",
        (
            "def check(self):\n\tfor name, p in self.net.named_parameters():\n\t\tif p.grad is None: continue\n"
            "\t\tif (~p.grad.isfinite()).any().item():  # here\n\t\t\traise ValueError(\n"
            "\t\t\t\tname,  # as told\n\n\t\t\t)\n\treturn"
        ),
        (
            "def check(self):\n\tif not torch.isfinite(\n\t\ttorch.nn.utils.get_total_norm("
            "[p.grad for name, p in self.net.named_parameters() if p.grad is not None])\n\t):\n"
            "\t\tfor name, p in self.net.named_parameters():\n\t\t\tif p.grad is None: continue\n"
            "\t\t\tif (~p.grad.isfinite()).any().item():  # here\n\t\t\t\traise ValueError(\n"
            "\t\t\t\t\tname,  # as told\n\n\t\t\t\t)\n\treturn"
        ),
    ),
    (
        "finite-check-per-tensor",
        "if any(torch.isnan(p.grad).any() or p.grad.isinf().any() for p in ps if p.requires_grad):  # here\n    stop()",
        (
            "if not torch.isfinite(torch.nn.utils.get_total_norm("
            "[p.grad for p in ps if p.grad is not None if p.requires_grad])) and "
            "any(torch.isnan(p.grad).any() or p.grad.isinf().any() for p in ps if p.requires_grad):  # here\n    stop()"
        ),
    ),
    (
        "finite-check-per-tensor",
        "print(all(bool(torch.isfinite(w).all()) for w in net.parameters()))  # here",
        (
            "print((bool(torch.isfinite(torch.nn.utils.get_total_norm(net.parameters()))) or "
            "all(bool(torch.isfinite(w).all()) for w in net.parameters())))  # here"
        ),
    ),
    (
        "constant-rebuilt-every-step",
        """\
n = 9
for epoch in range(9):
\tfor x in xs:
\t\tmask = torch.ones(n, n).triu(1).bool()  # here
\t\ty = attend(x, mask)""",
        """\
n = 9
mask = torch.ones(n, n).triu(1).bool()  # here
for epoch in range(9):
\tfor x in xs:
\t\ty = attend(x, mask)""",
    ),
    (
        "constant-rebuilt-every-step",
        """\
def build(n, /, device="é"):
    def step(x):
        # of the last 9
        window = torch.hann_window(n, device=device)  # here
        return x * window
    return step""",
        """\
def build(n, /, device="é"):
    window = torch.hann_window(n, device=device)  # here
    def step(x):
        # of the last 9
        return x * window
    return step""",
    ),
    (
        "constant-rebuilt-every-step",
        """\
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n, self.m = n, 2

    def forward(self, x):
        near = torch.ones(self.n, self.n)  # here
        return attend(x, near.tril().triu(-self.m).bool())""",
        """\
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n, self.m = n, 2
        self.register_buffer("kept_near", torch.ones(self.n, self.n), persistent=False)

    def forward(self, x):
        near = self.kept_near  # here
        return attend(x, near.tril().triu(-self.m).bool())""",
    ),
    (
        "constant-rebuilt-every-step",
        """\
SIZE = 9
class Net(torch.nn.Module):
\tdef __init__(self):
\t\tsuper().__init__()

\tdef forward(self, x):
\t\tplaces = torch.arange(SIZE, dtype=torch.long, device=x.device)  # here
\t\treturn f(x + places, places)""",
        """\
SIZE = 9
class Net(torch.nn.Module):
\tdef __init__(self):
\t\tsuper().__init__()
\t\tself.register_buffer("kept_places", torch.arange(SIZE, dtype=torch.long), persistent=False)

\tdef forward(self, x):
\t\tplaces = self.kept_places  # here
\t\treturn f(x + places, places)""",
    ),
]


def changed(rule: str, source: str) -> Change:
    """What the rule makes of a source whose finding is on the line of HERE."""
    line = next(at for at, text in enumerate(source.splitlines(), 1) if text.endswith(HERE))
    code = Code(source)
    around = [name for name in ("validate", "forward", "gelu", "f") if f"def {name}(" in source]
    spot = Spot(range(line, line + 1), next(iter(around), "<module>"))
    return RULES[rule]().fixer(code, spot, facts(RULES[rule], FACTS.get(rule, {})))


def facts(rule: type[Rule], given: Mapping[str, object]) -> Any:  # noqa: ANN401 - each rule has its own
    """Evidence with the given fields, all others empty."""
    kind = rule.evidence()
    assert kind is not None
    hints = get_type_hints(kind)
    empty = {each.name: _empty(hints[each.name]) for each in fields(kind)}
    return kind(**(empty | dict(given)))


def _empty(kind: object) -> object:
    return kind(()) if kind is Sizes else kind(0) if isinstance(kind, type) and issubclass(kind, (int, float)) else ""


def test_at_least_fifteen_rules_change_code_and_each_has_a_case() -> None:
    assert len(FIXERS) >= 15
    assert sorted({rule for rule, _, _ in (*CASES, *LAYOUTS)}) == FIXERS


def test_the_page_names_each_rule_that_changes_code() -> None:
    page = (ROOT / "docs" / "fixes.md").read_text(encoding="utf-8")
    table = page.partition("## Rules that change code")[2].partition("\n\nTorchTidy looks for a constructor")[0]
    assert sorted({line.split()[1] for line in table.splitlines() if line.startswith("| ")} - {"rule"}) == FIXERS


@pytest.mark.parametrize(("rule", "source", "lines"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_only_the_lines_of_the_fix_change(rule: str, source: str, lines: dict[str, str], newline: str) -> None:
    before = (TRAIN + source + "\n").replace("\n", newline)
    change = changed(rule, before)
    expected = newline.join(lines.get(line, line).replace("\n", newline) for line in before.split(newline))
    assert spliced(before, change.splices) == expected
    assert not collide(change.splices)
    assert change.safety in {"same results", "same up to rounding"} or change.safety.startswith("changes behaviour: ")


@pytest.mark.parametrize(("rule", "source", "lines"), CASES, ids=[case[0] for case in CASES])
def test_a_second_time_is_declined(rule: str, source: str, lines: dict[str, str]) -> None:
    before = TRAIN + source + "\n"
    once = spliced(before, changed(rule, before).splices)
    compile(once, "train.py", "exec")
    with pytest.raises(Unfixable):
        changed(rule, once)


@pytest.mark.parametrize(("rule", "source", "expected"), LAYOUTS, ids=[case[0] for case in LAYOUTS])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_odd_layouts_keep_their_form(rule: str, source: str, expected: str, newline: str) -> None:
    before, after = ((TRAIN + text + "\n").replace("\n", newline) for text in (source, expected))
    assert spliced(before, changed(rule, before).splices) == after
    if HERE in after:
        with pytest.raises(Unfixable):
            changed(rule, after)


MASK = """\
import torch

class Net(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n, self.m = n, 2

    def mask(self):
        near = torch.ones(self.n, self.n)
        return near.tril().triu(-self.m).bool()

    def other(self, near):
        return self.mask() & near
"""


def test_a_constant_goes_on_to_its_only_use() -> None:
    rule = RULES["constant-rebuilt-every-step"]
    change = rule().fixer(Code(MASK), Spot(range(9, 10), "mask"), facts(rule, {}))
    made = "torch.ones(self.n, self.n).tril().triu(-self.m).bool()"
    after = MASK.replace("        near = torch.ones(self.n, self.n)\n", "")
    after = after.replace("near.tril().triu(-self.m).bool()", "self.kept_mask")
    after = after.replace("n, 2\n", f'n, 2\n        self.register_buffer("kept_mask", {made}, persistent=False)\n')
    assert spliced(MASK, change.splices) == after


SEVERAL = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 9

    def tables(self):
        places = torch.arange(self.n)
        rates = torch.linspace(0, 1, self.n)
        return places + rates, places * rates

    def places(self, x):
        x = f(x, torch.ones(self.n), torch.ones(9))
        return x + f(torch.ones(self.n))

    def forward(self, x):
        places = torch.zeros(self.n)
        return f(places, x)
"""


def test_each_constant_of_a_module_has_a_name_of_its_own_so_that_all_changes_fit() -> None:
    rule, code = RULES["constant-rebuilt-every-step"], Code(SEVERAL)
    changes = [rule().fixer(code, Spot(range(at, at + 1), ""), facts(rule, {})) for at in (9, 10, 14, 15, 18)]
    splices = [splice for change in changes for splice in change.splices]
    assert not collide(splices)
    names = {"tables_places", "rates", "ones_2", "ones_4", "forward_places"}
    after = spliced(SEVERAL, splices)
    assert all(after.count(f'register_buffer("kept_{name}",') == 1 for name in names)
    assert all(after.count(f"self.kept_{name}") == 1 for name in names)


def test_indices_of_several_dimensions_are_looked_up() -> None:
    rule = RULES["index-gradient-accumulated"]
    given = facts(rule, {"table": Sizes((9, 4)), "picked": Sizes((2, 5, 4))})
    source, spot = f"{TRAIN}y = self.table[words] + 1\n", Spot(range(4, 5), "<module>")
    change = rule().fixer(Code(source), spot, given)
    assert spliced(source, change.splices) == f"{TRAIN}y = torch.nn.functional.embedding(words, self.table) + 1\n"
    deep = facts(rule, {"table": Sizes((9, 4, 4)), "picked": Sizes((2, 5, 4, 4))})
    with pytest.raises(Unfixable, match="several dimensions"):
        rule().fixer(Code(source), spot, deep)


def test_a_list_of_arrays_is_stacked() -> None:
    source = f"{TRAIN}import numpy\nx = torch.tensor([a, b])\n"
    spot = Spot(range(5, 6), "<module>")
    rule = RULES["tensor-from-python-data"]
    change = rule().fixer(Code(source), spot, facts(rule, {"holds_arrays": True}))
    assert "x = torch.from_numpy(numpy.stack([a, b]))" in spliced(source, change.splices)
    assert change.check


def test_collections_that_python_starts_have_no_statement_to_remove() -> None:
    rule = RULES["garbage-collected-in-step"]
    with pytest.raises(Unfixable, match="Python starts the collections"):
        rule().fixer(
            Code("import gc\ngc.collect()\nf()\n"), Spot(range(2, 3), "<module>"), facts(rule, {"explicit": 0})
        )


def test_a_number_of_a_module_is_not_one_of_the_sizes_that_become_dynamic() -> None:
    rule, source = RULES["torch-compile-recompilation"], "import torch\n\nrun = torch.compile(fade)\nrun(x)\n"
    hint = "self.seen == 6 # (HINT: torch.compile considers integer attributes of the nn.Module to be static."
    evidence, spot = facts(rule, {"reason": hint}), Spot(range(4, 5), "<module>")
    done = spliced(source, rule().fixer(Code(source), spot, evidence).splices)
    assert done == source.replace("torch\n", "torch\n\ntorch._dynamo.config.allow_unspec_int_on_nn_module = True\n", 1)
    with pytest.raises(Unfixable, match="already"):
        rule().fixer(Code(done), spot, evidence)


def test_a_statement_without_a_comment_goes_with_its_line() -> None:
    source = f"{TRAIN}for x in xs:\n    f(x)\n    torch.cuda.empty_cache()\n"
    change = RULES["cache-emptied-in-step"]().fixer(Code(source), Spot(range(6, 7), "<module>"), None)
    assert spliced(source, change.splices) == f"{TRAIN}for x in xs:\n    f(x)\n"


@pytest.mark.parametrize(("piece", "needs_review"), [("torch.ones(1)", False), ("x + 1", False), ("buffer", True)])
def test_pieces_that_something_may_write_to_need_review(piece: str, *, needs_review: bool) -> None:
    loop = f"rows = torch.empty(0)\nfor x in xs:\n    rows = torch.cat([rows, {piece}])  # here\nprint(rows)\n"
    assert bool(changed("cat-in-loop", TRAIN + loop).check) is needs_review


@pytest.mark.parametrize(("rule", "source", "reason"), DECLINED)
def test_what_cannot_be_told_is_declined_in_words(rule: str, source: str, reason: str) -> None:
    with pytest.raises(Unfixable, match=reason.replace("*", r"\*")):
        changed(rule, TRAIN + source + "\n")
