"""A decoder in the dense style of research code: einsum, rotary positions, caches, several statements per line."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Config:
    width: int = 32
    heads: int = 4
    layers: int = 2
    vocabulary: int = 50
    dropout: float = 0.0
    bias: bool = True
    sizes: list[int] = field(default_factory=lambda: [8, 4])

    @property
    def head(self) -> int:
        return self.width // self.heads


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x): return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x: Tensor) -> Tensor:
        return self._norm(x.float()).type_as(x) * self.weight


def rotary(q: Tensor, k: Tensor, base: float = 10000.0) -> tuple[Tensor, Tensor]:
    t, d = q.shape[-2], q.shape[-1]
    freqs = 1.0 / (base ** (torch.arange(0, d, 2)[: (d // 2)].float() / d))
    angles = torch.outer(torch.arange(t), freqs)
    cos, sin = angles.cos(), angles.sin()

    def turn(x):
        even, odd = x[..., ::2], x[..., 1::2]
        out = torch.empty_like(x)
        out[..., ::2] = even * cos - odd * sin; out[..., 1::2] = even * sin + odd * cos
        return out

    return turn(q), turn(k)


class Attention(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg = cfg
        self.qkv = nn.Linear(cfg.width, 3 * cfg.width, bias=cfg.bias)
        self.proj = nn.Linear(cfg.width, cfg.width)
        self.cache: Optional[tuple[Tensor, Tensor]] = None

    def forward(self, x: Tensor, *, mask: Optional[Tensor] = None, use_cache: bool = False) -> Tensor:
        b, t, c = x.size()
        q, k, v = (y.view(b, t, self.cfg.heads, self.cfg.head).transpose(1, 2) for y in self.qkv(x).split(c, dim=2))
        q, k = rotary(q, k)
        if use_cache:
            if self.cache is not None:
                k = torch.cat((self.cache[0], k), dim=2); v = torch.cat((self.cache[1], v), dim=2)
            self.cache = k.detach(), v.detach()
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
        if mask is not None: scores = scores.masked_fill(mask[:, :, :t, :k.shape[2]] == 0, float("-inf"))
        weights = F.softmax(scores, dim=-1) if self.cfg.dropout == 0 else F.dropout(F.softmax(scores, -1), self.cfg.dropout)
        y = torch.einsum("bhqk,bhkd->bhqd", weights, v)
        return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))


class Block(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.ln_1, self.ln_2 = RMSNorm(cfg.width), RMSNorm(cfg.width)
        self.attn = Attention(cfg)
        self.mlp = nn.ModuleDict(dict(
            c_fc=nn.Linear(cfg.width, 4 * cfg.width),
            gate=nn.Linear(cfg.width, 4 * cfg.width),
            c_proj=nn.Linear(4 * cfg.width, cfg.width),
        ))
        m = self.mlp
        self.mlpf = lambda x: m.c_proj(F.silu(m.gate(x)) * m.c_fc(x))

    def forward(self, x, **kwargs):
        x = x + self.attn(self.ln_1(x), **kwargs)
        x = x + self.mlpf(self.ln_2(x))
        return x


class GPT(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(cfg.vocabulary, cfg.width),
            h=nn.ModuleList([Block(cfg) for _ in range(cfg.layers)]),
            ln_f=RMSNorm(cfg.width),
        ))
        self.lm_head = nn.Linear(cfg.width, cfg.vocabulary, bias=False)
        self.register_buffer("bias", torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16))

    def forward(self, idx: Tensor, targets: Optional[Tensor] = None):
        x = self.transformer.wte(idx)
        for block in self.transformer.h:
            x = block(x, mask=self.bias)
        logits = self.lm_head(self.transformer["ln_f"](x))
        if targets is None:
            return logits, None
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-1)
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, count, temperature=1.0, top_k=None):
        for _ in range(count):
            cond = idx if idx.size(1) <= 16 else idx[:, -16:]
            logits, _ = self(cond)
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < v[:, [-1]]] = -float("Inf")
            probs = F.softmax(logits, dim=-1)
            idx = torch.cat((idx, torch.multinomial(probs, num_samples=1)), dim=1)
        return idx


def build():
    cfg = Config()
    model = GPT(cfg)
    decay, plain = [p for p in model.parameters() if p.dim() >= 2], [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=1e-3)

    def step():
        idx = torch.randint(0, cfg.vocabulary, (2, 12))
        x, y = idx[:, :-1], idx[:, 1:]
        logits, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model.eval(); out = model.generate(idx[:, :3], 2, top_k=5); model.train()
        return loss.item(), norm.item(), out.tolist()

    return step
