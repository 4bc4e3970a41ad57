"""Work that is the same on both sides tells how much of a difference is the machine's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.compare.compare import Asked, compared
from tb_tidy_plugin.compare.machine import machine_of
from tb_tidy_plugin.compare.reading import asked_for
from tb_tidy_plugin.compare.recording import Chosen, chosen_steps
from tests.support.written import event, kineto_text, write

SHARED = {f"aten::op{number}": 100.0 + 10 * number for number in range(8)}
"""Eight operators and what each takes in every step, in µs."""


def recorded(folder: Path, operators: dict[str, float], steps: int = 6) -> Asked:
    """A recording of steps that hold these operators one after the other, and nothing else."""
    events, start = [], 100_000.0
    for step in range(steps):
        begin = start
        for name, time in operators.items():
            events.append(event(name, start, time))
            start += time + 1
        start += step
        events.append(event(f"ProfilerStep#{step}", begin, start - begin, cat="user_annotation"))
    folder.mkdir()
    write(folder / "w.pt.trace.json", kineto_text(events))
    return asked_for(folder, Job(()))


def scaled(factor: float, **others: float) -> dict[str, float]:
    return {name: time * factor for name, time in SHARED.items()} | others


def sides(base: Asked, candidate: Asked) -> tuple[list[Chosen], list[Chosen]]:
    return chosen_steps(base.recordings, None, "a"), chosen_steps(candidate.recordings, None, "b")


def test_all_that_is_shared_takes_twice_as_long(tmp_path: Path) -> None:
    """Then nothing but the machine need be different, and there is no clear difference."""
    base, candidate = recorded(tmp_path / "a", SHARED), recorded(tmp_path / "b", scaled(2))
    machine = machine_of(*sides(base, candidate))
    assert machine is not None
    assert machine.ratio == pytest.approx(2)
    assert machine.error == pytest.approx(0, abs=1e-6)
    comparison = compared(base, candidate)
    assert comparison.verdict == "no_clear_difference"
    assert "Work that is the same on both sides takes 2 times as long on the candidate" in comparison.notes[0]


def test_a_part_that_is_gone_is_a_difference_on_a_slower_machine_too(tmp_path: Path) -> None:
    """The baseline spends nine tenths of its step in what the candidate does not do; the rest takes twice as long."""
    base = recorded(tmp_path / "a", scaled(1, **{"aten::gone": 9_720}))
    comparison = compared(base, recorded(tmp_path / "b", scaled(2)))
    assert comparison.verdict == "faster"
    assert comparison.step_ratio is not None
    # As measured: 2160 of 10,800 µs; on one machine: 1080 of 10,800.
    assert comparison.step_ratio.value == pytest.approx(0.2, rel=0.02)
    assert comparison.step_ratio.low == pytest.approx(0.1, rel=0.1)
    assert comparison.step_ratio.high == pytest.approx(0.2, rel=0.1)


def test_one_operator_that_really_became_faster_is_not_the_machine(tmp_path: Path) -> None:
    """Though it takes three quarters of the step."""
    base = recorded(tmp_path / "a", scaled(1, **{"aten::large": 3_000}))
    candidate = recorded(tmp_path / "b", scaled(1, **{"aten::large": 1_000}))
    machine = machine_of(*sides(base, candidate))
    assert machine is not None
    assert machine.ratio == pytest.approx(1, rel=0.02)
    assert compared(base, candidate).verdict == "faster"


def test_little_in_common_tells_nothing(tmp_path: Path) -> None:
    base = recorded(tmp_path / "a", {"aten::x": 100, "aten::y": 100, "aten::z": 100})
    candidate = recorded(tmp_path / "b", {"aten::x": 200, "aten::y": 200, "aten::other": 200})
    assert machine_of(*sides(base, candidate)) is None


def test_an_operator_that_is_called_more_often_is_not_alike(tmp_path: Path) -> None:
    base = recorded(tmp_path / "a", {"aten::x": 100, "aten::y": 100, "aten::z": 100})
    events = [event("ProfilerStep#0", 0, 1000, cat="user_annotation")]
    events += [event(name, at * 110, 100) for at, name in enumerate(["aten::x", "aten::y", "aten::z"] * 2)]
    (tmp_path / "b").mkdir()
    write(tmp_path / "b" / "w.pt.trace.json", kineto_text(events))
    assert machine_of(*sides(base, asked_for(tmp_path / "b", Job(())))) is None


def test_steps_of_one_recording_ran_on_one_machine(tmp_path: Path) -> None:
    side = recorded(tmp_path / "a", SHARED)
    assert not [note for note in compared(side, side).notes if "alike" in note]
