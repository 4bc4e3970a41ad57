"""The ledger where people and programs read it: on the terminal, in JSON, on the page of HTML."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.ledger import advice
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.ledger.model import Communication, Ledger, Limit, RecordingKind
from tb_tidy_plugin.render.html import to_html
from tb_tidy_plugin.render.ledger import MOST_LINES, ledger_blocks, verdict
from tb_tidy_plugin.render.report import report_document
from tb_tidy_plugin.rulekit.testing import draw
from tb_tidy_plugin.system.decoders import convert
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.words.causes import Advice, Cause, Kind, Proof
from tb_tidy_plugin.words.units import Nanoseconds, Share
from tb_tidy_plugin.words.vocabulary import STEP_SOURCES, StepBasis
from tests.ledger.traces import Made
from tests.support.recordings import ROOT, shared

GEMM = "ampere_sgemm_128x64_nn"


def late_host() -> Made:
    """A device that waits for Python, step after step."""
    made = Made()
    for at in range(4):
        begin = 20_000 * at + 1
        made.mark(f"ProfilerStep#{at}", begin, begin + 19_990)
        made.frame("train.py(3): prepare", begin + 10, begin + 15_000)
        made.operator("aten::mm", begin + 15_000, begin + 15_100)
        made.kernel(GEMM, begin + 15_100, begin + 19_900, launch=begin + 15_050)
    return made


def checked(path: Path, *options: str) -> str:
    result = CliRunner().invoke(commands, ["check", str(path), *options])
    assert result.exit_code == 0, result.output
    return result.output


class TestAdviceOnPython:
    """Only about functions that the user can change: nobody rewrites a framework's loop."""

    @pytest.mark.parametrize(
        ("inner", "is_own"),
        [
            ("train.py(20): collate", True),
            ("model/blocks.py(3): forward", True),
            ("lightning/pytorch/loops/loop.py(34): restarting", False),
            ("transformers/modeling_utils.py(1200): num_parameters", False),
            ("/venv/lib/python3.12/site-packages/some_package/loop.py(3): run", False),
        ],
    )
    def test_names_who_can_change_it(self, inner: str, is_own: bool) -> None:
        profile = draw(f"""
            ProfilerStep#1       0-1000
              train.py(9): main  0-1000
                {inner}          10-990
                  aten::add      20-30
        """)
        (entry,) = [each for each in account_of(profile).ledger.entries if each.kind is Kind.PYTHON]
        assert entry.owner.library is not None
        assert inner.startswith(entry.owner.library.file)
        assert (entry.advice is not None) == is_own


class TestTerminal:
    def test_it_begins_with_the_ledger(self, tmp_path: Path) -> None:
        text = checked(late_host().written(tmp_path)).splitlines()
        assert "4 steps, median 20 ms (marked by the profiler), device busy" in text[1]
        assert "Host work delays the device: prepare in train.py · 4 calls" in text[2]
        assert "→ Move it to workers" in text[3]
        assert "Device: matrix products" in text[4]
        assert len([line for line in text if "median 20 ms" in line]) == 1, "there is one notion of the step"

    def test_a_banner_where_the_recording_is_not_steady(self, tmp_path: Path) -> None:
        made = late_host().call("cudaMalloc", 80_001, 300_000).kernel(GEMM, 300_100, 300_200, launch=300_050)
        made.mark("ProfilerStep#4", 80_000, 300_300)
        text = checked(made.written(tmp_path)).splitlines()
        assert text[2].startswith("  recording: This recording contains start-up")

    def test_no_finding_says_what_bounds_the_step(self, tmp_path: Path) -> None:
        made = Made()
        for at in range(4):
            made.mark(f"ProfilerStep#{at}", 1000 * at + 1, 1000 * at + 1000)
            made.kernel("sage_fwd", 1000 * at + 10, 1000 * at + 999, launch=1000 * at + 4)
        text = " ".join(checked(made.written(tmp_path)).split())
        assert "No finding. Device: attention: 98.9 % of the step (989 µs)." in text
        assert "Its efficiency is not known because" in text

    def test_at_most_five_lines(self, tmp_path: Path) -> None:
        made = late_host()
        for at, kernel in enumerate(("softmax", "max_pool", "radixSort", "sage_fwd", "rmsnorm", "elementwise")):
            made.kernel(kernel, 80_000 + 900 * at, 80_900 + 900 * at, launch=19_000)
        [profile] = analyze_path(made.written(tmp_path), Job()).runs[0].profiles
        assert len([*ledger_blocks(profile.ledger, "text")]) == MOST_LINES


class TestSummary:
    def test_it_has_all_entries_and_their_sum(self, tmp_path: Path) -> None:
        path = late_host().written(tmp_path)
        [profile] = analyze_path(path, Job()).runs[0].profiles
        result = CliRunner().invoke(commands, ["summary", str(path)])
        lines = result.output.splitlines()
        head = next(at for at, line in enumerate(lines) if "where the step's time goes" in line)
        end = next(at for at, line in enumerate(lines) if line.split()[:1] == ["sum"])
        text = " ".join(" ".join(lines[head:end]).split())
        assert all(entry.title in text for entry in profile.ledger.entries)
        assert lines[end].split()[1:] == ["100", "%", *str(Nanoseconds(profile.ledger.step_ns.mean)).split()]


class TestPage:
    def test_its_table_adds_up_to_the_step(self, tmp_path: Path) -> None:
        report = analyze_path(late_host().written(tmp_path), Job())
        [profile] = report.runs[0].profiles
        text = to_html(report_document(report, "html"))
        assert f"Where the {Nanoseconds(profile.ledger.step_ns.mean)} of an average step go" in text
        assert all(str(Share(entry.share)) in text for entry in profile.ledger.entries)
        drawn = [float(share) for share in re.findall(r"flex-grow:([0-9.]+)", text.partition("Steps</h3>")[0])]
        assert abs(sum(drawn) - 1) < 0.001 * len(drawn)


def test_sarif_holds_the_times_of_each_profile(tmp_path: Path) -> None:
    path = late_host().written(tmp_path)
    [profile] = analyze_path(path, Job()).runs[0].profiles
    [told] = json.loads(checked(path, "--format", "sarif"))["runs"][0]["properties"]["ledgers"]
    assert told["ns_per_step"] == {entry.id: entry.ns_per_step for entry in profile.ledger.entries}
    assert told["step_ns"]["median"] == profile.ledger.step_ns.median
    assert told["recording"] == "steady"


class TestJson:
    def test_the_contract(self, tmp_path: Path) -> None:
        report = json.loads(checked(late_host().written(tmp_path), "--format", "json"))
        [profile] = report["runs"][0]["profiles"]
        ledger = convert(profile["ledger"], Ledger)
        window = ledger.window.end_ns - ledger.window.start_ns
        assert sum(entry.ns_total for entry in ledger.entries) == window
        assert {entry.id for entry in ledger.entries} >= {"host_work", "compute:matrix"}
        savings = {finding["id"]: finding["saving"]["expected_ns"] for finding in profile["findings"]}
        for name in {entry.finding_id for entry in ledger.entries} - {None}:
            held = sum(entry.ns_total for entry in ledger.entries if entry.finding_id == name)
            assert savings[str(name)] * ledger.step_ns.n <= held

    @pytest.mark.parametrize("recording", ["t4_toy_kernels", "a100_event_sync", "mi250_toy", "cpu_gloo_rank34"])
    @pytest.mark.any_recording
    def test_no_finding_contradicts_its_entries(self, recording: str) -> None:
        report = json.loads(checked(shared(f"traces/{recording}"), "--format", "json"))
        for profile in report["runs"][0]["profiles"]:
            ledger = convert(profile["ledger"], Ledger)
            savings = {finding["id"]: finding["saving"]["expected_ns"] for finding in profile["findings"]}
            for name in {entry.finding_id for entry in ledger.entries} - {None}:
                held = sum(entry.ns_total for entry in ledger.entries if entry.finding_id == name)
                assert savings[str(name)] * ledger.step_ns.n <= held

    def test_causes_are_a_closed_list_in_the_schema(self) -> None:
        schema = json.loads((ROOT / "docs" / "report.schema.json").read_text())
        entry = schema["definitions"]["Entry"]["properties"]
        assert entry["cause"] == {"$ref": "#/definitions/Cause"}
        assert len(schema["definitions"]["Cause"]["enum"]) == 26
        assert {"window", "entries", "unnamed_ns"} <= schema["definitions"]["Ledger"]["properties"].keys()


def test_operators_of_the_host_have_a_rate() -> None:
    profile = draw("""
    ProfilerStep#1  0-1002
      aten::mm      0-500     dims=100x100,100x100  types=float,float
      aten::add     501-901   dims=50x20,50x20      types=float,float
      aten::add     902-1002
    """)
    matrix, pointwise = account_of(profile).ledger.entries[:2]
    assert matrix.rate is not None
    assert pointwise.rate is not None
    assert matrix.rate.flops_per_second == pytest.approx(2 * 100**3 / 500e-6)
    assert matrix.rate.bytes_per_second == pytest.approx(3 * 100**2 * 4 / 500e-6)
    assert pointwise.rate.bytes_per_second == pytest.approx(3 * 50 * 20 * 4 / 400e-6)
    assert (matrix.rate.known_share, pointwise.rate.known_share) == (1.0, 0.8)
    assert matrix.nothing_to_fix == "It computes 4 GFLOP/s and moves 240 MB/s; the peak of this CPU is not known."
    assert pointwise.nothing_to_fix == "It moves 30 MB/s; the peak of this CPU is not known."
    assert pointwise.advice is not None, "how fast it is does not say that it is needed"


def test_time_of_compiled_code_itself_is_that_of_its_kernels() -> None:
    """Those in C++ have no events: their time is the graph's own, and no operator's."""
    code = "zj/czjnfejbdxv64ttdmw7oj5j4zjc6uf3iyojdsx47yei3jacna2c4.py(134): call"
    profile = draw(f"""
    ProfilerStep#1  0-1000
      model.py(7): forward        0-1000
        CompiledFunction          0-1000
          {code}                  0-1000
            aten::mm              600-1000  dims=4x4,4x4  types=float,float
    """)
    fused, matrix = account_of(profile).ledger.entries
    assert [(entry.kind, entry.ns_total) for entry in (fused, matrix)] == [
        (Kind.FUSED, 600_000),
        (Kind.MATRIX, 400_000),
    ]
    for entry in (fused, matrix):
        assert entry.owner.own is not None
        assert entry.owner.own.file == "model.py"
        assert entry.owner.library == entry.owner.own


def test_without_shapes_a_rate_is_not_known() -> None:
    (entry,) = account_of(draw("ProfilerStep#1  0-100\n  aten::mm  0-100")).ledger.entries
    assert entry.rate is None
    assert "shapes" in (entry.nothing_to_fix or "")


def test_work_without_a_formula_does_not_lack_shapes() -> None:
    (entry,) = account_of(draw("ProfilerStep#1  0-100\n  my::op  0-100  dims=4,4  types=float,float")).ledger.entries
    assert entry.nothing_to_fix == "Its efficiency is not known because no formula is known for its operators."


@pytest.mark.parametrize("shapes", [False, True])
def test_products_of_unknown_efficiency_ask_for_shapes_where_there_are_none(*, shapes: bool) -> None:
    inputs = {"Input Dims": [[4, 4], [4, 4]], "Input type": ["?", "?"]} if shapes else {}
    made = Made().mark("ProfilerStep#1", 1, 1000).add("cpu_op", "aten::mm", 10, 60, **inputs)  # type: ignore[arg-type]
    (entry, *_) = made.kernel("gemm_of_my_own", 70, 990, launch=20).account().ledger.entries
    assert (entry.advice == advice.RECORD_SHAPES) is not shapes
    assert (entry.nothing_to_fix or "").startswith("Its efficiency is not known because ")


def test_a_server_reads_the_weights_of_experts_for_each_batch() -> None:
    assert _of_experts("execute_context_0(0)_generation_8(8)") == (
        "Reading weights limits decoding: batch more requests, or store weights in FP8 or INT8."
    )
    assert _of_experts("execute_context_2(512)_generation_0(0)") is None, "which computes more than it reads"


def test_weights_of_eight_bits_or_fewer_need_not_be_stored_in_eight() -> None:
    said = _of_experts("execute_context_0(0)_generation_8(8)", "_matmul_ogs_NNT_bf16xbf16xmxfp4_fused_moe")
    assert said == "Reading weights limits decoding: batch more requests."


def _of_experts(mark: str, kernel: str = "fused_moe_kernel") -> str | None:
    made = Made().mark(mark, 1, 100).graph(20, [(30, 900)])
    for event in made.events:
        event["name"] = event["name"].replace("gemm", kernel)
    (entry, *_) = made.account().ledger.entries
    assert entry.kind is Kind.MIXTURE_OF_EXPERTS
    return entry.advice


def test_every_cause_has_a_title_a_proof_and_advice() -> None:
    assert all(cause.title and cause.label for cause in Cause)
    assert {cause for cause in Cause if cause.advice is None} == {Cause.COMPUTE, Cause.COPY, Cause.CPU}
    assert all(kind.advice for kind in (Kind.TO_DEVICE, Kind.TO_HOST, Kind.ON_DEVICE, Kind.FILL, Kind.OTHER))
    # Time in which the device does not work has evidence, unless nothing of it was recorded.
    unproven = {cause for cause in Cause if cause.proof is Proof.NONE and not cause.is_of_device}
    assert unproven == {Cause.CPU, Cause.UNRECORDED_HOST, Cause.UNRECORDED_LAUNCH}
    assert set(advice.BANNERS) == set(get_args(RecordingKind)) - {"steady"}
    assert set(STEP_SOURCES) == {*get_args(StepBasis), "repeating_unit"}


def test_json_carries_the_legend() -> None:
    """A page or a program draws the ledger without a table of causes."""
    ledger = msgspec.to_builtins(late_host().account().ledger)
    shown = ("label", "group", "colour", "at_work", "proof_text")
    found = {entry["id"]: tuple(entry[name] for name in shown) for entry in ledger["entries"]}
    assert found["host_work"] == ("Host work", "host", "red", "none", "no thread launched anything for a while")
    assert found["compute:matrix"] == ("Matrix products", "compute", "blue", "device", "")
    assert found["launch_pace"] == (
        "Launch overhead", "launch", "stripes", "none", "the host was launching the next work",
    )  # fmt: skip
    labels = [each["label"] for each in ledger["groups"]]
    assert labels[0] == "Device compute"
    assert labels.index("Host work") < labels.index("Launch overhead")
    assert ledger["step_source_text"] == "marked by the profiler"
    assert (ledger["is_one_time"], ledger["hidden_device"]) == (False, None)


def test_advice_on_communication_by_what_takes_longer() -> None:
    assert advice.on_communication(Communication(transfer_ns=60, wait_ns=40, by="ranks")) == advice.TRANSFER
    assert advice.on_communication(Communication(transfer_ns=40, wait_ns=60, by="ranks")).startswith("60 % of it is")


def test_a_recording_without_entries_says_why_everywhere() -> None:
    ledger = Made().operator("aten::mm", 5, 5).account().ledger
    assert (ledger.recording, ledger.entries) == ("empty", [])
    assert "no operators, no calls and no device work" in (ledger.banner or "")
    assert verdict(ledger) == ledger.banner


@pytest.mark.any_recording
def test_communication_is_split_where_all_ranks_are_there() -> None:
    [run] = json.loads(checked(shared("traces/v100_dlrm_8ranks"), "--format", "json"))["runs"]
    rows = {row["rank"]: row for row in run["ranks"]["rows"]}
    for profile in run["profiles"]:
        [entry] = [each for each in profile["ledger"]["entries"] if each["cause"] == "communication"]
        split = entry["communication"]
        assert split["by"] == "ranks"
        assert split["transfer_ns"] + split["wait_ns"] == entry["ns_total"]
        assert 50_000 < split["transfer_ns"] < 250_000, "0.198 ms by hand, on each rank"
        assert "waiting for late ranks" in entry["advice"]
        row = rows[profile["rank"]]
        assert row["step_ns"] == profile["ledger"]["step_ns"]["median"] == sum(row["parts_ns"].values())
        assert row["parts_ns"]["communication"] == entry["ns_per_step"]
        assert row["arrivals"]["waits_ns"] == split["wait_ns"]
        exposed = [each for each in profile["findings"] if each["rule"] == "exposed-communication"]
        assert all(each["saving"]["high_ns"] <= split["transfer_ns"] for each in exposed)
        assert all("is transfer" in each["details"][0]["text"] for each in exposed)
        savings = [each["saving"]["expected_ns"] for each in profile["findings"]]
        assert savings == sorted(savings, reverse=True)
        assert savings[0] <= profile["joint_saving"]["expected_ns"] <= sum(savings)


def words_of(stated: Cause | Kind) -> Advice:
    assert stated.advice is not None
    return stated.advice


def test_advice_does_not_name_what_is_there_already() -> None:
    limit = Limit(share_reached=0.5, bound="compute", known_share=1, by="shapes")
    known = advice.Circumstances(
        serving=None, has_stacks=True, why_unknown="", in_graph=False, is_narrow=False, is_quantised=False,
        has_workers=False, has_calls=True,
    )  # fmt: skip
    wide, _ = advice.advised(Cause.COMPUTE, Kind.MATRIX, limit, known)
    narrow, _ = advice.advised(Cause.COMPUTE, Kind.MATRIX, limit, replace(known, is_narrow=True))
    assert (wide or "").startswith("Use bfloat16 or float16, larger batches")
    assert (
        narrow == "Use larger batches, and sizes that are multiples of 64. It reaches 50 % of the device's peak rate."
    )
    prefill, _ = advice.advised(Cause.COMPUTE, Kind.MATRIX, limit, replace(known, is_narrow=True, serving="prefill"))
    assert (prefill or "").startswith("Tune the products for these sizes")
    assert "FP8" in (prefill or "")
    quantised = replace(known, is_narrow=True, serving="prefill", is_quantised=True)
    assert "FP8" not in (advice.advised(Cause.COMPUTE, Kind.MATRIX, limit, quantised)[0] or "")


def test_no_advice_contradicts_what_the_recording_holds() -> None:
    known = advice.Circumstances(
        serving=None, has_stacks=True, why_unknown="", in_graph=False, is_narrow=False, is_quantised=False,
        has_workers=False, has_calls=True,
    )  # fmt: skip
    without = replace(known, has_stacks=False, has_calls=False)
    assert advice.advised(Cause.UNRECORDED_HOST, None, None, known) == (
        None,
        words_of(Cause.UNRECORDED_HOST).with_stacks,
    )
    assert "with_stack=True" in (advice.advised(Cause.UNRECORDED_HOST, None, None, without)[0] or "")
    assert advice.advised(Cause.UNRECORDED_LAUNCH, None, None, known) == (
        None,
        words_of(Cause.UNRECORDED_LAUNCH).with_calls,
    )
    assert "host and device together" in (advice.advised(Cause.UNRECORDED_LAUNCH, None, None, without)[0] or "")


def test_a_server_of_text_has_graphs_and_fused_kernels_of_its_own() -> None:
    known = advice.Circumstances(
        serving="decode", has_stacks=True, why_unknown="", in_graph=False, is_narrow=False, is_quantised=False,
        has_workers=False, has_calls=True,
    )  # fmt: skip
    assert advice.advised(Cause.LAUNCH_PACE, None, None, known) == (words_of(Cause.LAUNCH_PACE).served, None)
    assert advice.advised(Cause.COMPUTE, Kind.NORMALISATION, None, known) == (words_of(Kind.NORMALISATION).served, None)
    diffusion = replace(known, serving="diffusion")
    assert advice.advised(Cause.LAUNCH_PACE, None, None, diffusion) == (words_of(Cause.LAUNCH_PACE).usual, None)
    assert advice.advised(Cause.COMPUTE, Kind.NORMALISATION, None, diffusion) == (
        words_of(Kind.NORMALISATION).usual,
        None,
    )


def test_loaders_with_workers_are_told_to_have_more_of_them() -> None:
    def advised(*iterators: str) -> str | None:
        made = Made().mark("ProfilerStep#1", 1, 9000).operator("aten::conv2d", 10, 100)
        for at, iterator in enumerate(iterators):
            made.mark(f"enumerate(DataLoader)#_{iterator}DataLoaderIter.__next__", 200 + 2000 * at, 2000 + 2000 * at)
        entries = made.account().ledger.entries
        return next(each.advice for each in entries if each.cause is Cause.DATA_LOADING)

    assert advised("MultiProcessing", "MultiProcessing") == words_of(Cause.DATA_LOADING).with_workers
    assert advised("SingleProcess") == words_of(Cause.DATA_LOADING).usual
    assert advised("MultiProcessing", "SingleProcess") == words_of(Cause.DATA_LOADING).usual


def test_host_work_of_unknown_functions_asks_for_stacks() -> None:
    made = Made().mark("ProfilerStep#1", 1, 9000).operator("aten::conv2d", 10, 8000)
    (first, *_) = made.kernel(GEMM, 8000, 8900, launch=7990).account().ledger.entries
    assert (first.cause, first.advice) == (Cause.HOST_WORK, words_of(Cause.HOST_WORK).without_stacks)


@pytest.mark.parametrize(
    ("kernel", "dtype", "narrow"),
    [
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", "", True),
        ("Cijk_Alik_Bljk_BBS_BH_MT32x32x256", "", True),
        ("Cijk_Alik_Bljk_SB_MT32x32x256", "", False),
        ("ampere_sgemm_128x64_nn", "", False),
        ("gemm_of_my_own", "c10::Half", True),
        ("gemm_of_my_own", "float", False),
    ],
)
def test_narrow_work_is_known_by_name_or_type(kernel: str, dtype: str, *, narrow: bool) -> None:
    inputs = {"Input Dims": [[4, 4], [4, 4]], "Input type": [dtype, dtype]} if dtype else {}
    made = Made().mark("ProfilerStep#1", 1, 1000).add("cpu_op", "aten::mm", 10, 60, **inputs)  # type: ignore[arg-type]
    account = made.kernel(kernel, 70, 990, launch=20).account()
    assert account.limits.is_narrow(account.segments.take(np.flatnonzero(account.segments.work != ABSENT))) is narrow


def test_steps_of_uneven_length_have_a_mean_beside_the_median(tmp_path: Path) -> None:
    made = Made()
    for at, end in enumerate((1000, 2000, 9000)):
        made.mark(f"ProfilerStep#{at}", 1000 * at + 1, end).kernel(GEMM, 1000 * at + 10, end, launch=1000 * at + 5)
    assert "3 steps, median 1 ms, mean 3 ms (marked by the profiler)" in checked(made.written(tmp_path))


def test_copies_of_pinned_memory_are_not_told_to_pin_it() -> None:
    def advised(way: str) -> dict[str, str | None]:
        made = Made().mark("ProfilerStep#1", 1, 900).operator("aten::copy_", 10, 100)
        made.kernel("gemm", 20, 30, 11).copy(way, 200, 800, 15)
        return {entry.id: entry.advice for entry in made.account().ledger.entries}

    assert advised("Memcpy HtoD (Pageable -> Device)")["copy:to_device"] == words_of(Kind.TO_DEVICE).usual
    pinned = advised("Memcpy HtoD (Pinned -> Device)")
    assert (pinned["copy:to_device"], pinned["copy_setup"]) == (
        words_of(Kind.TO_DEVICE).pinned,
        words_of(Cause.COPY_SETUP).pinned,
    )
    assert advised("Memcpy DtoH (Device -> Pageable)")["copy:to_host"] == words_of(Kind.TO_HOST).usual
    assert advised("Memcpy DtoH (Device -> Pinned)")["copy:to_host"] == words_of(Kind.TO_HOST).pinned
