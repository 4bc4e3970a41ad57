"""The table of kernels: families, times and rates against counts from the raw JSON and by hand."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.checker import MISSING
from tb_tidy_plugin.analysis.device_kernels import device_kernels
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.lines import LineCosts
from tb_tidy_plugin.analysis.tables import figures_of
from tb_tidy_plugin.plugin.tables import Page, kernels_answer, tables_of
from tb_tidy_plugin.profile.events.inputs import Inputs
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.serving.paged_attention import decode_attention, serving_estimates_of
from tb_tidy_plugin.report.figures import DeviceKernelRow, KernelFamilyRow
from tb_tidy_plugin.rulekit.testing import A100, draw
from tb_tidy_plugin.trace.columns import ExpertSizes
from tb_tidy_plugin.trace.files import find_traces
from tests.support.recordings import shared

DECODE, CAPTURE = "mi300_sglang_graph_decode", "mi300_sglang_graph_capture"
MI300_BYTES_PER_SECOND = 5.3e12

DRAWN = """
    ProfilerStep#1       0-2000
      aten::mm           1-20  dims=64x1024,1024x1024  types=bfloat16,bfloat16  kernel=gemm@100-200 kernel=split@200-210
      aten::mm           21-40    dims=64x1024,1024x1024  types=bfloat16,bfloat16  kernel=gemm@300-400
      aten::mm           41-60    dims=4096x4096,4096x4096  types=bfloat16,bfloat16  kernel=fast_gemm@400-401
      aten::copy_        61-70    dims=64x64,64x64  types=float,float  copy=HtoD@500-510:16384
      c10d::allreduce_   71-80    dims=64x64  types=float  kernel=ncclDevKernel_AllReduce@600-700
"""


def tables(profile: Profile) -> tuple[dict[str, KernelFamilyRow], dict[str, DeviceKernelRow]]:
    families, rows = device_kernels(profile, serving_estimates_of(profile))
    return {row.family.word: row for row in families}, {row.name: row for row in rows}


class TestDrawn:
    def test_families_are_by_operator_first(self) -> None:
        families, rows = tables(draw(DRAWN, A100))
        assert {name: row.family.word for name, row in rows.items()} == {
            "gemm": "matrix",
            "split": "matrix",
            "fast_gemm": "matrix",
            "Memcpy HtoD (Pageable -> Device)": "to_device",
            "ncclDevKernel_AllReduce": "communication",
        }
        assert {name: (row.count, row.total_ns) for name, row in families.items()} == {
            "matrix": (4, 211_000), "communication": (1, 100_000), "to_device": (1, 10_000),
        }  # fmt: skip
        assert sum(row.share for row in families.values()) == pytest.approx(1)

    def test_an_operators_work_is_over_the_time_of_all_of_its_kernels(self) -> None:
        _, rows = tables(draw(DRAWN, A100))
        flops = 2 * 2 * 64 * 1024 * 1024
        moved = 2 * 2 * (64 * 1024 + 1024 * 1024 + 64 * 1024)
        assert rows["gemm"].flops_per_second == pytest.approx(flops / 210e-6)
        assert rows["gemm"].bytes_per_second == pytest.approx(moved / 210e-6)
        assert rows["gemm"].roofline == pytest.approx(moved / 2039e9 / 210e-6)
        assert rows["split"].flops_per_second is None

    def test_rates_above_the_device_are_withheld_and_not_part_of_the_family(self) -> None:
        families, rows = tables(draw(DRAWN, A100))
        fast = rows["fast_gemm"]
        assert (fast.flops_per_second, fast.bytes_per_second, fast.roofline) == (None, None, None)
        assert families["matrix"].roofline == rows["gemm"].roofline
        assert families["matrix"].rated_share == pytest.approx(210 / 211)

    def test_copies_over_the_bus_have_no_rate(self) -> None:
        _, rows = tables(draw(DRAWN, A100))
        assert rows["Memcpy HtoD (Pageable -> Device)"].bytes_per_second is None

    def test_nothing_without_a_device(self) -> None:
        profile = draw("ProfilerStep#1 0-20\n  aten::mm 1-9  dims=2x2,2x2  types=float,float")
        assert device_kernels(profile, serving_estimates_of(profile)) == ([], [])
        figures = figures_of(profile)
        assert figures.missing["kernels"] == MISSING["device"]


MARK = "execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk9000sqsq4sqsk9000)"
SERVED = f"""
    {MARK}               0-1000
      vllm::moe_forward  1-20  kernel=fused_moe_kernel@100-140 kernel=moe_align_block_size@140-150
"""


class TestExperts:
    """Four tokens go to 8 x (1 - (3 / 4) ^ 4) experts of 4 MB."""

    READ = round(8 * (1 - (3 / 4) ** 4) * 4_000_000)

    def served(self, text: str = SERVED, layers: int = 1, ranks: int = 1) -> Profile:
        table = draw(text, A100).table
        metadata = replace(table.metadata, world_size=ranks)
        return Profile(replace(table, experts=ExpertSizes(layers, 8, 2, 4_000_000), metadata=metadata))

    def test_read_over_the_time_of_all_their_kernels(self) -> None:
        families, rows = tables(self.served())
        family = families["mixture_of_experts"]
        assert family.bytes_per_second == pytest.approx(self.READ / 50e-6)
        assert (family.rated_share, family.flops_per_second) == (1.0, None)
        assert rows["fused_moe_kernel"].bytes_per_second == family.bytes_per_second
        assert rows["moe_align_block_size"].bytes_per_second is None

    def test_above_the_device_is_withheld(self) -> None:
        families, _ = tables(self.served(layers=9))
        assert families["mixture_of_experts"].bytes_per_second is None

    @pytest.mark.parametrize(
        ("text", "ranks"),
        [
            pytest.param(SERVED, 8, id="experts of several ranks"),
            pytest.param(SERVED.replace("context_0(sq0sk0sqsq0", "context_1(sq9sk9sqsq81"), 1, id="a prefill beside"),
        ],
    )
    def test_is_unknown_for(self, text: str, ranks: int) -> None:
        families, _ = tables(self.served(text, ranks=ranks))
        assert families["mixture_of_experts"].bytes_per_second is None

    @pytest.mark.any_recording
    def test_of_gpt_oss_on_mi300(self) -> None:
        """24 layers of 32 experts, 4 a token, of 3 x 2,880 x 2,880 weights in MXFP4; 7,409,562 ns by the raw JSON."""
        (file,) = find_traces(shared("traces/mi300_vllm_graph_decode"))
        table = read_file(file, Job()).profile.table
        sizes = ExpertSizes(24, 32, 4, round(3 * 2880 * 2880 * 4.25 / 8))
        families, _ = tables(Profile(replace(table, experts=sizes)))
        read = 24 * 32 * (1 - (28 / 32) ** 32) * 3 * 2880 * 2880 * 4.25 / 8
        assert families["mixture_of_experts"].bytes_per_second == pytest.approx(read / 7_409_562e-9, rel=1e-6)
        assert families["mixture_of_experts"].roofline == pytest.approx(0.255, abs=0.001)


class TestPages:
    def test_are_filtered_sorted_and_cut(self) -> None:
        kept = tables_of(figures_of(draw(DRAWN, A100)), LineCosts([], []), 0)
        found = kernels_answer(kept, Page(1, 1, "mean_ns", descending=True, text="MATRIX"))
        assert (found.total, found.offset, [row.name for row in found.rows]) == (3, 1, ["split"])
        assert len(found.families) == 3
        only = kernels_answer(kept, Page(0, 9, "name", descending=False, kind="communication"))
        assert [row.name for row in only.rows] == ["ncclDevKernel_AllReduce"]
        (row,) = only.rows
        assert kernels_answer(kept, Page(0, 9, "name", descending=False, text=row.key)).rows == [row]


class TestAttention:
    def test_reads_the_tokens_of_the_annotation(self) -> None:
        cache = ((100, 1, 8, 128), (100, 1, 8, 128))
        found = decode_attention(Inputs(((2, 32, 128), *cache), ("c10::BFloat16",) * 3), 1000)
        assert found is not None
        assert (found.flops, found.bytes) == (4 * 32 * 128 * 1000, 2 * 8 * 128 * 2 * 1000 + 2 * 2 * 32 * 128 * 2)

    @pytest.mark.parametrize(
        "dims",
        [
            pytest.param(((2, 32, 128), (2, 8, 128)), id="no cache"),
            pytest.param(((2, 32, 128), (9, 16, 8, 128), (9, 16, 8, 128)), id="heads or page"),
            pytest.param(((2, 32, 128), (9, 1, 8, 64), (9, 1, 8, 64)), id="another size"),
        ],
    )
    def test_is_unknown_for(self, dims: tuple[tuple[int, ...], ...]) -> None:
        assert decode_attention(Inputs(dims, ("c10::BFloat16",) * len(dims)), 1000) is None


def test_a_replayed_decode_step() -> None:
    """SGLang, batch 32, 36 layers of 4 products, 32,785 tokens in the cache: all counted from the raw JSON."""
    (file,) = find_traces(shared(f"traces/{DECODE}"))
    (capture,) = find_traces(shared(f"traces/{CAPTURE}"))
    families, _ = tables(read_file(file, Job(rules=(), graph_captures=(Path(str(capture.path)),))).profile)
    events = json.loads(gzip.decompress(file.path.read_bytes()))["traceEvents"]
    time: Counter[str] = Counter()
    for event in events:
        if event.get("cat") == "kernel":
            kind = "matrix" if event["name"].startswith("Cijk_") else "rest"
            time["attention" if "paged_attention" in event["name"] else kind] += round(event["dur"] * 1000)
    assert families["matrix"].total_ns == pytest.approx(time["matrix"], rel=1e-6)
    assert families["attention"].total_ns == pytest.approx(time["attention"], rel=1e-6)
    layer = [(4096, 24576), (12288, 4096), (4096, 6144), (4096, 4096)]
    products = [*layer * 36, (4096, 151936)]
    moved = 2 * sum(32 * k + k * n + 32 * n for k, n in products)
    assert families["matrix"].bytes_per_second == pytest.approx(moved / time["matrix"] * 1e9, rel=1e-6)
    assert families["matrix"].roofline == pytest.approx(moved / MI300_BYTES_PER_SECOND / time["matrix"] * 1e9, rel=1e-6)
    read = 36 * (2 * 8 * 128 * 2 * 32_785 + 2 * 32 * 32 * 128 * 2)
    assert families["attention"].bytes_per_second == pytest.approx(read / time["attention"] * 1e9, rel=1e-6)
