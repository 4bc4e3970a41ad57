"""cuda-graphs-skipped: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import msgspec
import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.compile.cuda_graphs_skipped import OTHERWISE, CudaGraphsSkipped, Evidence
from tb_tidy_plugin.trace.compiled_code import CompiledCode, CompiledRegion, CompilerReason
from tb_tidy_plugin.words.units import Nanoseconds
from tests.support.compiled import with_compiled

SKIP = CompilerReason("mutated inputs (1 instances)", "model.py", 9, "forward", "0/0")


def job(launches: int = 10, busy_until: int = 60, skips: tuple[CompilerReason, ...] = (SKIP,)) -> Profile:
    """A step with one call of a compiled function, from 100 µs on; a kernel is launched every 20 µs and takes 2."""
    lines = [
        "ProfilerStep#1 0-1000",
        "  Torch-Compiled Region: 0/0 10-900",
        "    model.py(7): forward 11-899",
        f"      aten::mm 20-30 kernel=mm@40-{busy_until}",
        f"      ## Call CompiledFxGraph fabc ## 100-{100 + 20 * launches}",
    ]
    lines += [
        f"        triton_poi_fused_{at} {at + 2}-{at + 12} kernel=triton@{at + 15}-{at + 17}"
        for at in range(100, 100 + 20 * launches, 20)
    ]
    code = CompiledCode(regions=[CompiledRegion("0/0", "forward")], skips=list(skips))
    return with_compiled(draw("\n".join(lines), A100), code)


class TestReports:
    def test_the_function_with_inductors_reason(self) -> None:
        (finding,) = findings(CudaGraphsSkipped, job())
        assert finding.message == (
            "`forward` runs without CUDA graphs: 10 launches per call, with the device idle for 180 µs of it"
        )
        assert "Inductor's reason: mutated inputs (1 instances) (model.py:9)." in str(finding.details[0])
        assert "mark_static_address" in finding.fix
        assert [(place.file, place.function) for place in finding.places] == [("model.py", "forward")]

    @pytest.mark.parametrize(
        ("reason", "cure"),
        [
            ("cpu device (arg0_1)", "Move all tensors"),
            ("graph with symbolic shapes inputs", "Pad inputs"),
            ("function 3 exceeding max re-recording limit", "Use the same tensors"),
            ("complex memory overlap at input 0", OTHERWISE),
        ],
    )
    def test_a_cure_for_each_reason(self, reason: str, cure: str) -> None:
        assert Evidence("f", reason, "", 0, 10, Nanoseconds(1)).cure.startswith(cure)


class TestSaves:
    def test_the_devices_idle_time_but_for_two_launches(self) -> None:
        assert saving_ns(CudaGraphsSkipped, job()) == (0, 144_000, 162_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(launches=7), id="few launches"),
            pytest.param(job(skips=()), id="graphs that were not asked for"),
            pytest.param(job(skips=(msgspec.structs.replace(SKIP, id="1/0"),)), id="another function"),
            pytest.param(job(busy_until=900), id="a device that is always busy"),
            pytest.param(draw("aten::mm 0-10 kernel=mm@5-9", A100), id="eager code"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(CudaGraphsSkipped, profile) == ()
