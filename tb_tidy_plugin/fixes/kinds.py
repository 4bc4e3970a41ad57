"""What constructors make, by their imported names."""

from __future__ import annotations


def is_loader(name: str) -> bool:
    """Whether it is PyTorch's `DataLoader`."""
    return name.startswith("torch.utils.data.") and name.endswith(".DataLoader")


def is_distributed(name: str) -> bool:
    """Whether it is PyTorch's `DistributedDataParallel`."""
    return name.startswith("torch.nn.parallel.") and name.endswith(".DistributedDataParallel")
