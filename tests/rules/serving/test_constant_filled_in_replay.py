"""constant-filled-in-replay: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.profile.graphs.replay import with_replayed
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import findings, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rules.serving.constant_filled_in_replay import ConstantFilledInReplay
from tb_tidy_plugin.trace.files import find_traces
from tests.ledger.traces import Made
from tests.profile.graphs.test_replay_drawn import replay
from tests.support.recordings import shared

ONE = [[1], []]
PRODUCT: dict[str, Any] = {"Input Dims": [[8, 64], [64, 64]], "Input type": ["float", "float"]}


def served(
    fills: int = 8, name: str = "triton_poi_fused_zeros_20", dims: list[list[int]] = ONE, *, captured: bool = True
) -> Profile:
    """Two replays, each with a product and a fill of 10 µs per layer."""
    made = Made()
    types = ["int" if shape else "Scalar" for shape in dims]
    if captured:
        made.call("hipStreamBeginCapture", 0, 1)
        for at in range(fills):
            start = 10 + 20 * at
            made.operator("aten::mm", start, start + 9, **PRODUCT).call(
                "hipLaunchKernel", start + 1, start + 2, kernel="gemm"
            )
            inputs: dict[str, Any] = {"Input Dims": dims, "Input type": types}
            made.operator(name, start + 10, start + 19, **inputs)
            made.call("hipLaunchKernel", start + 11, start + 12, kernel="fill")
        made.call("hipStreamEndCapture", 990, 991)
    made.operator("aten::mm", 3100, 3110, **PRODUCT)
    for step in (1000, 2000):
        made.mark(f"ProfilerStep#{step}", step, step + 1000)
        replay(made, step + 10, ["gemm", "fill"] * fills)
    return made.profile(with_replayed)


class TestReports:
    def test_a_fill_in_each_layer(self) -> None:
        (finding,) = findings(ConstantFilledInReplay, served())
        assert finding.message == (
            "`triton_poi_fused_zeros_20` writes a constant to one element 8 times in each of 2 replays: 160 µs"
        )
        assert (finding.matches, finding.cost_ns, finding.known_by) == (2, 80_000, "exact")

    def test_a_few_elements_of_an_eager_operator(self) -> None:
        (match, _) = matches_of(ConstantFilledInReplay, served(name="aten::fill_", dims=[[4, 8], []]))
        assert (match.evidence.what, match.evidence.times, len(match.events)) == ("32 elements", 8, 8)


class TestSaves:
    def test_all_of_their_time_at_best(self) -> None:
        assert saving_ns(ConstantFilledInReplay, served()) == (0, 80_000, 80_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(served(fills=7), id="seven times"),
            pytest.param(served(dims=[[1], [1]]), id="another tensor"),
            pytest.param(served(dims=[[1025], []]), id="many elements"),
            pytest.param(served(name="triton_poi_fused_div_20"), id="what changes its tensor"),
            pytest.param(served(name="aten::add_"), id="another operator"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(ConstantFilledInReplay, profile) == ()

    def test_without_the_capture_it_cannot_tell(self) -> None:
        assert "record the capture" in reason_not_checked(ConstantFilledInReplay, served(captured=False))


def test_the_attention_of_flux() -> None:
    """Three zeros of one `int` before each of 57 attentions, in each of 4 denoising steps: 684 kernels."""
    (file,) = find_traces(shared("traces/mi300_xdit_flux_profile"))
    (capture,) = find_traces(shared("traces/mi300_xdit_flux_capture"))
    job = Job(rules=(ConstantFilledInReplay(),), graph_captures=(Path(str(capture.path)),))
    (finding,) = read_file(file, job).report.findings
    assert finding.message == (
        "`triton_poi_fused__to_copy_div_empty_like_zeros_20` writes a constant to one element 171 times in each of 4 "
        "replays: 3.09 ms"
    )
    assert finding.places[0].function == "forward"
    assert finding.share == pytest.approx(3.09 / 250, abs=0.001)
