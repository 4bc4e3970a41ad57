"""The pairs of statements that rules offer for the corpus' slow programs: they run, and both sides compute the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tidy_plugin.benchmarks.devices import NoDeviceError, device_for
from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.benchmarks.process import MeasuringRequest
from tb_tidy_plugin.benchmarks.statements import complaint_about
from tests.accuracy.corpus import Program
from tests.accuracy.processes import measured_in
from tests.accuracy.statements import OF_RULES, SLOW, WITHOUT_STATEMENTS, pairs_of

COMPILED = ("elementwise-op-flood",)
"""Rules whose statements take the compiler 20 s."""


def parameters_of(chosen: list[Program]) -> list[object]:
    return [
        pytest.param(each, id=str(each), marks=[pytest.mark.proof] if each.rule in COMPILED else []) for each in chosen
    ]


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("program", parameters_of([each for each in OF_RULES if not each.is_drawn]))
def test_the_statements_run_and_compute_the_same(program: Program, tmp_path: Path) -> None:
    (pair, *_) = pairs_of(program)
    assert complaint_about(pair) is None
    found = measured_in(tmp_path, MeasuringRequest(rule=program.rule, pair=pair, asked="cpu", budget_s=0.02))
    assert isinstance(found, Measurement), found
    assert found.equal is not False, found.doubts
    assert found.equal or not (pair.compare or "result" in pair.after)


@pytest.mark.torch
@pytest.mark.parametrize("program", [each for each in OF_RULES if each.is_drawn], ids=str)
def test_what_only_a_gpu_shows_is_not_measured_on_a_cpu(program: Program) -> None:
    (pair, *_) = pairs_of(program)
    assert complaint_about(pair) is None
    with pytest.raises(NoDeviceError, match=r"^This needs a CUDA"):
        device_for("cpu", "", pair.devices)


def test_every_rule_has_statements_or_a_reason_for_none() -> None:
    assert {each.rule for each in SLOW} >= set(WITHOUT_STATEMENTS) - {"collective-straggler", "exposed-communication"}
