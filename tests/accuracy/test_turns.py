"""Programs that are timed in turns: each runs alone, whole steps count, and what breaks says so."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.accuracy import turns
from tests.accuracy.corpus import Program
from tests.accuracy.processes import ProgramError, started
from tests.accuracy.record import STEP_TIMES
from tests.accuracy.test_harness import only
from tests.accuracy.turns import StepSeconds, Timed, in_turns

pytestmark = pytest.mark.torch

SLEEPS = """import time, torch
def build():
    def step():
        assert not torch.autograd.profiler._is_profiler_enabled
        time.sleep({})
    return step"""


def sleeping(folder: Path, seconds: float) -> Program:
    folder.mkdir()
    return only(folder, SLEEPS.format(seconds))


def steps_in(folder: Path) -> list[tuple[float, float]]:
    """When each step of a program of one process began and ended."""
    return [(start, end) for start, end, _ in STEP_TIMES.iter_unpack((folder / "steps-None").read_bytes())]


def test_programs_are_timed_without_the_profiler_and_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURNS", 4)
    monkeypatch.setattr(turns, "TURN_S", 0.1)
    programs = sleeping(tmp_path / "a", 0.02), sleeping(tmp_path / "b", 0.005)
    before, after = in_turns(tmp_path, *programs)
    assert before.wall >= 0.02 > before.cpu
    assert 0.005 <= after.wall < before.wall
    runs = sorted((*times, name) for name in "01" for times in steps_in(tmp_path / name))
    changes = [(first, then) for first, then in pairwise(runs) if first[2] != then[2]]
    assert len(changes) >= 4, "four turns each, of which two follow each other where the order changes"
    across = [end - start for start, end, _ in runs if end - start > 0.09]
    assert len(across) >= 3, "a step that was held takes as long as the other's turn"


def test_another_program_comes_first_in_each_round_of_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[Path] = []

    def turn(each: Timed, seconds: float) -> StepSeconds:
        order.append(each.folder)
        return StepSeconds(float(each.folder.name), 0.0)

    monkeypatch.setattr(Timed, "turn", turn)
    program = Program(Path("a"), "slow", "")
    running = [Timed(program, Path(name), []) for name in "012"]
    steps = [turns.one_turn_each(running, number) for number in range(4)]
    assert "".join(map(str, order)) == "012120201012"
    assert steps == [[StepSeconds(float(at), 0.0) for at in range(3)]] * 4, "in the order of the programs"


def test_a_step_that_began_in_an_earlier_turn_does_not_count(tmp_path: Path) -> None:
    program = sleeping(tmp_path / "a", 0.001)
    with started("time", tmp_path / "a", program) as processes:
        running = Timed(program, tmp_path / "a", processes).ready()
        for _ in range(3):
            time.sleep(0.2)
            assert running.turn(0).wall < 0.2


def test_a_rank_without_a_step_is_waited_for_and_the_slowest_counts(tmp_path: Path) -> None:
    for rank, lengths in enumerate(([0.01, 0.01, 0.04], [0.03, 0.02, 0.02])):
        starts = [10.0 + at for at in range(3)]
        rows = [STEP_TIMES.pack(start, start + length, 0.001) for start, length in zip(starts, lengths, strict=True)]
        (tmp_path / f"steps-{rank}").write_bytes(b"".join(rows) + b"half")
    both = Timed(only(tmp_path, ""), tmp_path, [None, None])  # type: ignore[list-item]
    assert [round(each.wall, 6) for each in sorted(both.steps_since(10.0))] == [0.01, 0.02]
    assert [round(each.wall, 6) for each in sorted(both.steps_since(12.0))] == [0.02, 0.04]
    assert both.steps_since(12.5) == []


def test_what_breaks_while_it_is_timed_says_so(tmp_path: Path) -> None:
    text = """STEPS = iter(range(60))
def build():
    def step():
        next(STEPS)
    return step"""
    program = only(tmp_path, text)
    with started("time", tmp_path, program) as processes:
        running = Timed(program, tmp_path, processes).ready()
        with pytest.raises(ProgramError, match=r"(?s)exit status 1\n.*StopIteration"):
            _ = [running.turn(0.1) for _ in range(9)]
