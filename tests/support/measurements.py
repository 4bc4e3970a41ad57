"""Measurements for tests."""

from __future__ import annotations

import sys

import msgspec

from tb_tidy_plugin.benchmarks.measurement import MeasuredOn, Measurement
from tb_tidy_plugin.benchmarks.process import Measured
from tb_tidy_plugin.rulekit import Benchmark

PAIR = Benchmark("result = x * 1", "result = x", "import torch\nx = torch.ones(4, device=device)", of_events=True)
A100 = MeasuredOn(
    kind="cuda", address="cuda", name="NVIDIA A100", torch="2.13.0", runtime="CUDA 12.8", threads=8
)  # fmt: skip
THIS_CPU = MeasuredOn(kind="cpu", address="cpu", name="a processor", torch="2.13.0", runtime="", threads=2)


def measurement(
    rule: str = "some-rule",
    pair: Benchmark = PAIR,
    on: MeasuredOn = THIS_CPU,
    ratio: tuple[float, float, float] = (0.5, 0.4, 0.6),
    doubts: tuple[str, ...] = (),
    measured_at: str = "2026-01-02T03:04:05+00:00",
) -> Measurement:
    """One measurement; `ratio` is the median and the ends of the interval."""
    middle, low, high = ratio
    return Measurement(
        rule=rule, before=pair.before, after=pair.after, setup=pair.setup, on=on, before_ns=1000.0,
        after_ns=1000.0 * middle, ratio=middle, low=low, high=high, blocks=5, before_samples_ns=[1000.0] * 5,
        after_samples_ns=[1000.0 * middle] * 5, verdict="faster" if high < 1 else "slower" if low > 1 else
        "no_clear_difference", equal=True, trusted=not doubts, doubts=list(doubts), measured_at=measured_at,
    )  # fmt: skip


MEASURED_AT_ONCE = (
    sys.executable,
    "-c",
    f"input(); print({msgspec.json.encode(Measured(measurement())).decode()!r})",
)
"""A process that answers any question with a measurement."""
