"""Each program says truly what it loses: both forms of each loss have the same results."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tb_tidy_plugin.rules import catalogue
from tests.accuracy.record import loaded
from tests.second_corpus.corpus import Loss, LossyProgram, lossy, lossy_programs

PROGRAMS = lossy_programs()
RULES = {rule.name() for rule in catalogue()}
STEPS = 3


def results(program: LossyProgram, folder: Path, *without: str) -> list[float]:
    """The results of the first steps, at tiny size."""
    torch = pytest.importorskip("torch")
    module = loaded(program.copy_in(folder / "_".join(("tiny", *without)), without=without, is_tiny=True).path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of so small work others take nothing but time
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            step = module.build()
            return [step() for _ in range(STEPS)]
    finally:
        torch.set_num_threads(threads)


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_both_forms_of_each_loss_have_equal_results(program: LossyProgram, tmp_path: Path) -> None:
    expected = results(program, tmp_path)
    for loss in program.losses:
        assert results(program, tmp_path, loss.name) == pytest.approx(expected, rel=1e-4), loss.name
    assert len(set(expected)) == STEPS, "a step changes the next one's result, or updates would not be compared"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_what_is_known_of_a_program_fits_it(program: LossyProgram) -> None:
    (flags,) = (
        [
            each.targets[0].id
            for each in node.body
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
        ]
        for node in ast.parse(program.program.path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == "Losses"
    )
    assert [loss.name for loss in program.losses] == flags
    assert 3 <= len(flags) <= 5
    for loss in program.losses:
        assert loss.functions, f"no line is marked with {loss.name}"
        assert loss.rules <= RULES
    assert set(program.also) <= RULES


def test_a_copy_differs_in_nothing_but_what_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "made_up.py"
    path.write_text("class Losses:\n    a = True\n    b = True\n", encoding="utf-8")
    program = lossy(path)
    assert program.copy_in(tmp_path / "same").path.read_bytes() == path.read_bytes()
    losses = loaded(program.copy_in(tmp_path / "without", without=["b"]).path).Losses
    assert (losses.a, losses.b) == (True, False)


def test_a_function_is_the_innermost_around_a_marked_line(tmp_path: Path) -> None:
    path = tmp_path / "made_up.py"
    path.write_text(
        "KNOWN = {'a': ('what', ['zero-grad-memset'])}\n\n\ndef build():\n    x = 1\n\n    @wrapped\n    def step():\n"
        "        return x  # loss: a\n\n    return step  # loss: other\n",
        encoding="utf-8",
    )
    program = lossy(path)
    (loss,) = program.losses
    assert loss == Loss("a", "what", frozenset({"zero-grad-memset"}), frozenset({(7, 9)}))
    assert [program.function_at(line) for line in (1, 4, 8, 11)] == [None, (4, 11), (7, 9), (4, 11)]
