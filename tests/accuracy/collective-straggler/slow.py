"""Two ranks pack sequences sorted by length: the second one always gets the long half."""

from collections.abc import Callable

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
ALSO = {
    "exposed-communication": "the first rank waits in every collective, and alone it cannot tell waiting from transfer"
}
WIDTH, HIDDEN = 64, 256
LENGTHS = (256, 256, 448, 448, 1280, 1280, 1664, 1664)


def shard(rank: int) -> list[int]:
    """The lengths of this rank's sequences."""
    count = len(LENGTHS) // RANKS
    return sorted(LENGTHS)[rank * count : (rank + 1) * count]


def build() -> Callable[[], object]:
    layers = (nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH))
    model = DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randn(sum(shard(distributed.get_rank())), WIDTH)

    def step() -> None:
        model(tokens).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
