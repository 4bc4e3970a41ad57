"""The line is right: on programs of all kinds, held against markers that the alignment does not see."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.frames import Frame
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.kineto import read_trace
from tests.accuracy.corpus import Program
from tests.accuracy.corpus import programs as programs_of_rules
from tests.accuracy.processes import record_step_in
from tests.lines.corpus import (
    HARD,
    METHODS,
    TORCHTIDY,
    Result,
    fits,
    left_out,
    programs,
    results,
    sample,
    shared_results,
)
from tests.lines.judged import Judged, marked_recording
from tests.lines.page import BARE_TARGET, EXACT_TARGET, WRONG_LIMIT, is_met, page, score, shared_in, shared_section
from tests.support.recordings import shared


@pytest.fixture(scope="module")
def recorded() -> list[Result]:
    return results(sample())


@pytest.fixture(scope="module")
def elsewhere() -> list[Result]:
    return list(shared_results(shared("lines")))


def assert_targets(found: Sequence[Result]) -> None:
    everything, bare = score(found), score(found, only_bare=True)
    assert everything.total > 1000
    assert everything.share("exact") >= EXACT_TARGET
    assert bare.share("exact") >= BARE_TARGET
    assert everything.share("wrong") <= WRONG_LIMIT
    for result in found:
        said_to_be_exact = [each for each in result.judged[TORCHTIDY] if each.place and each.place.precision == "exact"]
        assert all(each.verdict == "exact" for each in said_to_be_exact), result.name


@pytest.mark.slow
@pytest.mark.torch
class TestRecordings:
    def test_the_targets_are_met(self, recorded: list[Result]) -> None:
        assert_targets(recorded)
        assert is_met(recorded)

    def test_no_program_is_far_below_the_others(self, recorded: list[Result]) -> None:
        shares = {result.name: score([result]).share("exact") for result in recorded}
        assert {name: share for name, share in shares.items() if share < 0.95} == {}

    def test_every_program_runs_operators(self, recorded: list[Result]) -> None:
        assert [result.name for result in recorded] == [program.name for program in sample()]
        assert [result.name for result in recorded if score([result]).total < 5] == []

    def test_what_others_can_show_is_far_worse(self, recorded: list[Result]) -> None:
        shares = [score(recorded, method).share("exact") for method in METHODS]
        assert shares[0] >= EXACT_TARGET
        assert 0.7 > shares[1] > shares[2]

    @pytest.mark.parametrize("name", ["functions.py", "control.py"])
    def test_without_the_markers_a_recording_is_the_plain_one(self, name: str, tmp_path: Path) -> None:
        program = Program(HARD / name, "clean", "")
        for folder in ("marked", "plain"):
            (tmp_path / folder).mkdir()
        marked = record_step_in(tmp_path / "marked", program, is_marked=True)
        plain = record_step_in(tmp_path / "plain", program, is_marked=False)
        unmarked = marked_recording(program.path, marked).profile
        assert tree_below(unmarked, name) == tree_below(Profile(read_trace(plain)), name)


def test_recordings_made_elsewhere_meet_the_targets(elsewhere: list[Result]) -> None:
    assert_targets(elsewhere)


CHANGING = re.compile(r"0x[0-9a-f]+|(?<=_)\d+$")


def tree_below(profile: Profile, file: str) -> list[tuple[int, str]]:
    """Depth and name of every event below the program's frames, without addresses and numbers of modules."""
    is_own = [
        profile.category(row) is Category.PYTHON and f"/{file}(" in profile.name(row) for row in profile_rows(profile)
    ]
    first = is_own.index(True)
    depth = profile.tree.depth
    return [
        (int(depth[row] - depth[first]), CHANGING.sub("", profile.name(row)))
        for row in profile_rows(profile)
        if is_own[row] or any(is_own[above] for above in profile.ancestors(row))
    ]


def profile_rows(profile: Profile) -> range:
    return range(profile.tree.size)


class TestPrograms:
    def test_those_that_are_compiled_or_have_ranks_are_left_out(self) -> None:
        judged, without = {program.name for program in programs()}, {program.name for program in left_out()}
        assert "exposed-communication/slow.py" in without
        assert "torch-compile-graph-break/slow.py" in without
        candidates = {each.name for each in programs_of_rules() if each.kind in {"clean", "slow"} and not each.is_drawn}
        assert candidates == without | {name for name in judged if not name.startswith("programs/")}

    def test_all_hard_ones_fit(self) -> None:
        hard = [program for program in programs() if program.path.parent == HARD]
        assert len(hard) >= 14
        assert all(map(fits, hard))


def judged(line: int, place: Frame | None, end_line: int | None = None, *, is_bare: bool = False) -> Judged:
    return Judged("aten::mul", is_bare, line, end_line or line, place)


def on(line: int, *ties: int) -> Frame:
    return Frame("train.py", line, "step", "aligned", own_code=True, ties=ties)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("each", "verdict"),
        [
            (judged(3, on(3)), "exact"),
            (judged(3, on(5), 6), "range"),
            (judged(3, on(7), 6), "wrong"),
            (judged(3, on(2)), "wrong"),
            (judged(4, on(3, 3, 4)), "tie"),
            (judged(5, on(3, 3, 4)), "wrong"),
            (judged(3, None), "declined"),
            (judged(3, Frame("train.py", 3, "step", "definition", own_code=True)), "declined"),
        ],
    )
    def test_each_kind(self, each: Judged, verdict: str) -> None:
        assert each.verdict == verdict

    def test_shares_are_of_all_and_of_bare_ones(self) -> None:
        found = [result([judged(3, on(3)), judged(3, on(3), is_bare=True), judged(3, on(2), is_bare=True)])]
        assert score(found).share("exact") == pytest.approx(2 / 3)
        assert score(found, only_bare=True).share("wrong") == pytest.approx(1 / 2)
        assert not is_met(found)


def result(found: list[Judged], name: str = "programs/one.py") -> Result:
    return Result(name, ["a", "b | c", "  d = e * 2"], dict.fromkeys(METHODS, found))


class TestPage:
    def test_what_is_not_exact_is_listed_with_its_line(self) -> None:
        text = page([result([judged(3, on(2)), judged(3, on(2)), judged(2, None)])], [], "2.13.0", "", "")
        assert "| `programs/one.py` | `aten::mul` | wrong | 2 | 3: `d = e * 2` | 2 |" in text
        assert "| `programs/one.py` | `aten::mul` | declined | 1 | 2: `b \\| c` | nothing |" in text

    def test_it_is_the_same_each_time(self) -> None:
        found = [judged(3, on(2)), judged(2, on(1)), judged(3, on(1, 1, 3))]
        assert page([result(found)], [], "2", "", "") == page([result(found[::-1])], [], "2", "", "")

    def test_the_shared_part_stays_where_the_recordings_are_missing(self) -> None:
        section = shared_section([result([judged(3, on(3))], "train_loop")])
        text = page([result([judged(3, on(3))])], [], "2.13.0", "", section)
        assert shared_in(text).strip() == section.strip()
        assert page([result([judged(3, on(3))])], [], "2.13.0", "", shared_in(text)) == text
