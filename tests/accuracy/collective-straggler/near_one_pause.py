"""One of two ranks stops once for a while, as it does when its disk or its neighbour is busy."""

import time
from collections.abc import Callable
from itertools import count

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
WIDTH = 512
PAUSED_STEP = 5


def build() -> Callable[[], object]:
    layers = [layer for _ in range(4) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU())]
    model = DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(512, WIDTH)
    steps = count()

    def step() -> None:
        if next(steps) == PAUSED_STEP and distributed.get_rank() == 1:
            time.sleep(0.05)
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
