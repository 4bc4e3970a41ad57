"""Batches differ in length from step to step, and the long one is now on this rank, now on that."""

from collections.abc import Callable
from itertools import cycle

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
WIDTH, BATCH = 64, 4
LENGTHS = (192, 384)


def build() -> Callable[[], object]:
    layer = nn.TransformerEncoderLayer(WIDTH, 4, WIDTH, dropout=0.0, batch_first=True)
    model = DistributedDataParallel(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batches = [torch.randn(BATCH, length, WIDTH) for length in LENGTHS]
    turns = cycle(batches if distributed.get_rank() == 0 else batches[::-1])

    def step() -> None:
        model(next(turns)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
