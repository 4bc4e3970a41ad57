"""Key figures of each run for the list of all runs."""

from __future__ import annotations

import msgspec

from tb_tidy_plugin.plugin.scan import FoundFile, Key
from tb_tidy_plugin.report.model import Problem, ProfileReport

UNASKED = 8
"""Number of the newest runs that are analysed when the list is shown; the others wait for the user's request."""

MILLISECONDS = 13
NANOSECONDS = 19


class Glance(msgspec.Struct, frozen=True):
    """The figures of one report that the list shows; see `models.BoardRow`."""

    device: str
    step_ns: int | None
    saving_ns: int | None
    findings: int
    action: str
    finding: str
    problem: str


def glance_of(report: ProfileReport, problem: Problem | None) -> Glance:
    """The key figures of a report; `problem` says what of its trace could not be read."""
    names = list(dict.fromkeys(device.name or device.kind for device in report.devices))
    count = f"{len(report.devices)} × " if len(report.devices) > 1 else ""
    step_ns = report.true_step_ns
    if step_ns is None:
        step_ns = report.ledger.step_ns.median if report.ledger.entries else report.step_ns
    first = next(iter(report.findings), None)
    hidden = report.ledger.hidden_device or ""
    return Glance(
        device=f"{count}{', '.join(names)}" if names else hidden.capitalize() or "CPU only",
        step_ns=step_ns,
        saving_ns=report.joint_saving.expected_ns if report.joint_saving else None,
        findings=len(report.findings),
        action=(first.action or first.message) if first else "",
        finding=first.id if first else "",
        problem=problem.error if problem else "",
    )


def shown_of(keys: list[Key]) -> Key:
    """The recording of a run that the page opens: the first worker's latest span; `keys` are in the run's order."""
    return [key for key in keys if key.worker == keys[0].worker][-1]


def recorded_ms(found: FoundFile) -> int | None:
    """Time of the recording in ms since 1970: from its span, else from its file; None if neither has it."""
    span = found.file.span
    if span.isascii() and span.isdigit() and MILLISECONDS <= len(span) <= NANOSECONDS:
        return int(span[:MILLISECONDS])
    return found.stamp.mtime_ns // 1_000_000 or None
