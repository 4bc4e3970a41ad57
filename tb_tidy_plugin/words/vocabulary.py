"""The closed sets of words in reports, without the modules that choose among them.

Models of reports need only the words. Every load of a cached report imports what they import: no numpy, no profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

StepBasis: TypeAlias = Literal[
    "profiler_step", "serving_step", "framework_step", "optimizer_step", "data_loader", "whole_trace", "none"
]
"""Source of the steps; `none` if only a device was recorded."""

StepSource: TypeAlias = Literal[StepBasis, "repeating_unit"]
"""Bounds of the steps: marks on the host, or a repeating sequence of kernels without marks."""

STEP_SOURCES: Mapping[StepSource, str] = {
    "profiler_step": "marked by the profiler",
    "serving_step": "marked by the inference engine",
    "framework_step": "marked by the training framework",
    "optimizer_step": "taken from optimizer steps",
    "data_loader": "taken from the data loader",
    "repeating_unit": "taken from the sequence of kernels that repeats, which may be a layer",
    "whole_trace": "no steps were marked: the whole trace counts as one",
    "none": "only device events: no steps",
}
"""Sources of steps in words."""

Oddity: TypeAlias = Literal["warmup", "outlier"]

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
"""Ways to pair a replayed kernel with its origin, most certain first."""

KNOWN_BY_WORDS: Mapping[KnownBy, str] = {
    "exact": "exact",
    "unique": "unique",
    "renamed": "by its place",
    "donor": "by an eager iteration",
}


def known_by_mark(known_by: KnownBy | None) -> str:
    """The mark behind an operator's name that is known from a graph's capture; empty for all others."""
    return f" [replayed: {KNOWN_BY_WORDS[known_by]}]" if known_by else ""


Precision: TypeAlias = Literal["exact", "aligned", "definition"]

RankPart: TypeAlias = Literal["loading", "host", "compute", "copies", "communication", "idle"]
"""Parts of a rank's step by which ranks are compared."""

Pass: TypeAlias = Literal["forward", "backward"]
"""Pass of generated code: what `torch.compile` generated for a function, or for its backward pass."""

Confidence: TypeAlias = Literal["high", "medium", "low"]

Basis: TypeAlias = Literal["bound", "replayed", "measured"]

GapReason: TypeAlias = Literal[
    "precision", "threads", "small", "launch", "layout", "slow_kernel", "waiting", "recording", "unknown"
]
"""Why a step takes longer than its floor."""

GAP_TEXTS: Mapping[GapReason, str] = {
    "precision": "wider numbers than torch.autocast would use",
    "threads": "fewer threads than the processor has cores",
    "small": "kernels too small to fill the device",
    "launch": "the host's time to get to the work",
    "layout": "conversion of memory layouts",
    "slow_kernel": "slower than the machine's peak",
    "waiting": "waiting",
    "recording": "the profiler's own work",
    "unknown": "not known",
}

MachineSource: TypeAlias = Literal["measured", "datasheet", "estimated"]
"""How the limits of a machine are known: measured there, stated by its maker, or computed from what a trace tells."""

Verdict: TypeAlias = Literal["faster", "slower", "no_clear_difference"]
"""Meaning of an interval of ratios of times."""
