"""Baseline against candidate: `compared(Summary, Summary) -> Comparison`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_tidy_plugin import __version__
from tb_tidy_plugin.compare.findings import changes, paired, predicted_ns
from tb_tidy_plugin.compare.model import SCHEMA_VERSION, Comparison, Side
from tb_tidy_plugin.compare.operators import operator_changes, part_changes
from tb_tidy_plugin.compare.steps import step_ratio, verdict_of
from tb_tidy_plugin.profile.steps import median_ns_of
from tb_tidy_plugin.report.model import Finding, ProfileReport
from tb_tidy_plugin.report.summary import ProfileSummary, Summary

WARM_UP = "warmup"


def compared(base: Summary, candidate: Summary, base_path: str, candidate_path: str) -> Comparison:
    """What changed from `base` to `candidate`.

    Steps of all ranks count together, without those that warm up; findings that several ranks share count once, at
    their mean cost.
    """
    before, after = _steps(base.profiles), _steps(candidate.profiles)
    ratio = step_ratio(before, after)
    pairs = paired(_findings(base.profiles), _findings(candidate.profiles))
    base_ns, candidate_ns = median_ns_of(before), median_ns_of(after)
    realised_ns = None if base_ns is None or candidate_ns is None else base_ns - candidate_ns
    return Comparison(
        schema=SCHEMA_VERSION,
        version=__version__,
        base=_side(base, base_path, before),
        candidate=_side(candidate, candidate_path, after),
        verdict=verdict_of(ratio),
        step_ratio=ratio,
        notes=list(_notes(base, candidate, len(before), len(after))),
        predicted_ns=predicted_ns(pairs),
        realised_ns=realised_ns,
        findings=changes(pairs, realised_ns),
        breakdown=part_changes(base.profiles, candidate.profiles),
        operators=operator_changes(base.profiles, candidate.profiles),
    )


def _steps(profiles: Sequence[ProfileSummary]) -> list[int]:
    items = (step for profile in profiles for step in profile.report.steps.items)
    return [step.duration_ns for step in items if step.oddity != WARM_UP]


def _side(summary: Summary, path: str, steps: Sequence[int]) -> Side:
    return Side(
        path=path,
        runs=list(dict.fromkeys(profile.run for profile in summary.profiles)),
        profiles=len(summary.profiles),
        steps=len(steps),
        median_ns=median_ns_of(steps),
    )


def _findings(profiles: Sequence[ProfileSummary]) -> list[Finding]:
    """Each finding once, by its identity; of several ranks that of the one where it costs most."""
    found: dict[str, Finding] = {}
    for profile in profiles:
        for finding in profile.report.findings:
            if finding.id not in found or finding.cost_ns > found[finding.id].cost_ns:
                found[finding.id] = finding
    return list(found.values())


def _notes(base: Summary, candidate: Summary, before: int, after: int) -> Iterator[str]:
    """What to know before any number."""
    for what, of in (
        ("devices", _devices), ("kinds of steps", _step_bases), ("numbers of ranks", _ranks), ("recorded", _recorded),
    ):  # fmt: skip
        one, other = of(base.profiles), of(candidate.profiles)
        if one != other:
            yield f"Different {what}: {one or 'none'} against {other or 'none'}."
    if 0 < min(before, after) < FEW_STEPS:
        yield f"Only {min(before, after)} steps on one side: record more for a narrower interval."
    for summary, side in ((base, "baseline"), (candidate, "candidate")):
        if summary.problems:
            yield f"{len(summary.problems)} trace(s) of the {side} could not be read, or not wholly."


FEW_STEPS = 5


def _devices(profiles: Sequence[ProfileSummary]) -> str:
    names = (f"{device.name or device.kind}" for profile in profiles for device in profile.report.devices)
    return ", ".join(dict.fromkeys(names)) or "CPU"


def _step_bases(profiles: Sequence[ProfileSummary]) -> str:
    return ", ".join(dict.fromkeys(profile.report.steps.basis.replace("_", " ") for profile in profiles))


def _ranks(profiles: Sequence[ProfileSummary]) -> str:
    return str(len(profiles))


def _recorded(profiles: Sequence[ProfileSummary]) -> str:
    """What slows the recorded job: stacks and memory make other recordings of it."""
    return ", ".join(sorted(_extras(profiles[0].report))) if profiles else ""


def _extras(report: ProfileReport) -> set[str]:
    return {name for name in report.recorded if name in {"stacks", "shapes", "memory"}}
