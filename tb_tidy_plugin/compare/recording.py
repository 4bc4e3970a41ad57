"""One side's recordings, and the steps that count."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from tb_tidy_plugin.analysis.step_costs import StepCosts
from tb_tidy_plugin.report.left_out import LeftOutFinding
from tb_tidy_plugin.report.model import Finding, ProfileReport, Saving
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.words.errors import TidyError

_WARM_UP = "warmup"
RANGE = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15}))?")
_NUMBER_AT_END = re.compile(r"[0-9]{1,15}$")


class StepsError(TidyError):
    """An invalid range of steps, or one that a recording does not have."""


class Recording(Model, frozen=True):
    """One trace file: its report, and the content of each of its steps."""

    run: str
    report: ProfileReport
    costs: StepCosts


class StepRange(msgspec.Struct, frozen=True):
    """Steps by their numbers, both ends included: `ProfilerStep#7` is step 7."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def step_range(text: str) -> StepRange:
    """`3-7`, or `5` for one step.

    Raises:
        StepsError: it is something else.
    """
    match = RANGE.fullmatch(text)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise StepsError(f"`{text}` is not a range of steps.", "Write `3-7` for the steps 3 to 7, or `5` for one step.")
    return StepRange(int(match[1]), int(match[2] or match[1]))


class Chosen(msgspec.Struct, frozen=True):
    """A recording and the positions of the steps that count; a recording without steps counts as one step.

    `is_range` is True if these steps were requested.
    """

    recording: Recording
    steps: tuple[int, ...]
    is_range: bool = False

    @property
    def durations_ns(self) -> list[int]:
        """Duration of each step that counts, by the ledger; empty without marked steps."""
        report = self.recording.report
        if report.ledger.step_source != "whole_trace" and self.ledger_steps:
            return [report.ledger.steps[at].end_ns - report.ledger.steps[at].start_ns for at in self.ledger_steps]
        items = report.steps.items
        return [items[at].duration_ns for at in self.steps] if items else []

    @property
    def host_ns(self) -> list[int]:
        """The mark on the host of each step that counts; empty without marks."""
        ledger = self.recording.report.ledger
        if ledger.host_step_ns is None:
            return []
        return [ledger.steps[at].host_ns for at in self.ledger_steps]

    @property
    def ledger_steps(self) -> tuple[int, ...]:
        """The positions in the ledger of the steps that count, by their names.

        If the ledger takes its steps from other marks than the report, all of them count, and none in a range.
        """
        report = self.recording.report
        names = [step.name for step in report.ledger.steps]
        items = [step.name for step in report.steps.items]
        if set(items).isdisjoint(names):
            return () if self.is_range else tuple(range(len(names)))
        wanted = {items[at] for at in self.steps}
        return tuple(at for at, name in enumerate(names) if name in wanted)

    @property
    def warming_up(self) -> int:
        """Number of the steps that warm up; 0 if the steps were requested."""
        return 0 if self.is_range else len(self.steps) - len(self.without_warm_up.steps)

    @property
    def without_warm_up(self) -> Chosen:
        """The same without steps that warm up, unless the steps were requested or all of them do."""
        items = self.recording.report.steps.items
        usual = tuple(at for at in self.steps if not items or items[at].oddity != _WARM_UP)
        return self if self.is_range or not usual else Chosen(self.recording, usual)

    @property
    def left_out(self) -> Iterator[LeftOutFinding]:
        """What the report leaves out and costs anything in these steps, with its cost there."""
        for each in self.recording.costs.left_out:
            costs = each.ns_by_step
            if not costs or len(self.steps) == len(costs):
                yield each
            elif cost_ns := round(sum(costs[at] for at in self.steps) / len(self.steps)):
                part = cost_ns / each.cost_ns if each.cost_ns else 1.0
                share = None if each.share is None else each.share * part
                yield msgspec.structs.replace(each, cost_ns=cost_ns, share=share)

    def occurs_in(self, finding: str) -> tuple[int, int] | None:
        """The number of steps that count in which a finding costs anything, and their number; None if that is unknown.

        Work outside all steps is in none of them.
        """
        costs = self.recording.costs.findings.get(finding)
        if not costs or not any(costs):
            return None
        return sum(costs[at] > 0 for at in self.steps), len(self.steps)

    @property
    def findings(self) -> Iterator[Finding]:
        """The findings that cost anything in these steps, with their cost and promised saving there."""
        for finding in self.recording.report.findings:
            costs = self.recording.costs.findings.get(finding.id)
            if costs is None or len(self.steps) == len(costs):
                yield finding
            elif cost_ns := round(sum(costs[at] for at in self.steps) / len(self.steps)):
                yield _costing(finding, cost_ns)


def _costing(finding: Finding, cost_ns: int) -> Finding:
    """The finding at another cost; share and saving change in proportion."""
    part = cost_ns / finding.cost_ns if finding.cost_ns else 1.0
    share = None if finding.share is None else finding.share * part
    return msgspec.structs.replace(
        finding, cost_ns=cost_ns, share=share, saving=finding.saving and _scaled(finding.saving, part)
    )


def _scaled(saving: Saving, part: float) -> Saving:
    return msgspec.structs.replace(
        saving,
        expected_ns=round(saving.expected_ns * part),
        low_ns=round(saving.low_ns * part),
        high_ns=round(saving.high_ns * part),
        speedup=None,
    )


def chosen_steps(recordings: Sequence[Recording], wanted: StepRange | None, name: str) -> list[Chosen]:
    """The recordings with their steps in `wanted`, by default all, as in the report.

    Leaves out recordings without any such step.

    Raises:
        StepsError: none of them has one; `name` is their name in the message.
    """
    if wanted is None:
        return [Chosen(each, tuple(range(max(len(each.report.steps.items), 1)))) for each in recordings]
    found = [Chosen(each, _in_range(each, wanted), is_range=True) for each in recordings]
    found = [each for each in found if each.steps]
    if not found:
        raise StepsError(f"`{name}` has no steps {wanted}.", _known_steps(recordings))
    return found


def durations_by_recording(side: Sequence[Chosen]) -> list[list[int]]:
    """Durations of the steps that count, by recording: ranks of one job were recorded at once, its spans one by one."""
    found: dict[tuple[str, int], list[int]] = {}
    spans: Counter[tuple[str, str]] = Counter()
    for each in side:
        worker = (each.recording.run, each.recording.report.worker)
        found.setdefault((each.recording.run, spans[worker]), []).extend(each.durations_ns)
        spans[worker] += 1
    return list(found.values())


def _in_range(recording: Recording, wanted: StepRange) -> tuple[int, ...]:
    return tuple(at for at, number in enumerate(numbers_of(recording)) if wanted.first <= number <= wanted.last)


def numbers_of(recording: Recording) -> list[int]:
    """The number at the end of each step's name; a step without one has its position, from 1."""
    found = ((at, _NUMBER_AT_END.search(step.name)) for at, step in enumerate(recording.report.steps.items, 1))
    return [int(match[0]) if match else at for at, match in found]


def _known_steps(recordings: Sequence[Recording]) -> str:
    numbers = [number for each in recordings for number in numbers_of(each)]
    return f"It has the steps {StepRange(min(numbers), max(numbers))}." if numbers else "It has no steps at all."
