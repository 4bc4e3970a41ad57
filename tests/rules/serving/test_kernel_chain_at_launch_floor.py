"""kernel-chain-at-launch-floor: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, matches_of, saving_ns
from tb_tidy_plugin.rules.serving.kernel_chain_at_launch_floor import KernelChainAtLaunchFloor
from tb_tidy_plugin.trace.files import find_traces
from tests.support.recordings import shared


def layers(
    count: int = 8, kernels: int = 3, lasts: int = 4, pause: int = 0, module: str = "nn.Module: Attention_0"
) -> Profile:
    """Layers of a long product and a chain of short kernels, launched ahead of the device."""
    end = 10 + 400 * count
    lines = [f"ProfilerStep#1 0-{end}", f"  {module} 1-{end - 1}"]
    at, host = 100, 2
    for _ in range(count):
        lines.append(f"    aten::mm {host}-{host + 2} kernel=gemm@{at}-{at + 100}")
        at, host = at + 100, host + 3
        for _ in range(kernels):
            lines.append(f"    aten::neg {host}-{host + 2} kernel=vectorized@{at}-{at + lasts}")
            at, host = at + lasts + pause, host + 3
        at = max(at, host + 5)
    return draw("\n".join(lines), A100)


class TestReports:
    def test_chains_that_repeat(self) -> None:
        matches = matches_of(KernelChainAtLaunchFloor, layers())
        assert [len(match.events) for match in matches] == [3] * 8
        evidence = matches[0].evidence
        assert (evidence.module, evidence.names, evidence.time) == ("Attention", "`aten::neg`", 96_000)


class TestSaves:
    def test_all_but_one_kernel_of_each_chain(self) -> None:
        assert saving_ns(KernelChainAtLaunchFloor, layers()) == (0, 64_000, 64_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(layers(kernels=2), id="two kernels"),
            pytest.param(layers(count=7), id="seven times"),
            pytest.param(layers(pause=5), id="pauses"),
            pytest.param(layers(module="train.py(3): step"), id="no module"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(KernelChainAtLaunchFloor, profile) == ()

    def test_kernels_longer_than_twice_the_shortest(self) -> None:
        assert matches_of(KernelChainAtLaunchFloor({"max_floors": 1}), layers()) == ()


def test_the_decode_step_of_sglang() -> None:
    """216 kernels between the product and the attention of 36 layers, 1.05 ms: copies, norms, rope and store."""
    (file,) = find_traces(shared("traces/mi300_sglang_graph_decode"))
    (capture,) = find_traces(shared("traces/mi300_sglang_graph_capture"))
    job = Job(rules=(KernelChainAtLaunchFloor(),), graph_captures=(Path(str(capture.path)),))
    (finding,) = read_file(file, job).report.findings
    assert finding.message.startswith("6 kernels in a row of `Qwen3Attention`")
    assert "36 times, 1.05 ms" in finding.message
    assert finding.places[0].function == "_reshape_for_qk_norm"
    assert finding.places[0].line == 394
    assert finding.saving is not None
    assert finding.saving.expected_ns == pytest.approx(0.083 * 10.45e6, rel=0.1)
