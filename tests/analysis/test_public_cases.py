"""Cases after public reports: what is expected of each was written down before TorchTidy read it."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import pytest

import tb_tidy_plugin
from tb_tidy_plugin.plugin.board import glance_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.model import Finding, ProfileReport, RunReport
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.words.causes import Cause, Kind
from tests.support.recordings import shared

pytestmark = pytest.mark.any_recording
MS = 1_000_000


@lru_cache(maxsize=4)
def run_of(case: str) -> RunReport:
    (run,) = tb_tidy_plugin.analyze(shared(f"cases/{case}"), cache=False).runs
    return run


def profile_of(case: str) -> ProfileReport:
    (profile,) = run_of(case).profiles
    return profile


def finding_of(profile: ProfileReport, rule: str) -> Finding:
    (found,) = [finding for finding in profile.findings if finding.rule == rule]
    return found


def steps_of(profile: ProfileReport) -> tuple[int, int]:
    """Number and median in ns."""
    return profile.ledger.step_ns.n, profile.ledger.step_ns.median


def entry_ns(profile: ProfileReport, *causes: str) -> int:
    return sum(entry.ns_total for entry in profile.ledger.entries if entry.cause.word in causes)


def said(profile: ProfileReport) -> str:
    return " ".join(profile.quality.notes)


@pytest.mark.parametrize(("case", "notes"), [("kernel-runs-into-next", 1), ("kernel-runs-into-next-clean", 0)])
def test_a_kernel_runs_into_the_next(case: str, notes: int) -> None:
    profile = profile_of(case)
    assert steps_of(profile) == (3, 10 * MS)
    assert entry_ns(profile, "compute") <= 30 * MS
    assert len(profile.quality.notes) == notes


def test_kernels_of_the_warm_up_are_in_no_step() -> None:
    finding = finding_of(profile_of("kernels-of-warm-up"), "fp32-on-ordinary-cores")
    assert finding.cost_ns == 9 * MS
    assert finding.share is not None
    assert finding.share == pytest.approx(9 / 9.05, rel=0.001)
    assert "The names of 10 kernels per step" in str(finding.details)


def test_marks_of_steps_overlap() -> None:
    profile = profile_of("step-marks-overlap")
    assert steps_of(profile) == (3, 10 * MS)
    assert "1 step mark overlaps the next one" in said(profile)


def test_a_child_ends_after_its_parent() -> None:
    profile = Profile(read_trace(shared("cases/child-ends-later/t.pt.trace.json")))
    times, rows = profile.operators.host_self_ns, profile.operators.nested.rows
    of_addmm = [ns for ns, row in zip(times.tolist(), rows.tolist(), strict=True) if profile.name(row) == "aten::addmm"]
    assert sum(of_addmm) == pytest.approx(300_000, abs=1_000)
    assert times.sum() == pytest.approx(30 * MS, abs=1_000)


@pytest.mark.parametrize("case", ["npu", "npu-annotated"])
def test_events_of_an_unknown_device(case: str) -> None:
    profile = profile_of(case)
    assert steps_of(profile) == (3, 10 * MS)
    assert "60 of 93 events have no category" in said(profile)
    assert profile.ledger.recording == "unknown-device"
    for entry in profile.ledger.entries:
        assert "did something that was not recorded" not in entry.title
        assert entry.advice is None
    assert "CUDA" not in str([outcome.reason for outcome in profile.outcomes])


def test_a_device_whose_work_was_not_recorded() -> None:
    profile = profile_of("xpu-no-device")
    assert "ProfilerActivity.XPU" in (profile.ledger.banner or "")
    assert {entry.advice for entry in profile.ledger.entries} == {None}
    assert "CUDA" not in str([outcome.reason for outcome in profile.outcomes])


def test_a_device_that_only_its_properties_name() -> None:
    profile = profile_of("device-of-no-category")
    assert [device.name for device in profile.devices] == ["NVIDIA A100-SXM4-80GB"]
    assert "no NVIDIA GPU" not in str([outcome.reason for outcome in profile.outcomes])


def test_files_of_one_name_are_told_apart() -> None:
    profiles = run_of("all-named-r0").profiles
    assert len({(profile.worker, profile.span) for profile in profiles}) == 4
    assert {profile.rank for profile in profiles} == {None}
    assert all("4 recordings of the same time are named as rank 0" in said(profile) for profile in profiles)


def test_ranks_without_collectives() -> None:
    run = run_of("ranks-without-collectives")
    assert Counter(profile.rank for profile in run.profiles if profile.findings) == Counter(range(4))
    assert "share too few steps" not in str(run.outcomes)


def test_pageable_and_pinned_copies() -> None:
    before, after = profile_of("pinned-before"), profile_of("pinned-after")
    assert [steps_of(profile)[0] for profile in (before, after)] == [1, 1]
    assert steps_of(before)[1] == pytest.approx(1.072 * MS, rel=0.001)
    assert steps_of(after)[1] == pytest.approx(0.499 * MS, rel=0.001)
    assert before.findings[0].rule == "pageable-h2d-copy"
    saving = before.findings[0].saving
    assert saving is not None
    assert saving.low_ns <= 0.573 * MS <= saving.high_ns
    assert not after.findings
    assert all("Pin memory" not in (entry.advice or "") for entry in after.ledger.entries)


def test_idle_threads_do_not_take_a_saving_away() -> None:
    finding = finding_of(profile_of("h100-vgg13-without-marks"), "convolution-layout-converted")
    assert finding.cost_ns == pytest.approx(68.5 * MS, rel=0.01)
    assert finding.saving is not None
    assert finding.saving.expected_ns == pytest.approx(62 * MS, rel=0.02)


def test_a_cold_pass() -> None:
    profile = profile_of("rtx4090-cold-fsdp")
    assert profile.ledger.recording == "start-up"
    assert steps_of(profile)[1] == pytest.approx(820 * MS, rel=0.01)
    assert profile.findings[0].rule == "recording-not-steady"
    assert all((finding.share or 0) <= 1 for finding in profile.findings)
    assert all("normalisation" not in finding.rule or finding.cost_ns < 2 * MS for finding in profile.findings)


def test_kernels_that_are_loaded_are_not_the_profilers_work() -> None:
    profile = profile_of("rtx4090-module-loading")
    assert profile.ledger.entries[0].cause is Cause.FIRST_LAUNCH
    assert profile.ledger.entries[0].ns_total == pytest.approx(4.34 * MS, rel=0.01)


def test_a_host_that_launches_nothing_at_first() -> None:
    """20 pieces of device work take 0.15 ms of 4.00: no more can have waited for the device."""
    profile = profile_of("a100-moe-false-lead")
    assert profile.ledger.left_out == []
    assert entry_ns(profile, "queued_unknown") < 0.15 * MS
    assert {entry.cause for entry in profile.ledger.entries[:2]} == {Cause.HOST_WORK, Cause.LAUNCH_PACE}
    assert entry_ns(profile, "host_work", "launch_pace") > 3.6 * MS


@pytest.mark.parametrize("case", ["rtx3060-eager", "rtx3060-graphs"])
def test_a_fused_optimizer_is_not_advised(case: str) -> None:
    profile = profile_of(case)
    advice = {entry.kind: entry.advice for entry in profile.ledger.entries if entry.cause is Cause.COMPUTE}
    assert advice[Kind.OPTIMIZER] is None
    assert advice[Kind.NORMALISATION] is None  # kernels of torch.compile


def test_tf32_is_no_faster_than_float32_on_a_geforce() -> None:
    """By hand: the products of a step take 14.15 ms, and 8.12 ms at the card's rate in TF32, which leaves 6.0 ms."""
    for case in ("rtx3060-eager", "rtx3060-graphs"):
        profile = profile_of(case)
        assert all(finding.rule != "fp32-matmul-no-tf32" for finding in profile.findings)
        saving = finding_of(profile, "fp32-on-ordinary-cores").saving
        assert saving is not None
        assert saving.expected_ns <= 6.03 * MS


@pytest.mark.parametrize(
    ("case", "device", "action"),
    [
        ("rtx4090-cold-fsdp", "NVIDIA GeForce RTX 4090", "Record steady steps instead"),
        ("npu", "An unknown device", ""),
        ("xpu-no-device", "A device whose work was not recorded", ""),
        ("child-ends-later", "CPU only", ""),
    ],
)
def test_all_runs_says_the_same(case: str, device: str, action: str) -> None:
    glance = glance_of(profile_of(case), None)
    assert (glance.device, glance.action) == (device, action)
