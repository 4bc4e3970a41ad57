"""Matching of findings between baseline and candidate, even if lines have moved."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from statistics import fmean

import msgspec

from tb_tidy_plugin.compare.model import FindingChange, FindingState
from tb_tidy_plugin.report.left_out import LeftOutFinding
from tb_tidy_plugin.report.model import Finding, ProfileReport

SAME_COST = 0.2
"""Costs that differ by less than this part are the same: recorders and machines vary more than that between runs."""

SAME_SHARE = 0.005
"""So are costs that differ by less than this part of the step, which the report also leaves out."""


class FindingPair(msgspec.Struct, frozen=True):
    """A finding on both sides, or on one of them.

    Attributes:
        left_out: what the report of the side without it left out of it; None for nothing.
        unseen: why the recordings of the side without it do not show whether it is there; empty if they do.
    """

    base: Finding | None
    candidate: Finding | None
    left_out: LeftOutFinding | None = None
    unseen: str = ""

    @property
    def costs_ns(self) -> tuple[int | None, int | None]:
        """Cost per step on both sides, reported or not; None where there is none."""
        of_left_out = None if self.left_out is None else self.left_out.cost_ns
        before, after = (of_left_out if side is None else side.cost_ns for side in (self.base, self.candidate))
        return before, after

    @property
    def is_about_same(self) -> bool:
        """True if the costs on both sides do not clearly differ."""
        before, after = (cost or 0 for cost in self.costs_ns)
        known = self.base or self.candidate
        step_ns = known.cost_ns / known.share if known is not None and known.share else 0.0
        return abs(after - before) <= max(SAME_COST * before, SAME_SHARE * step_ns)


def paired(base: Sequence[Finding], candidate: Sequence[Finding]) -> list[FindingPair]:
    """Each finding once: by identity, else by rule, function and the text of a line, else by rule and that text.

    The identity is rule, subject, file and function, so that lines may move within a function. The text of its lines
    identifies a function that was renamed or moved to another file.
    """
    left, right = list(base), list(candidate)
    pairs: list[FindingPair] = []
    for keys in (_identity, _rule_function_text, _rule_text):
        pairs += _matched(left, right, keys)
    return [*pairs, *(FindingPair(each, None) for each in left), *(FindingPair(None, each) for each in right)]


def _matched(
    left: list[Finding], right: list[Finding], keys: Callable[[Finding], list[Hashable]]
) -> Iterator[FindingPair]:
    """Removes the findings that share a key from both lists."""
    for finding in tuple(left):
        wanted = set(keys(finding))
        found = next((each for each in right if wanted.intersection(keys(each))), None)
        if found is not None:
            left.remove(finding)
            right.remove(found)
            yield FindingPair(finding, found)


def _identity(finding: Finding) -> list[Hashable]:
    return [(finding.rule, finding.id)]


def _rule_function_text(finding: Finding) -> list[Hashable]:
    return [(finding.rule, place.function, place.text) for place in finding.places if place.text]


def _rule_text(finding: Finding) -> list[Hashable]:
    return [(finding.rule, place.text) for place in finding.places if place.text]


def together_cost(alike: Sequence[Finding]) -> Finding:
    """One finding of several recordings: from the one where it costs most, with the means of cost and saving."""
    largest = max(alike, key=lambda finding: finding.cost_ns)
    savings = [finding.saving for finding in alike if finding.saving is not None]
    if len(alike) == 1 or largest.saving is None:
        return largest
    expected_ns, low_ns, high_ns = (
        round(fmean(getattr(saving, name) for saving in savings)) for name in ("expected_ns", "low_ns", "high_ns")
    )
    saving = msgspec.structs.replace(largest.saving, expected_ns=expected_ns, low_ns=low_ns, high_ns=high_ns)
    cost_ns = round(fmean(finding.cost_ns for finding in alike))
    shares = [finding.share for finding in alike if finding.share is not None]
    share = fmean(shares) if shares else None
    return msgspec.structs.replace(largest, cost_ns=cost_ns, share=share, saving=saving)


def left_out_alike(finding: Finding, left_out: Iterable[LeftOutFinding]) -> LeftOutFinding | None:
    """The most expensive of `left_out` that is this finding, by the same keys as `paired`; None without one."""
    of_rule = [each for each in left_out if each.rule == finding.rule]
    lines = {(place.function, place.text) for place in finding.places if place.text}
    texts = {text for _, text in lines}
    for alike in (
        [each for each in of_rule if each.id == finding.id],
        [each for each in of_rule if lines.intersection(each.lines)],
        [each for each in of_rule if texts.intersection(text for _, text in each.lines)],
    ):
        if alike:
            return max(alike, key=lambda each: each.cost_ns)
    return None


def finding_state(pair: FindingPair) -> FindingState:
    """The state of a finding in the candidate.

    A finding that rose above a limit is worse if it clearly costs more, and never new.
    """
    before, after = (cost or 0 for cost in pair.costs_ns)
    is_worse = after > before and not pair.is_about_same
    if pair.left_out is not None and not (pair.base is None and is_worse):
        return "covered" if pair.left_out.reason == "covered" else "below_limit"
    if pair.unseen:
        return "not_checked"
    if None in pair.costs_ns:
        return "new" if pair.base is None else "gone"
    return "same" if pair.is_about_same else "worse" if is_worse else "better"


def changes(pairs: Sequence[FindingPair], realised_ns: int | None) -> list[FindingChange]:
    """The findings with predicted and realised savings, largest prediction first."""
    promised = sum(_promise(pair) or 0 for pair in pairs)
    found = [_change(pair, promised, realised_ns) for pair in pairs]
    return sorted(found, key=lambda change: (-(change.predicted_ns or 0), -(change.candidate_ns or 0), change.rule))


def _promise(pair: FindingPair) -> int | None:
    """The saving that the baseline expected for the part of a finding that is gone."""
    if pair.base is None or pair.base.saving is None:
        return None
    state, (before, after) = finding_state(pair), pair.costs_ns
    is_less = state == "below_limit" and not pair.is_about_same and (after or 0) < (before or 0)
    if state not in {"gone", "better"} and not is_less:
        return None
    if after is None or not before:
        return pair.base.saving.expected_ns
    return round(pair.base.saving.expected_ns * (1 - after / before))


def predicted_ns(pairs: Sequence[FindingPair], together: float = 1.0) -> int:
    """The saving that the baseline expected for everything that is gone or better; `together` is a `part_together`."""
    return round(sum(_promise(pair) or 0 for pair in pairs) * together)


def part_together(reports: Iterable[ProfileReport]) -> float:
    """The part of their findings' savings that all fixes together save, since findings share time; at most 1."""
    joint_ns = alone_ns = 0
    for report in reports:
        if report.joint_saving is not None:
            joint_ns += report.joint_saving.expected_ns
            alone_ns += sum(finding.saving.expected_ns for finding in report.findings if finding.saving is not None)
    return min(joint_ns / alone_ns, 1.0) if alone_ns else 1.0


def _change(pair: FindingPair, promised_ns: int, realised_ns: int | None) -> FindingChange:
    known = pair.candidate or pair.base
    assert known is not None
    promise = _promise(pair)
    part = None if promise is None or realised_ns is None or not promised_ns else promise / promised_ns
    saving = pair.base.saving if pair.base else None
    base_ns, candidate_ns = pair.costs_ns
    return FindingChange(
        id=known.id,
        rule=known.rule,
        state=finding_state(pair),
        message=known.message,
        action=known.action,
        severity=known.severity,
        function=known.places[0].function if known.places else "",
        base_ns=base_ns,
        candidate_ns=candidate_ns,
        predicted_ns=promise if promise is not None else saving.expected_ns if saving else None,
        realised_ns=round(realised_ns * part) if part is not None and realised_ns is not None else None,
        places=known.places,
        reason=_reason(pair),
        only="candidate" if pair.base is None else "base" if pair.candidate is None else None,
    )


def _reason(pair: FindingPair) -> str:
    """Why a finding that only one report has is neither gone nor new; empty for others."""
    side = "baseline" if pair.base is None else "candidate"
    if pair.left_out is None:
        return pair.unseen
    if pair.left_out.reason == "covered":
        return f"On the {side}, findings of `{pair.left_out.by}` cover it."
    return f"The {side} has it, too, below a limit of the check."
