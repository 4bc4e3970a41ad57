"""Measurements in findings: shown for the very statements, and part of a saving where they may be."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.findings import Known, findings_of
from tb_tidy_plugin.benchmarks.measurement import MeasuredOn, Measurement
from tb_tidy_plugin.report.model import Finding
from tb_tidy_plugin.rulekit import Benchmark
from tb_tidy_plugin.rulekit.testing import A100 as AN_A100
from tb_tidy_plugin.rulekit.testing import draw, matches_of
from tb_tidy_plugin.rules.host_device.tensor_created_on_cpu_then_moved import TensorCreatedOnCpuThenMoved
from tests.rules.host_device.test_tensor_created_on_cpu_then_moved import ONES_TO
from tests.support.measurements import A100, THIS_CPU, measurement


def finding(on: MeasuredOn, doubts: tuple[str, ...] = ()) -> Finding:
    def measured(rule: str, pair: Benchmark) -> Measurement:
        return measurement(rule, pair, on, (0.25, 0.2, 0.3), doubts)

    profile = draw(ONES_TO, AN_A100)
    matches = matches_of(TensorCreatedOnCpuThenMoved, profile)
    (evidence,) = findings_of(profile, TensorCreatedOnCpuThenMoved(), matches, Known(measured=measured))
    return evidence.finding


def test_a_trusted_measurement_on_the_same_kind_of_device_is_the_saving() -> None:
    found = finding(A100)
    assert found.saving
    assert found.measurement
    # fill_ takes 160 µs, copy_ with the wait for the bus 250 µs; a quarter is left, at least a fifth.
    assert (found.saving.expected_ns, found.saving.high_ns) == (307_500, 328_000)
    assert found.saving.basis == ["bound", "measured"]
    assert found.measurement.on == A100


@pytest.mark.parametrize(("on", "doubts"), [(THIS_CPU, ()), (A100, ("It swings.",))])
def test_any_other_is_shown_and_not_used(on: MeasuredOn, doubts: tuple[str, ...]) -> None:
    found = finding(on, doubts)
    assert found.saving
    assert found.measurement
    assert (found.saving.expected_ns, found.saving.basis) == (410_000, ["bound"])
    assert found.measurement.on == on
