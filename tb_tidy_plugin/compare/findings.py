"""Matching of findings between baseline and candidate, even if lines have moved."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from statistics import fmean

import msgspec

from tb_tidy_plugin.compare.model import FindingChange, FindingState
from tb_tidy_plugin.report.model import Finding, ProfileReport

SAME_COST = 0.2
"""Costs that differ by less than this part are the same: recorders and machines vary more than that between runs."""

SAME_SHARE = 0.005
"""So are costs that differ by less than this part of the step, which the report also leaves out."""


class FindingPair(msgspec.Struct, frozen=True):
    """A finding on both sides, or on one of them; `is_seen` is True if the candidate would show it."""

    base: Finding | None
    candidate: Finding | None
    is_seen: bool = True


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


def finding_state(pair: FindingPair) -> FindingState:
    """The state of a finding in the candidate."""
    if pair.base is None:
        return "new"
    if pair.candidate is None:
        return "gone" if pair.is_seen else "not_checked"
    before, after = pair.base.cost_ns, pair.candidate.cost_ns
    step_ns = pair.base.cost_ns / pair.base.share if pair.base.share else 0.0
    if abs(after - before) <= max(SAME_COST * before, SAME_SHARE * step_ns):
        return "same"
    return "better" if after < before else "worse"


def changes(pairs: Sequence[FindingPair], realised_ns: int | None) -> list[FindingChange]:
    """The findings with predicted and realised savings, largest prediction first."""
    promised = sum(_promise(pair) or 0 for pair in pairs)
    found = [_change(pair, promised, realised_ns) for pair in pairs]
    return sorted(found, key=lambda change: (-(change.predicted_ns or 0), -(change.candidate_ns or 0), change.rule))


def _promise(pair: FindingPair) -> int | None:
    """The saving that the baseline expected for the part of a finding that is gone."""
    if pair.base is None or pair.base.saving is None or finding_state(pair) not in {"gone", "better"}:
        return None
    if pair.candidate is None or not pair.base.cost_ns:
        return pair.base.saving.expected_ns
    return round(pair.base.saving.expected_ns * (1 - pair.candidate.cost_ns / pair.base.cost_ns))


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
    return FindingChange(
        id=known.id,
        rule=known.rule,
        state=finding_state(pair),
        message=known.message,
        action=known.action,
        severity=known.severity,
        function=known.places[0].function if known.places else "",
        base_ns=pair.base.cost_ns if pair.base else None,
        candidate_ns=pair.candidate.cost_ns if pair.candidate else None,
        predicted_ns=promise if promise is not None else saving.expected_ns if saving else None,
        realised_ns=round(realised_ns * part) if part is not None and realised_ns is not None else None,
        places=known.places,
    )
