"""Rules for calls of library functions: a pattern and words are enough."""

from __future__ import annotations

import pytest

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.rulekit.testing import draw, matches_of

SAVE = "lib/io.py(7): save"


class SavedInStep(tt.LibraryCallRule):
    """Saving in most steps."""

    code = "MY1"
    frames = r"^lib/io\.py\(\d+\): save$"
    message = "`save` runs {times} per step, {calls} when rounded, {count} times in {steps} steps, and takes {time}"
    why = "It does"
    fix = "Leave it out"


class SavedAtAll(SavedInStep):
    """Saving in any step."""

    in_most_steps = False


class SavedBySomebody(SavedInStep):
    """Saving in most steps, unless the user's own function does it, for at least 1 ms."""

    def chosen(self, profile: tt.Profile, rows: tt.Rows) -> tt.Rows:
        own = [tt.is_own_code(profile.calls.caller_name(row)) for row in rows.tolist()]
        return rows[[not each for each in own]]

    def is_worth(self, calls: tt.LibraryCalls) -> bool:
        return calls.time >= 1_000_000


def job(*calls_us: tuple[int, ...], caller: str = "train.py(4): train", marks: str = "ProfilerStep#") -> tt.Profile:
    """Steps of 10 ms with a call of each of these lengths, 1 ms after the other; each call runs an inner one."""
    lines = []
    for number, lengths in enumerate(calls_us):
        at = 10_000 * number
        lines += [f"{marks}{number} {at}-{at + 9_990}", f"  {caller} {at + 1}-{at + 9_989}"]
        for position, length in enumerate(lengths):
            start = at + 100 + 1_000 * position
            lines += [f"    {SAVE} {start}-{start + length}", f"      {SAVE} {start + 1}-{start + length - 1}"]
    return draw("\n".join(lines))


def test_each_outermost_call_is_a_match_with_figures_of_all() -> None:
    matches = matches_of(SavedInStep, job((200, 300), (400,)))
    assert len(matches) == 3
    assert len({match.evidence for match in matches}) == 1
    # 3 calls in 2 steps: 1.5 per step; 900 µs in 2 steps
    message = SavedInStep().filled_in(SavedInStep.message, matches[0].evidence)
    assert message == "`save` runs 1.5 times per step, 2 when rounded, 3 times in 2 steps, and takes 450 µs"


@pytest.mark.parametrize(
    ("calls", "most", "any_"),
    [
        (((200,), (), ()), 0, 1),  # in a third of the steps
        (((200,), (200,), (), ()), 2, 2),  # in half of them
        (((200, 200),), 0, 2),  # one step shows no habit
        (((), ()), 0, 0),
    ],
)
def test_rare_calls_count_where_the_rule_says_so(calls: tuple[tuple[int, ...], ...], most: int, any_: int) -> None:
    assert len(matches_of(SavedInStep, job(*calls))) == most
    assert len(matches_of(SavedAtAll, job(*calls))) == any_


def test_calls_outside_marked_steps_do_not_count() -> None:
    assert matches_of(SavedAtAll, job((200,), (200,), marks="epoch#")) == ()


@pytest.mark.parametrize(
    ("caller", "length", "expected"),
    [
        ("torch/optim/adam.py(4): step", 999, 0),
        ("torch/optim/adam.py(4): step", 1_000, 2),
        ("train.py(4): train", 2_000, 0),
    ],
)
def test_a_rule_chooses_among_the_calls_and_judges_what_is_left(caller: str, length: int, expected: int) -> None:
    assert len(matches_of(SavedBySomebody, job((length,), (length,), caller=caller))) == expected


def test_the_rule_needs_stacks() -> None:
    assert SavedInStep.needs == {"stacks"}
    assert SavedInStep.evidence() is tt.LibraryCalls
