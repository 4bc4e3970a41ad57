"""Compares every figure of a step in a report with the ledger's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

import pytest

from tb_tidy_plugin.profile.steps.steps import UNMARKED
from tb_tidy_plugin.render.ledger import busy_share, has_device, step_line
from tb_tidy_plugin.report.model import Finding, Note, ProfileReport
from tb_tidy_plugin.words.causes import Cause
from tb_tidy_plugin.words.units import Nanoseconds, Share

UNITS_NS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
AMOUNT = r"(?P<number>[\d.]+) (?P<unit>ns|µs|ms|s)"
OF_A_STEP = (
    re.compile(rf"{AMOUNT} of a step \((?P<share>[\d.]+) %\)"),
    re.compile(rf"For (?P<share>[\d.]+) % of the step, {AMOUNT}"),
)
ROUNDED = 0.01
"""Both figures have three digits."""


def check_figures(profile: ProfileReport) -> None:
    """Checks that step, busy time, shares and savings of a report refer to the same step."""
    ledger = profile.ledger
    lengths = [step.end_ns - step.start_ns for step in ledger.steps]
    window = ledger.window.end_ns - ledger.window.start_ns
    assert ledger.step_ns.median == pytest.approx(median(lengths), abs=1)
    assert ledger.step_ns.n == len(lengths)
    assert ledger.step_ns.mean == window // len(lengths)
    if ledger.step_source not in UNMARKED and ledger.step_source != "repeating_unit":
        assert profile.step_ns == min(ledger.step_ns.median, profile.true_step_ns or ledger.step_ns.median)
        assert ledger.host_step_ns == pytest.approx(median(step.host_ns for step in ledger.steps), abs=1)
    busy = sum(step.device_ns for step in ledger.steps)
    assert float(busy_share(ledger)) * window == pytest.approx(busy, abs=1)
    line = "".join(part if isinstance(part, str) else part.text for part in step_line(profile))
    assert str(Nanoseconds(ledger.step_ns.median)) in line
    assert not has_device(ledger) or str(busy_share(ledger)) in line
    for finding in profile.findings:
        _check_finding(finding, profile, window if profile.steps.basis in UNMARKED else ledger.step_ns.mean)
    if ledger.step_source != "repeating_unit":
        _check_host_bound(profile)


def _check_finding(finding: Finding, profile: ProfileReport, mean_ns: int) -> None:
    saving = finding.saving
    assert finding.share is None or finding.share * mean_ns == pytest.approx(finding.cost_ns, abs=1), finding.rule
    assert saving is None or saving.low_ns <= saving.expected_ns <= saving.high_ns
    assert saving is None or profile.step_ns is None or saving.expected_ns <= profile.step_ns
    for text in _texts(finding):
        for said in (match for pattern in OF_A_STEP for match in pattern.finditer(text)):
            said_ns = float(said["number"]) * UNITS_NS[said["unit"]]
            assert float(said["share"]) / 100 * mean_ns == pytest.approx(said_ns, rel=ROUNDED), text


def _check_host_bound(profile: ProfileReport) -> None:
    """The finding about slow launching and the ledger's entry are one figure."""
    of_rule = [each for each in profile.findings if each.rule == "gpu-idle-host-bound"]
    paces = [each for each in profile.ledger.entries if each.cause is Cause.LAUNCH_PACE]
    for finding, entry in zip(of_rule, paces, strict=False):
        assert finding.share == pytest.approx(entry.share, abs=1e-6)
        assert f"For {Share(entry.share)} of the step" in finding.message
    assert len(of_rule) <= len(paces)


def _texts(finding: Finding) -> Iterator[str]:
    yield finding.message
    yield from (detail.text for detail in finding.details if isinstance(detail, Note))
