"""recording-not-steady: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tb_tidy_plugin.analysis.findings import findings_of, order_of
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import matches_of, saving_ns
from tb_tidy_plugin.rules.settings.recording_not_steady import RecordingNotSteady
from tests.ledger.traces import Made

GEMM = "ampere_sgemm_128x64_nn"


def job(call: str = "cudaMalloc", took: int = 6000, steps: int = 1) -> Profile:
    """Steps of 10 ms that each call the runtime once for `took` µs, and compute for 3 ms."""
    made = Made()
    for begin in range(0, 10_000 * steps, 10_000):
        made.mark(f"ProfilerStep#{begin}", begin + 1, begin + 9_990)
        made.call(call, begin + 10, begin + 10 + took)
        made.kernel(GEMM, begin + 6_500, begin + 9_500, launch=begin + 6_400)
    return made.profile()


class TestReports:
    @pytest.mark.parametrize("call", ["cudaMalloc", "cudaStreamCreateWithPriority"])
    def test_start_up(self, call: str) -> None:
        profile = job(call)
        (evidence,) = findings_of(profile, RecordingNotSteady(), matches_of(RecordingNotSteady, profile))
        finding = evidence.finding
        assert finding.cost_ns == 6_000_000
        assert finding.message == (
            "60.1 % of this recording is start-up: first launches, allocations and single long calls of the runtime"
        )
        assert "schedule(wait=5" in finding.fix

    def test_compilation(self) -> None:
        made = Made().mark("ProfilerStep#1", 1, 10_000).frame("torch/_inductor/codecache.py(9): load", 10, 6_010)
        made.kernel(GEMM, 6_500, 9_500, launch=6_400)
        (match,) = matches_of(RecordingNotSteady, made.profile())
        assert match.evidence.what == "compilation"

    def test_capture(self) -> None:
        made = Made().mark("ProfilerStep#1", 1, 10_000).call("cudaStreamBeginCapture", 10, 20)
        for at in range(100, 9_000, 100):
            made.operator("aten::mm", at, at + 20).call("cudaLaunchKernel", at + 5, at + 10)
        made.call("cudaStreamEndCapture", 9_000, 9_010).kernel(GEMM, 9_500, 9_900, launch=9_400)
        profile = made.profile()
        (match,) = matches_of(RecordingNotSteady, profile)
        assert match.evidence.kind == account_of(profile).ledger.recording == "capture"
        assert "Record replays" in match.evidence.fix

    def test_the_banner_has_the_same_number(self) -> None:
        """The host loads a module for 5 ms in which no call was recorded, and then allocates for 1 ms."""
        made = Made().mark("ProfilerStep#1", 1, 10_000).kernel(GEMM, 10, 20, launch=5)
        made.add("overhead", "Runtime Triggered Module Loading", 1_000, 6_000, -1, -1)
        profile = made.call("cudaMalloc", 6_000, 7_000).kernel(GEMM, 8_000, 9_990, launch=7_900).profile()
        (evidence,) = findings_of(profile, RecordingNotSteady(), matches_of(RecordingNotSteady, profile))
        banner = account_of(profile).ledger.banner or ""
        assert evidence.finding.cost_ns == 6_000_000
        assert "60 % of it is one-time calls" in banner
        assert evidence.finding.message.startswith("60 % of this recording is start-up")

    def test_it_comes_before_findings_that_save_more(self) -> None:
        profile = job()
        (evidence,) = findings_of(profile, RecordingNotSteady(), matches_of(RecordingNotSteady, profile))
        assert evidence.finding.saving is not None
        more = replace(
            evidence.finding, rule="another-rule", saving=replace(evidence.finding.saving, expected_ns=9_000_000)
        )
        assert sorted([more, evidence.finding], key=order_of) == [evidence.finding, more]


class TestSaves:
    def test_what_a_job_does_once(self) -> None:
        assert saving_ns(RecordingNotSteady, job()) == (0, 6_000_000, 6_000_000)


class TestStaysQuiet:
    def test_less_than_30_percent(self) -> None:
        assert matches_of(RecordingNotSteady, job(took=2_500)) == ()

    def test_what_comes_again_in_each_step(self) -> None:
        assert matches_of(RecordingNotSteady, job(steps=4)) == ()
