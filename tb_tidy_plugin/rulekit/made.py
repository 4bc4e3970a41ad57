"""Objects that several rules have made in another way."""

from __future__ import annotations

from tb_tidy_plugin.sources.constructors import Made


def loader(trainer: str) -> Made:
    """A `DataLoader`, with the argument of `TrainingArguments` that sets the same option."""
    return Made("`DataLoader`", "loop", _is_loader, trainer)


def distributed(trainer: str = "") -> Made:
    """A `DistributedDataParallel`, with the argument of `TrainingArguments` that sets the same option."""
    return Made("`DistributedDataParallel`", "call", _is_distributed, trainer)


def _is_loader(name: str) -> bool:
    return name.startswith("torch.utils.data.") and name.endswith(".DataLoader")


def _is_distributed(name: str) -> bool:
    return name.startswith("torch.nn.parallel.") and name.endswith(".DistributedDataParallel")
