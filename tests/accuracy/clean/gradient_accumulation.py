"""Four small batches per update, with gradients accumulated in place."""

import torch
import torch.nn.functional as F
from torch import nn

PARTS = 4


def build():
    model = nn.Sequential(
        nn.Linear(256, 512), nn.LayerNorm(512), nn.GELU(),
        nn.Linear(512, 512), nn.LayerNorm(512), nn.GELU(),
        nn.Linear(512, 20),
    )  # fmt: skip
    inputs, targets = torch.randn(24_576, 256), torch.randint(20, (24_576,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    order = iter(torch.randperm(24_576).split(4 * 96))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        for part in next(order).chunk(PARTS):
            loss = F.cross_entropy(model(inputs[part]), targets[part])
            (loss / PARTS).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step
