"""The closed sets of words that reports hold, without the modules that choose among them.

Models of reports need the words only. What they import, every look at a kept report imports, too: no numpy, no profile.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

StepBasis: TypeAlias = Literal[
    "profiler_step", "serving_step", "framework_step", "optimizer_step", "data_loader", "whole_trace", "none"
]
"""What steps were taken from; `none` where only a device was recorded."""

StepSource: TypeAlias = Literal[StepBasis, "repeating_unit"]
"""What bounds steps: marks on the host, or a sequence of kernels that repeats where nothing marks a step."""

Oddity: TypeAlias = Literal["warmup", "outlier"]

DevicePart: TypeAlias = Literal[
    "matrix", "attention", "convolution", "normalisation", "reduction", "elementwise", "optimizer", "other_compute",
    "communication_exposed", "host_to_device", "device_to_host", "device_copy",
    "idle_data_loading", "idle_compilation", "idle_garbage_collection", "idle_communication_wait",
    "idle_synchronisation", "idle_launch_bound", "idle_unknown",
]  # fmt: skip
HostPart: TypeAlias = Literal[
    "data_loading", "communication", "optimizer", "backward", "forward", "python", "other"
]  # fmt: skip
Part: TypeAlias = DevicePart | HostPart

KernelKind: TypeAlias = Literal[
    "communication",
    "attention",
    "optimizer",
    "normalisation",
    "convolution",
    "matrix",
    "reduction",
    "elementwise",
    "other",
]

TotalBasis: TypeAlias = Literal["total_allocated", "running_sum", "snapshot"]

MemoryKind: TypeAlias = Literal[
    "earlier", "parameter", "input", "activation", "gradient", "optimizer_state", "temporary", "unknown"
]

Phase: TypeAlias = Literal["prefill", "decode", "mixed", "diffusion", "unknown"]

GraphMode: TypeAlias = Literal["graph", "piecewise", "eager", "no_device"]

KnownBy: TypeAlias = Literal["exact", "unique", "renamed", "donor"]
"""How a replayed kernel and what it comes from were paired, the surest first."""

Precision: TypeAlias = Literal["exact", "aligned", "definition"]

Pass: TypeAlias = Literal["forward", "backward"]
"""Which generated code runs in: what `torch.compile` made of a function, or of its backward pass."""

Confidence: TypeAlias = Literal["high", "medium", "low"]

Basis: TypeAlias = Literal["bound", "replayed", "measured"]

Verdict: TypeAlias = Literal["faster", "slower", "no_clear_difference"]
"""What an interval of ratios of times says."""
