"""Matches of a rule, grouped into the findings that a user would fix one by one.

Where several rules find the same work, the cause is reported: fixing it makes the others go away. A rule names the
rules that it yields to, and its matches are left out where findings of these cover most of their time.

The comparison uses the time of events, which a fix changes, and not `Match.lost`, where the loss shows: a device idles
after the read that causes the loss, often beside another rule's events. A rule yields only to reported findings: a
finding that is too small to show, or ignored, removes no other.

`gpu-idle-host-bound` neither yields nor is yielded to. It says how much the host's pace costs altogether, which a user
wants to know beside its causes (loops, updates one by one, chains of small operators); its events are only a sample.
`grad-graph-never-consumed` names operators that stay, and loses only a part of their time. Code that runs compiled or
between compiled pieces needs no precedence: rules about operators do not look there, and none of its operators is
recorded during compilation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.analysis.constructors import option_of_trainer, where_to_edit
from tb_tidy_plugin.benchmarks.factor import factor_of
from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.estimate import saving as estimated
from tb_tidy_plugin.estimate.saving import Fix, SavingEstimates, bound, intervals_of
from tb_tidy_plugin.profile.events.intervals import Intervals, positions_of_each
from tb_tidy_plugin.profile.host.critical import clipped_to_steps, per_step
from tb_tidy_plugin.report.generated import generated_of
from tb_tidy_plugin.report.model import CodeChange, Finding, Note, Place, Saving
from tb_tidy_plugin.report.value import Severity
from tb_tidy_plugin.rulekit import AnyRule, Benchmark, Confidence, Match, Profile, Rows, Rule
from tb_tidy_plugin.rulekit.edits import Unblock
from tb_tidy_plugin.rulekit.page import page_of
from tb_tidy_plugin.rulekit.recipe import facts_of, pair_of, recipe_of
from tb_tidy_plugin.sources.align import Sources
from tb_tidy_plugin.sources.frames import Frame
from tb_tidy_plugin.sources.places import place_of
from tb_tidy_plugin.trace.sets import distinct
from tb_tidy_plugin.words.recipe import Recipe
from tb_tidy_plugin.words.units import Nanoseconds, Share, plural
from tb_tidy_plugin.words.vocabulary import Basis

HIGH_SHARE, MEDIUM_SHARE = 0.05, 0.01
"""Least shares of a step for a saving of high and of medium severity."""

SMALL_SHARE = 0.03
"""Share of a step: the page folds findings with an expected saving below it."""

_MOST_FINDINGS = 100
"""Most findings of one rule that are described, most expensive first: each is replayed, and nobody reads so many."""

_MOSTLY = 0.5
"""Least covered part of its time for a match to yield: the other rule's fix then removes most of its cost."""

ID_DIGITS = 12
_MEASURED: tuple[Basis, ...] = ("measured",)


Locate: TypeAlias = Callable[[int, Sequence[int]], Frame | None]
"""Gives the place of an event by its row and, where that is a function, by the rows that it is about."""

_Measured: TypeAlias = Callable[[str, Benchmark], Measurement | None]
"""Gives the measurement of a rule's pair of statements, if any."""


class TracedFinding(msgspec.Struct, frozen=True):
    """A finding and what it was made from.

    Attributes:
        rows: all its events, in order of start.
        anchors: for each of the finding's places, the event that leads to it, of the most expensive match there.
        recipe: the source of the statements of its most expensive match; None if there are none.
        pair: these statements, to be measured.
        fix: the changes that fixing it makes to the timeline.
        facts: the source of the code change; None for rules without one.
    """

    finding: Finding
    rows: Rows
    anchors: tuple[int, ...] = ()
    recipe: Recipe | None = None
    pair: Benchmark | None = None
    fix: Fix = msgspec.field(default_factory=lambda: Fix(()))
    facts: Recipe | None = None

    @property
    def claimed(self) -> Rows:
        """Rows of the events that the finding is about or that its fix changes."""
        edits = (((edit.event,) if isinstance(edit, Unblock) else edit.events) for edit in self.fix.edits)
        changed = (np.array(events, np.int64) for events in edits)
        return distinct(np.concatenate([self.rows, *changed]))


def nothing_measured(_rule: str, _pair: Benchmark) -> None:
    """No measurement for any rule."""


class Known(NamedTuple):
    """Sources of a profile's places (default: functions), measurements, savings (default: bounds) and source text."""

    locate: Locate | None = None
    measured: _Measured = nothing_measured
    estimates: SavingEstimates | None = None
    sources: Sources | None = None


_NOTHING_KNOWN = Known()


class Group(msgspec.Struct, frozen=True):
    """The matches of one finding: of one subject and in one function.

    Attributes:
        key: subject, file and function; empty if no place is known.
        matches: each with its place.
        cost_ns: their cost together, per step. share: `cost_ns` by the step's duration; None without steps.
    """

    key: tuple[str, str, str]
    matches: Sequence[tuple[Match, Frame | None]]
    cost_ns: int
    share: float | None

    @property
    def files(self) -> list[str]:
        """The files of its places; empty if no place is known."""
        return [self.key[1]] if any(frame is not None for _, frame in self.matches) else []


def findings_of(
    profile: Profile, rule: Rule, matches: Sequence[Match], known: Known = _NOTHING_KNOWN
) -> list[TracedFinding]:
    """One finding per subject and function, in the order of `by_saving`."""
    return described(profile, rule, groups_of(profile, matches, known.locate), known)


def yielding_last(rules: Sequence[Rule]) -> list[Rule]:
    """The rules, each after all that it yields to.

    Raises:
        CycleError: they yield to one another.
    """
    by_name = {rule.name(): rule for rule in rules}
    before = {name: [other for other in rule.yields_to if other in by_name] for name, rule in by_name.items()}
    return [by_name[name] for name in TopologicalSorter(before).static_order()]


def without_yielded(
    profile: Profile, rule: Rule, matches: Sequence[Match], reported: Mapping[str, Rows]
) -> tuple[list[Match], dict[str, int]]:
    """The matches that are left of a rule, and the number that yielded to each other rule.

    Args:
        profile: the profile of the matches.
        rule: the rule that found them.
        matches: all of the rule's matches.
        reported: events of other rules' reported findings, by rule.
    """
    times = {other: _both_sides(profile, reported[other]) for other in rule.yields_to if other in reported}
    left: list[Match] = []
    yielded: dict[str, int] = {}
    for match in matches:
        other = next((other for other, time in times.items() if _is_covered(profile, match, time)), None)
        if other is None:
            left.append(match)
        else:
            yielded[other] = yielded.get(other, 0) + 1
    return left, yielded


def groups_of(profile: Profile, matches: Sequence[Match], locate: Locate | None = None) -> list[Group]:
    """The matches, grouped by what a user would fix in one place."""
    locate = locate or (lambda row, _: place_of(profile, row))
    groups: dict[tuple[str, str, str], list[tuple[Match, Frame | None]]] = {}
    for match in matches:
        frame = locate(match.anchor, match.events)
        key = (match.subject, frame.file if frame else "", frame.function if frame else "")
        groups.setdefault(key, []).append((match, frame))
    found = []
    for key, group in groups.items():
        cost_ns = cost_ns_of(profile, [match for match, _ in group])
        found.append(Group(key, group, cost_ns, profile.share_of_step(cost_ns)))
    return found


ABOUT_RECORDING = frozenset({"recording-not-steady"})
"""Rules that say that a recording does not show the job as it runs."""


def described(
    profile: Profile, rule: Rule, groups: Sequence[Group], known: Known = _NOTHING_KNOWN
) -> list[TracedFinding]:
    """The findings of these groups, in the order of `by_saving`."""
    return sorted((_finding(profile, rule, group, known) for group in groups), key=by_saving)


def worth_reporting(rule: Rule, groups: Sequence[Group]) -> tuple[list[Group], int, int]:
    """The groups to describe, the number below `min_share` of a step, and the number beyond the limit of findings."""
    large = [group for group in groups if group.share is None or group.share >= rule.min_share]
    kept = sorted(large, key=lambda group: -group.cost_ns)[:_MOST_FINDINGS]
    return kept, len(groups) - len(large), len(large) - len(kept)


def left_out_of(rule: AnyRule, yielded: Mapping[str, int], small: int, ignored: int, further: int = 0) -> str | None:
    """A sentence on what a rule found but does not report, and why; None if all is reported."""
    parts = [f"{plural(count, 'finding')} that `{other}` covers" for other, count in yielded.items()]
    if further:
        parts.append(f"{plural(further, 'finding')} below the {_MOST_FINDINGS} largest")
    if small:
        parts.append(f"{plural(small, 'finding')} below {Share(rule.min_share)} of a step (`min-share`)")
    if ignored:
        parts.append(f"{plural(ignored, 'finding')} in files of `per-path-ignores`")
    return f"Left out: {'; '.join(parts)}." if parts else None


def by_saving(traced: TracedFinding) -> tuple[bool, int, int, str]:
    """Sort key: largest expected saving first, then largest cost, then a stable order.

    Before all of them comes that the recording does not show steady steps: the others then do not describe the job.
    """
    return order_of(traced.finding)


def order_of(finding: Finding) -> tuple[bool, int, int, str]:
    """The sort key of `by_saving`, for a finding."""
    expected_ns = finding.saving.expected_ns if finding.saving else 0
    return (finding.rule not in ABOUT_RECORDING, -expected_ns, -finding.cost_ns, finding.id)


def id_of(rule: Rule, group: Group) -> str:
    """The identity of the finding in recordings of the same job: a hash of rule, subject, file and function."""
    return hashlib.sha256("\0".join((rule.name(), *group.key)).encode()).hexdigest()[:ID_DIGITS]


def _finding(profile: Profile, rule: Rule, group: Group, known: Known) -> TracedFinding:
    matches, estimates = [match for match, _ in group.matches], known.estimates
    rows = distinct(np.array([row for match in matches for row in match.events], np.int64))
    rows = rows[np.argsort(profile.table.start_ns[rows], kind="stable")]
    costs = [cost_ns_of(profile, [match]) for match in matches]
    lead = matches[costs.index(max(costs))]
    recipe = recipe_of(rule, lead.evidence)
    pair = pair_of(recipe, type(rule)) if recipe else None
    measurement = known.measured(rule.name(), pair) if pair else None
    factor = factor_of(measurement, pair, profile.platform)
    edits = [edit for match in matches for edit in rule.remedy(profile, match)]
    fix = Fix(factor.applied(edits) if factor else edits, lost_by(matches))
    saved = within_step(profile, bound(profile, fix.edits, fix.lost) if estimates is None else estimates.saving(fix))
    page = page_of(type(rule))
    places = _places(profile, group.matches, costs)
    step_ns = profile.pace.step_ns
    saved_share = saved.expected_ns / step_ns if step_ns else None
    finding = Finding(
        id=id_of(rule, group),
        rule=rule.name(),
        category=rule.category(),
        severity=severity_of(saved_share),
        confidence=lead.confidence if estimates is None else less_sure(lead.confidence, estimates.confidence),
        action=rule.filled_in(rule.action or rule.fix, lead.evidence),
        message=rule.filled_in(rule.message, lead.evidence),
        fix=_edit_before(profile, rule, lead, places, known.sources) + rule.filled_in(rule.fix, lead.evidence),
        matches=len(matches),
        matches_per_step=profile.per_step_count(np.array([match.anchor for match in matches])),
        places=[place for place, _ in places],
        cost_ns=group.cost_ns,
        share=group.share,
        saving=saving_in_report(profile, saved, *(_MEASURED if factor else ())),
        details=[
            Note(text=rule.filled_in(rule.why, lead.evidence).rstrip(".") + "."),
            *_beyond_cost(profile, matches, saved.expected_ns - group.cost_ns),
            CodeChange(before=page.before, after=page.after, caveat=rule.caveat or None),
        ],
        measurement=measurement,
        known_by=profile.replayed.least_certain(rows),
        small=saved_share is not None and 0 < saved_share < SMALL_SHARE,
    )
    facts = facts_of(rule, lead.evidence) if type(rule).can_fix() else None
    anchors = tuple(anchor for _, anchor in places)
    return TracedFinding(finding, rows, anchors, recipe if pair else None, pair, fix, facts)


def _edit_before(
    profile: Profile, rule: Rule, lead: Match, places: Sequence[tuple[Place, int]], sources: Sources | None
) -> str:
    """The sentence on where the fix belongs, for a fix that sets an option of an object or of a library."""
    if not places:
        return ""
    place, anchor = places[0]
    if option := option_of_trainer(profile, anchor, rule.trainer_options(lead.evidence)):
        return f"{option}. "
    made = rule.made_by(lead.evidence)
    if made is None or sources is None:
        return ""
    return where_to_edit(profile, anchor, place, made, sources)


def _beyond_cost(profile: Profile, matches: Sequence[Match], beyond_ns: int) -> list[Note]:
    """A note on what else improves, if a fix is expected to save more than its finding costs."""
    if beyond_ns <= 0:
        return []
    reasons = ["related work gets faster, too"] if any(match.related for match in matches) else []
    if "device" not in profile.recorded:
        waits = lost_by(matches) is not None
        reasons.append("the rest runs faster after shorter waits" if waits else "freeing its memory also takes time")
    why = " and ".join(reasons) or "work that waits for it starts earlier"
    return [Note(text=f"The fix saves {Nanoseconds(beyond_ns)} more than the pattern costs, because {why}.")]


def cost_ns_of(profile: Profile, matches: Sequence[Match]) -> int:
    """Cost of the matches per step: the spans that they lose, else the time of their events."""
    lost = lost_by(matches)
    if lost is not None:
        return per_step(profile, clipped_to_steps(profile, intervals_of(lost)))
    return profile.per_step_ns(np.array([row for match in matches for row in match.events], np.int64))


def lost_by(matches: Sequence[Match]) -> list[tuple[int, int]] | None:
    """The spans that the matches of one finding lose; None if their cost is the time of their events."""
    if all(match.lost is None for match in matches):
        return None
    return [span for match in matches for span in match.lost or ()]


def within_step(profile: Profile, saving: estimated.SavedTime) -> estimated.SavedTime:
    """The saving, at most a whole step: events of a step may take longer than it, on a host that is far ahead."""
    step_ns = profile.pace.step_ns
    if not step_ns:
        return saving
    expected_ns, low_ns, high_ns = (min(each, step_ns) for each in (saving.expected_ns, saving.low_ns, saving.high_ns))
    return estimated.SavedTime(expected_ns, low_ns, high_ns, saving.basis)


def saving_in_report(profile: Profile, saving: estimated.SavedTime, *further: Basis) -> Saving:
    """A saving with its speedup of the step; `further` bases are those of its factors."""
    return Saving(
        expected_ns=saving.expected_ns,
        low_ns=saving.low_ns,
        high_ns=saving.high_ns,
        speedup=speedup_of(profile.pace.step_ns, saving.expected_ns),
        basis=[*saving.basis, *further],
    )


def measured_in(found: Sequence[TracedFinding]) -> tuple[Basis, ...]:
    """The basis that measured findings add to figures about all of them."""
    savings = [each.finding.saving for each in found]
    return _MEASURED if any(saving is not None and "measured" in saving.basis for saving in savings) else ()


def less_sure(*confidences: Confidence) -> Confidence:
    """The least of several confidences."""
    return min(confidences, key=("low", "medium", "high").index)


def speedup_of(step_ns: int | None, saved_ns: int) -> float | None:
    """Step time now divided by the step time without `saved_ns`; None if no step time is known or left."""
    return step_ns / (step_ns - saved_ns) if step_ns and saved_ns < step_ns else None


def severity_of(share: float | None) -> Severity:
    """Severity of a saving of this share of a step."""
    if share is None:
        return "info"
    return "high" if share >= HIGH_SHARE else "medium" if share >= MEDIUM_SHARE else "low"


def _places(
    profile: Profile, group: Sequence[tuple[Match, Frame | None]], costs_ns: Sequence[int]
) -> list[tuple[Place, int]]:
    """The places, most expensive first, each with the anchor of its most expensive match."""
    by_line: dict[Frame, list[Match]] = {}
    leads: dict[Frame, tuple[int, Match]] = {}
    for (match, frame), cost_ns in zip(group, costs_ns, strict=True):
        if frame is not None:
            by_line.setdefault(frame, []).append(match)
            leads[frame] = max(leads.get(frame, (cost_ns, match)), (cost_ns, match), key=lambda lead: lead[0])
    places = [(_place(profile, frame, matches), leads[frame][1].anchor) for frame, matches in by_line.items()]
    return sorted(places, key=lambda found: (-found[0].duration_ns, found[0].line))


def _place(profile: Profile, frame: Frame, matches: Sequence[Match]) -> Place:
    return Place(
        file=frame.file,
        line=frame.line,
        end_line=frame.end_line or frame.line,
        function=frame.function,
        precision=frame.precision,
        own_code=frame.own_code,
        matches=len(matches),
        duration_ns=cost_ns_of(profile, matches),
        text=frame.text,
        ties=list(frame.ties),
        generated=generated_of(frame),
    )


def _both_sides(profile: Profile, rows: Rows) -> dict[int, Intervals]:
    """The time by thread of events, of the device work that they launch, and of the host events that launched them."""
    host = rows[rows < profile.tree.size]
    causes = profile.launched_by[rows]
    return _time_by_thread(profile, np.concatenate([rows, profile.device_activity_of_all(host), causes[causes >= 0]]))


def _time_by_thread(profile: Profile, rows: Rows) -> dict[int, Intervals]:
    threads = profile.table.thread[rows]
    return {int(threads[here[0]]): profile.covered(rows[here]) for here in positions_of_each(threads)}


def _is_covered(profile: Profile, match: Match, other: Mapping[int, Intervals]) -> bool:
    mine = _time_by_thread(profile, distinct(np.array(match.events, np.int64)))
    total_ns = sum(time.total_ns for time in mine.values())
    shared_ns = sum(time.overlap_ns(other[thread]) for thread, time in mine.items() if thread in other)
    return total_ns > 0 and shared_ns >= _MOSTLY * total_ns
