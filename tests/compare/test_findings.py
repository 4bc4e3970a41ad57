"""Findings of two reports, told to be the same though code has moved."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.compare.findings import changes, finding_state, paired, predicted_ns, together_cost
from tb_tidy_plugin.report.model import Finding, Place, Saving


def place(text: str = "x = y.item()", function: str = "step", line: int = 10, file: str = "train.py") -> Place:
    return Place(
        file=file, line=line, end_line=line, function=function, precision="aligned", own_code=True, matches=1,
        duration_ns=1, text=text,
    )  # fmt: skip


def finding(
    identity: str, cost_ns: int = 1000, saving_ns: int = 800, rule: str = "some-rule", at: Place | None = None
) -> Finding:
    return Finding(
        id=identity, rule=rule, category="c", severity="high", confidence="high", message="m", fix="f", matches=1,
        matches_per_step=1, places=[at or place()], cost_ns=cost_ns, share=cost_ns / 10_000, details=[],
        saving=Saving(expected_ns=saving_ns, low_ns=0, high_ns=cost_ns, speedup=None, basis=["bound"]),
    )  # fmt: skip


def states(base: list[Finding], candidate: list[Finding]) -> list[str]:
    return sorted(finding_state(pair) for pair in paired(base, candidate))


class TestPairs:
    def test_the_same_identity_though_lines_have_moved(self) -> None:
        assert states([finding("a")], [finding("a", at=place(line=30, text="other"))]) == ["same"]

    def test_a_function_in_another_file_by_what_its_line_says(self) -> None:
        assert states([finding("a")], [finding("b", at=place(file="moved.py"))]) == ["same"]

    def test_a_renamed_function_by_what_its_line_says(self) -> None:
        assert states([finding("a")], [finding("b", at=place(function="train_step"))]) == ["same"]

    def test_another_line_of_another_function_is_another_finding(self) -> None:
        moved = finding("b", at=place(function="train_step", text="z = y.item()"))
        assert states([finding("a")], [moved]) == ["gone", "new"]

    def test_another_rule_on_the_same_line_is_another_finding(self) -> None:
        assert states([finding("a")], [finding("b", rule="other-rule")]) == ["gone", "new"]

    def test_lines_that_are_not_known_match_nothing(self) -> None:
        unknown = place(text="", file="other.py")
        assert states([finding("a", at=unknown)], [finding("b", at=unknown)]) == ["gone", "new"]

    def test_identity_goes_before_text(self) -> None:
        """Two functions have swapped their lines: each stays itself."""
        base = [finding("a", 1000, at=place("one")), finding("b", 5000, at=place("two"))]
        candidate = [finding("a", 1000, at=place("two")), finding("b", 5000, at=place("one"))]
        assert states(base, candidate) == ["same", "same"]

    def test_each_finding_is_matched_once(self) -> None:
        assert states([finding("a"), finding("b")], [finding("c")]) == ["gone", "same"]


class TestSeveralRecordings:
    def test_the_means_of_cost_and_saving_as_where_it_costs_most(self) -> None:
        found = together_cost([finding("a", 1000, 800), finding("a", 3000, 1000, at=place(line=12))])
        assert (found.cost_ns, found.share, found.places[0].line) == (2000, 0.2, 12)
        assert found.saving is not None
        assert (found.saving.expected_ns, found.saving.high_ns) == (900, 2000)

    def test_one_is_itself(self) -> None:
        one = finding("a")
        assert together_cost([one]) is one


class TestStates:
    @pytest.mark.parametrize(
        ("after", "state"), [(1000, "same"), (1200, "same"), (1201, "worse"), (800, "same"), (799, "better")]
    )
    def test_a_fifth_more_or_less_is_the_same(self, after: int, state: str) -> None:
        assert states([finding("a", 1000)], [finding("a", after)]) == [state]

    def test_half_a_per_cent_of_the_step_is_the_same(self) -> None:
        """The step takes 10,000 ns."""
        assert states([finding("a", 60)], [finding("a", 110)]) == ["same"]
        assert states([finding("a", 60)], [finding("a", 111)]) == ["worse"]


class TestPromises:
    def test_what_is_gone_was_promised_and_realised(self) -> None:
        (change,) = changes(paired([finding("a")], []), realised_ns=900)
        assert (change.state, change.predicted_ns, change.realised_ns) == ("gone", 800, 900)
        assert (change.base_ns, change.candidate_ns) == (1000, None)

    def test_several_share_what_was_realised_by_their_promises(self) -> None:
        found = changes(paired([finding("a", saving_ns=300), finding("b", saving_ns=100, at=place("z"))], []), 800)
        assert [(change.predicted_ns, change.realised_ns) for change in found] == [(300, 600), (100, 200)]

    def test_what_is_better_was_promised_in_part(self) -> None:
        pairs = paired([finding("a", 1000, 800)], [finding("a", 250, 200)])
        assert predicted_ns(pairs) == 600
        assert changes(pairs, 500)[0].realised_ns == 500

    def test_all_together_promise_what_they_save_together(self) -> None:
        pairs = paired([finding("a", saving_ns=300), finding("b", saving_ns=100, at=place("z"))], [])
        assert predicted_ns(pairs, 0.75) == 300

    def test_what_stays_promises_still_and_realises_nothing(self) -> None:
        (change,) = changes(paired([finding("a")], [finding("a")]), realised_ns=500)
        assert (change.state, change.predicted_ns, change.realised_ns) == ("same", 800, None)
        assert predicted_ns(paired([finding("a")], [finding("a")])) == 0

    def test_without_steps_nothing_can_be_said_to_be_realised(self) -> None:
        assert changes(paired([finding("a")], []), None)[0].realised_ns is None

    def test_a_step_that_became_longer_realised_less_than_nothing(self) -> None:
        assert changes(paired([finding("a")], []), -200)[0].realised_ns == -200
