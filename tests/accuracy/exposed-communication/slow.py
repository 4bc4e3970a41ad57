"""Validation of a classifier on two ranks: each batch's logits are gathered on every rank to count what is right."""

from collections.abc import Callable

import torch
from torch import Tensor, distributed, nn

RANKS = 2
BATCH, FEATURES, CLASSES = 256, 256, 8192


def count_right(logits: Tensor, labels: Tensor) -> Tensor:
    """Right answers of all ranks in this batch."""
    all_logits = [torch.empty_like(logits) for _ in range(RANKS)]
    all_labels = [torch.empty_like(labels) for _ in range(RANKS)]
    distributed.all_gather(all_logits, logits)
    distributed.all_gather(all_labels, labels)
    return (torch.cat(all_logits).argmax(1) == torch.cat(all_labels)).sum()


def build() -> Callable[[], object]:
    model = nn.Sequential(nn.Linear(FEATURES, 512), nn.GELU(), nn.Linear(512, CLASSES)).eval()
    torch.manual_seed(distributed.get_rank())
    inputs, labels = torch.randn(BATCH, FEATURES), torch.randint(CLASSES, (BATCH,))
    total = torch.zeros((), dtype=torch.long)

    @torch.inference_mode()
    def step() -> None:
        total.add_(count_right(model(inputs), labels))

    return step
