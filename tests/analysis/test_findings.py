"""From matches to findings: grouping, cost, saving, severity, identity."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tb_tidy_plugin.analysis.checker import Clean, Failed, Found, NotChecked, check_rule
from tb_tidy_plugin.analysis.findings import Known, findings_of
from tb_tidy_plugin.report.model import CodeChange, Finding, Note
from tb_tidy_plugin.rulekit import Bytes, Edit, Match, Profile, Rule, Scale
from tb_tidy_plugin.rulekit.testing import draw
from tb_tidy_plugin.sources.frames import Frame
from tests.support.known import with_true_step
from tests.support.made_up_rule import SlowMultiplication

TWO_STEPS = """
ProfilerStep#1            0-1000
  train.py(10): step      1-999
    aten::mm              100-299  dims=4x4,4x4  types=float,float
    aten::mm              400-599  dims=4x4,4x4  types=float,float
    train.py(30): helper  600-900
      aten::mm            700-799  dims=8x8,8x8  types=float,float
ProfilerStep#2            1001-2001
  train.py(10): step      1002-1999
    aten::mm              1100-1299  dims=4x4,4x4  types=float,float
"""


def findings(profile: Profile, rule: type[Rule] = SlowMultiplication) -> list[Finding]:
    outcome = check_rule(profile, rule())
    assert isinstance(outcome, Found)
    return [evidence.finding for evidence in findings_of(profile, rule(), outcome.matches)]


def test_one_finding_per_function_largest_saving_first() -> None:
    step, helper = findings(draw(TWO_STEPS))
    assert (step.matches, helper.matches) == (3, 1)
    assert (step.matches_per_step, helper.matches_per_step) == (1.5, 0.5)
    assert [(place.file, place.line, place.function, place.precision) for place in step.places] == [
        ("train.py", 10, "step", "definition")
    ]
    assert helper.places[0].line == 30


def test_a_place_keeps_the_lines_that_are_as_likely_and_the_event_of_its_costliest_match() -> None:
    profile = draw(TWO_STEPS.replace("100-299", "100-250"))
    short, long, _, other = profile.named("aten::mm").tolist()
    found = check_rule(profile, SlowMultiplication())
    assert isinstance(found, Found)
    either = Frame("train.py", 3, "step", "aligned", own_code=True, end_line=9, ties=(3, 9))
    surely = Frame("train.py", 5, "step", "aligned", own_code=True, end_line=5)
    places = {short: either, long: either, other: surely}
    known = Known(locate=lambda row, _: places.get(row))
    evidence = findings_of(profile, SlowMultiplication(), found.matches, known)[0]
    assert [(place.line, place.ties) for place in evidence.finding.places] == [(3, [3, 9]), (5, [])]
    assert evidence.anchors == (long, other)


def test_cost_is_per_step() -> None:
    step, helper = findings(draw(TWO_STEPS))
    assert step.cost_ns == (199 + 199 + 199) * 1000 // 2
    assert helper.cost_ns == round(99 * 1000 / 2)
    assert step.share == pytest.approx(298.5 / 1000.5), "two steps and the 1 µs between them"
    assert step.places[0].duration_ns == step.cost_ns


def test_time_that_matches_share_counts_once() -> None:
    class Nested(SlowMultiplication):
        __module__ = SlowMultiplication.__module__  # and its page

        def detect(self, profile: Profile) -> Iterator[Match]:
            inner = int(profile.named("aten::mm")[0])
            frame = profile.parent(inner) or 0
            yield Match(anchor=inner, events=(frame, inner), evidence=self.evidence_of(profile, inner))

    (found,) = findings(draw(TWO_STEPS), Nested)
    assert found.cost_ns == 998_000 // 2


def test_a_saving_of_this_version_is_a_bound() -> None:
    step, _ = findings(draw(TWO_STEPS))
    assert step.saving is not None
    assert (step.saving.low_ns, step.saving.expected_ns, step.saving.high_ns) == (0, 298_500, 298_500)
    assert step.saving.basis == ["bound"]
    assert step.saving.speedup == pytest.approx(1000.5 / (1000.5 - 298.5))


def test_a_scaled_edit_saves_the_rest() -> None:
    class Halved(SlowMultiplication):
        __module__ = SlowMultiplication.__module__  # and its page

        def remedy(self, profile: Profile, match: Match) -> Iterator[Edit]:
            yield Scale(match.events, factor=0.5, low=0.25, high=0.75)

    step, _ = findings(draw(TWO_STEPS), Halved)
    assert step.saving is not None
    assert (step.saving.expected_ns, step.saving.high_ns) == (149_250, 223_875)


@pytest.mark.parametrize(
    ("length", "severity", "small"),
    [(50, "high", False), (49, "medium", False), (30, "medium", False), (29, "medium", True), (9, "low", True)],
)
def test_severity_follows_the_share_of_the_step(length: int, severity: str, small: bool) -> None:
    (found,) = findings(draw(f"ProfilerStep#1  0-1000\n  aten::mm  1-{length + 1}  dims=4x4,4x4  types=float,float"))
    assert (found.severity, found.small) == (severity, small)
    assert found.places == []


@pytest.mark.parametrize(
    ("true_step_us", "severity", "of_us"),
    [(900, "high", 900), (990, "medium", 990), (800, "high", 800), (2_000, "medium", 1000)],
)
def test_a_saving_is_of_the_true_step_where_that_is_shorter(true_step_us: int, severity: str, of_us: int) -> None:
    profile = draw("ProfilerStep#1  0-1000\n  aten::mm  1-50  dims=4x4,4x4  types=float,float")
    (found,) = findings(with_true_step(profile, true_step_us * 1000))
    assert found.severity == severity
    assert found.saving is not None
    assert found.saving.speedup == pytest.approx(of_us / (of_us - 49))
    assert found.share == pytest.approx(0.049)  # of what was recorded, as the cost is


def test_lost_time_is_the_cost_where_a_match_names_it() -> None:
    class Idle(SlowMultiplication):
        __module__ = SlowMultiplication.__module__  # and its page

        def detect(self, profile: Profile) -> Iterator[Match]:
            for match in super().detect(profile):
                start = profile.start_ns(match.anchor)
                yield Match(match.anchor, match.events, match.evidence, lost=[(start, start + 20_000)])

    step, _ = findings(draw(TWO_STEPS), Idle)
    assert (step.cost_ns, step.places[0].duration_ns) == (30_000, 30_000)
    assert step.saving is not None
    assert step.saving.high_ns == 30_000


def test_texts_hold_the_evidence_of_the_largest_match() -> None:
    _, helper = findings(draw(TWO_STEPS))
    assert helper.message == "`aten::mm` multiplies 256 B"
    assert helper.details == [
        Note(text="It ran for longer than 1 µs."),
        CodeChange(before="c = a @ b", after="c = d", caveat="Changes the result"),
    ]


def test_ids_survive_another_recording() -> None:
    slower = TWO_STEPS.replace("100-299", "100-399").replace("train.py(10)", "train.py(11)")
    assert {found.id for found in findings(draw(TWO_STEPS))} == {found.id for found in findings(draw(slower))}
    elsewhere = TWO_STEPS.replace("train.py", "other.py")
    assert not {found.id for found in findings(draw(TWO_STEPS))} & {found.id for found in findings(draw(elsewhere))}


def test_subjects_are_fixed_apart() -> None:
    class BySize(SlowMultiplication):
        __module__ = SlowMultiplication.__module__  # and its page

        def detect(self, profile: Profile) -> Iterator[Match]:
            for match in super().detect(profile):
                size = str(match.evidence.size)
                yield Match(match.anchor, match.events, match.evidence, subject=size)

    flat = TWO_STEPS.replace("    train.py(30): helper  600-900\n  ", "")
    assert len(findings(draw(flat))) == 1
    assert len(findings(draw(flat), BySize)) == 2


class TestOutcomes:
    def test_found(self) -> None:
        assert isinstance(check_rule(draw(TWO_STEPS), SlowMultiplication()), Found)

    def test_clean(self) -> None:
        assert check_rule(draw("aten::add  0-100  dims=4  types=float"), SlowMultiplication()) == Clean()

    def test_not_checked_says_which_option_to_switch_on(self) -> None:
        outcome = check_rule(draw("aten::mm  0-100"), SlowMultiplication())
        assert outcome == NotChecked("The profile has no input shapes; record with `record_shapes=True`.")

    def test_not_checked_where_the_question_makes_no_sense(self) -> None:
        class Never(SlowMultiplication):
            def not_applicable(self, profile: Profile) -> str:
                return "Not on Tuesdays."

        assert check_rule(draw(TWO_STEPS), Never()) == NotChecked("Not on Tuesdays.")

    def test_failed_rules_do_not_cost_the_others(self, caplog: pytest.LogCaptureFixture) -> None:
        class Broken(SlowMultiplication):
            def detect(self, profile: Profile) -> Iterator[Match]:
                yield from super().detect(profile)
                raise ZeroDivisionError("oh")

        with caplog.at_level(logging.CRITICAL):
            assert check_rule(draw(TWO_STEPS), Broken()) == Failed("ZeroDivisionError: oh")

    def test_want_of_memory_is_not_the_rules_failure(self) -> None:
        class Greedy(SlowMultiplication):
            def detect(self, profile: Profile) -> Iterator[Match]:
                raise MemoryError

        with pytest.raises(MemoryError):
            check_rule(draw(TWO_STEPS), Greedy())


def test_bytes_in_texts_have_units() -> None:
    assert f"{Bytes(4096)}" == "4 KiB"
