"""Objects that several rules want created differently, and options of training libraries that several rules name."""

from __future__ import annotations

from collections.abc import Mapping

from tb_tidy_plugin.sources.constructors import Made


def loader(trainer: str) -> Made:
    """A `DataLoader`, with the argument of `TrainingArguments` that sets the same option."""
    return Made("`DataLoader`", "loop", _is_loader, trainer)


def distributed(trainer: str = "") -> Made:
    """A `DistributedDataParallel`, with the argument of `TrainingArguments` that sets the same option."""
    return Made("`DistributedDataParallel`", "call", _is_distributed, trainer)


def mixed_precision(dtype: str) -> Mapping[str, str]:
    """Options with which training libraries compute in `bfloat16` or `float16` where that is safe."""
    short = {"bfloat16": "bf16", "float16": "fp16"}[dtype]
    lightning = "bf16-mixed" if short == "bf16" else "16-mixed"
    return {
        "transformers": f"{short}=True",
        "lightning": f'precision="{lightning}"',
        "accelerate": f'mixed_precision="{short}"',
    }


def _is_loader(name: str) -> bool:
    return name.startswith("torch.utils.data.") and name.endswith(".DataLoader")


def _is_distributed(name: str) -> bool:
    return name.startswith("torch.nn.parallel.") and name.endswith(".DistributedDataParallel")
