"""The same validation: each rank counts its own right answers, and only the counts travel."""

from collections.abc import Callable

import torch
from torch import Tensor, distributed, nn

RANKS = 2
BATCH, FEATURES, CLASSES = 256, 256, 8192


def count_right(logits: Tensor, labels: Tensor) -> Tensor:
    """Right answers of all ranks in this batch."""
    right = (logits.argmax(1) == labels).sum()
    distributed.all_reduce(right)
    return right


def build() -> Callable[[], object]:
    model = nn.Sequential(nn.Linear(FEATURES, 512), nn.GELU(), nn.Linear(512, CLASSES)).eval()
    torch.manual_seed(distributed.get_rank())
    inputs, labels = torch.randn(BATCH, FEATURES), torch.randint(CLASSES, (BATCH,))
    total = torch.zeros((), dtype=torch.long)

    @torch.inference_mode()
    def step() -> None:
        total.add_(count_right(model(inputs), labels))

    return step
