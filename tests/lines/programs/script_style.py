"""A script as it grows: globals, helpers defined where used, prints, timers, everything in one long function."""

import json, math, sys, time  # noqa

import torch, torch.nn as nn, torch.nn.functional as F  # noqa

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.float32
hp = dict(lr=.05, batch=8, hidden=16, steps=2, clip=1., wd=1e-4)

X = torch.randn(32, 4, device=device); Y = (X[:, :1] * 2 - X[:, 1:2].sin() + .1 * torch.randn(32, 1))
W1 = torch.randn(4, hp["hidden"], device=device, dtype=dtype) * math.sqrt(2 / 4)
b1 = torch.zeros(hp["hidden"]); W2 = torch.randn(hp["hidden"], 1) / 4; b2 = torch.zeros(1)
params = [W1, b1, W2, b2]
for p in params: p.requires_grad = True
state = {id(p): dict(m=torch.zeros_like(p), v=torch.zeros_like(p)) for p in params}


def lr_at(i): return hp["lr"] * 0.5 * (1 + math.cos(math.pi * i / 10)) if i > 0 else hp["lr"]


def adam(p, i, b=(.9, .999), eps=1e-8):
    s = state[id(p)]
    g = p.grad + hp["wd"] * p.data
    s["m"] = b[0] * s["m"] + (1 - b[0]) * g
    s["v"] = b[1] * s["v"] + (1 - b[1]) * g * g
    m_hat, v_hat = s["m"] / (1 - b[0] ** (i + 1)), s["v"] / (1 - b[1] ** (i + 1))
    p.data -= lr_at(i) * m_hat / (v_hat.sqrt() + eps)


def main(verbose=False):
    t0 = time.time()
    history = {"loss": [], "gn": []}
    for i in range(hp["steps"]):
        perm = torch.randperm(len(X))
        for j in range(0, len(X), hp["batch"]):
            ix = perm[j:j + hp["batch"]]; xb, yb = X[ix], Y[ix]
            # forward
            h = xb @ W1 + b1
            hn = (h - h.mean(0, keepdim=True)) / (h.var(0, keepdim=True, unbiased=False) + 1e-5) ** 0.5
            a = torch.where(hn > 0, hn, 0.01 * hn)
            out = a @ W2 + b2
            loss = ((out - yb) ** 2).mean() + 1e-3 * sum((p ** 2).sum() for p in params) + \
                0.1 * (out.abs().mean() - 1).abs()
            # backward
            for p in params: p.grad = None
            loss.backward()
            gn = torch.sqrt(sum((p.grad ** 2).sum() for p in params)) if hp["clip"] else None
            if gn is not None and gn > hp["clip"]:
                for p in params: p.grad *= hp["clip"] / gn
            with torch.no_grad():
                for p in params: adam(p, i)
            history["loss"] += [loss.item()]; history["gn"].append(float(gn))
        if verbose or i % 1 == 0: msg = "%d | loss %.4f | gn %.2f | %.1fs" % (i, history["loss"][-1], history["gn"][-1], time.time() - t0); sys.stderr.write(msg + "\n")
    with torch.no_grad():
        pred = torch.cat([((x @ W1 + b1).relu() @ W2 + b2) for x in X.split(16)])
        r2 = 1 - ((pred - Y) ** 2).sum() / ((Y - Y.mean()) ** 2).sum()
        err = pred.sub(Y).abs()
        worst = err.squeeze(1).topk(3)
        print(f"r2={r2:.3f} worst={[round(v, 2) for v in worst.values.tolist()]} at {worst.indices.tolist()!r}", file=sys.stderr)
        q = torch.quantile(err, torch.tensor([.1, .5, .9])); lo, mid, hi = q
        assert hi >= mid >= lo, (lo, hi)
        report = json.dumps({"q": [float(v) for v in q], "best": min(history["loss"]), "share": (err < mid).float().mean().item()})
    return report


def build():
    return main
