"""The ledger of every shared recording: it adds up, busy time is as counted from the JSON, causes are right."""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tb_tidy_plugin.ledger.model import Ledger
from tb_tidy_plugin.profile.steps.bounds import span_of
from tb_tidy_plugin.profile.steps.steps import ProfileSteps
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.words.causes import Cause
from tests.ledger.traces import account_in, check, ledger_in, path_of, recordings

pytestmark = pytest.mark.any_recording

# What each recording is of, and the cause that has most of its step: looked at by hand.
LARGEST: dict[str, tuple[str, str]] = {
    "a100_alexnet_startup": ("start-up", "runtime_call"),
    "a100_ddp8_control": ("steady", "compute:embedding"),
    "a100_event_sync": ("steady", "host_work"),
    "a100_event_sync_multi_stream": ("steady", "unrecorded_host"),
    "a100_simple_add_startup": ("start-up", "runtime_call"),
    "b200_eager": ("steady", "launch_pace"),
    "cpu_gloo_rank34": ("steady", "host_communication"),
    "h100_qwen_generate": ("steady", "compute:pointwise"),
    "h100_timesformer_pipeline": ("steady", "host_work"),
    "h100_vit_pipeline": ("steady", "launch_pace"),
    "mi210_gpu_only": ("steady", "compute:convolution"),
    "mi250_toy": ("start-up", "first_launch"),
    "mi300_bert_pipeline": ("steady", "launch_pace"),
    "mi300_compile_triton": ("steady", "compute:matrix"),
    "mi300_ddp8_resnet_checkpoint": ("steady", "communication"),
    "mi300_owlv2_pipeline": ("steady", "data_loading"),
    "mi300_sglang_graph_capture": ("capture", "graph_capture"),
    "mi300_sglang_graph_decode": ("steady", "compute:matrix"),
    "mi300_sglang_prefill_decode": ("steady", "compute:matrix"),
    "mi300_vllm_graph_decode": ("steady", "compute:mixture_of_experts"),
    "mi300_xdit_flux_capture": ("compilation", "compilation"),
    "mi300_xdit_flux_profile": ("steady", "compute:matrix"),
    "ranks128_sampled": ("thinned", "queued_unknown"),
    "rtx2080ti_linear": ("steady", "launch_pace"),
    "rtx4060_default_schedule": ("no-device", "cpu:random"),
    "t4_resnet50_fp32": ("steady", "compute:convolution"),
    "t4_toy_kernels": ("steady", "compute:matrix"),
    "v100_2021_resnet50_workers0": ("steady", "compute:convolution"),
    "v100_2021_resnet50_workers4": ("steady", "compute:convolution"),
    "v100_ddp2_test": ("steady", "compute:matrix"),
    "v100_ddp_resnet_ns": ("steady", "compute:convolution"),
    "v100_memory_compile_216k": ("steady", "launch_pace"),
}

# The true length of a step in ms, by the kernels' own period where they have one.
STEP_MS = {
    "mi300_ddp8_resnet_checkpoint": 18.93,
    "a100_ddp8_control": 77.5,
    "v100_ddp2_test": 117.8,
    "v100_ddp_resnet_ns": 95.6,
    "h100_qwen_generate": 35.2,
    "mi300_sglang_graph_decode": 10.45,
    "mi300_sglang_prefill_decode": 494.0,
    "mi300_vllm_graph_decode": 10.74,
}

# What must be among the first three things said, by the banner or an entry: first advice in `expectations.json`.
FIRST_ADVICE = {
    "t4_resnet50_fp32": r"mixed precision",
    "a100_alexnet_startup": r"start-up.*Warm up",
    "v100_ddp_resnet_ns": r"mixed precision",
    "a100_simple_add_startup": r"start-up.*Warm up",
    "t4_toy_kernels": r"create the data there|randn",
    "v100_dlrm_8ranks": r"launches more slowly.*(?:CUDA graphs)",
    "rtx2080ti_linear": r"launches more slowly",
    "h100_vit_pipeline": r"launches more slowly",
    "h100_qwen_generate": r"Fuse pointwise operators",
    "h100_timesformer_pipeline": r"Host work delays the device.*normalize.*workers",
    "mi300_bert_pipeline": r"launches more slowly",
    "mi300_owlv2_pipeline": r"waits for data.*zoom",
    "mi300_sglang_graph_capture": r"capture of a graph",
    "mi300_sglang_graph_decode": r"wait for work from before the recording",
    "mi300_xdit_flux_capture": r"is compilation",
    "mi300_xdit_flux_profile": r"Host work delays the device.*group_offload",
}

UNTOLD = frozenset({"mtia_train", "rtx4060_default_schedule"})
"""Recordings for which `expectations.json` has no advice that could be said."""


COLLECTIVE = re.compile(r"nccl|rccl|all_reduce|reduce_scatter|cross_device_reduce", re.IGNORECASE)
STEP = re.compile(r"ProfilerStep#\d+")
LOADING = re.compile(r"enumerate\(DataLoader\)#.*__next__")
KINDS = {
    "Kernel": "kernel", "mtia_ccp_events": "kernel", "Memcpy": "memcpy", "gpu_memcpy": "memcpy",
    "Memset": "memset", "gpu_memset": "memset",
}  # fmt: skip


class _Args(msgspec.Struct):
    device: object = None


class _Event(msgspec.Struct):
    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: msgspec.Raw = msgspec.Raw()
    dur: msgspec.Raw = msgspec.Raw()
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Document(msgspec.Struct):
    events: list[_Event] = msgspec.field(name="traceEvents", default_factory=list)


@dataclass(frozen=True)
class _Counted:
    """The complete events of a recording by what they are, as spans in exact ns; of work for each device."""

    spans: dict[str, dict[object, list[tuple[int, int]]]]

    def union(self, *kinds: str, begin: int = -(1 << 62), end: int = 1 << 62) -> int:
        """Time in which any event of `kinds` runs, whatever its device."""
        return _swept([span for kind in kinds for of in self.spans[kind].values() for span in of], begin, end)

    def per_device(self, *kinds: str) -> float:
        """The same for each device by itself, averaged over those that do any work."""
        devices = {device for kind in WORK for device in self.spans[kind]}
        each = [[span for kind in kinds for span in self.spans[kind].get(device, [])] for device in devices]
        return sum(_swept(spans, -(1 << 62), 1 << 62) for spans in each) / len(devices)


WORK = ("compute", "communication", "to_device", "to_host", "other_work")


def _counted(path: Path, origin_ns: int) -> _Counted:
    """Counted from the JSON in exact decimals, with nothing of ours."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        events = decode(text, _Document).events
    except msgspec.DecodeError:  # as old ROCm traces are, in args that are not looked at
        events = decode(re.sub(rb"\\(?![\"\\/bfnrtu])", b"", text), _Document).events
    spans: dict[str, dict[object, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for event in events:
        if event.ph == "X" and event.cat != "Trace" and bytes(event.ts) and bytes(event.dur):
            start, length = (Decimal(bytes(each).decode().strip('"')) for each in (event.ts, event.dur))
            span = (round(start * 1000) - origin_ns, round((start + length) * 1000) - origin_ns)
            kind = _kind(event)
            device = decode(event.args, _Args).device if kind in WORK else None
            spans[kind][device].append(span)
    return _Counted(spans)


def _kind(event: _Event) -> str:
    kind = KINDS.get(event.cat, event.cat)
    if kind == "kernel":
        return "communication" if COLLECTIVE.search(event.name) else "compute"
    if kind == "memcpy" and re.search("HtoD|HostToDevice|DtoH|DeviceToHost", event.name):
        return "to_device" if re.search("HtoD|HostToDevice", event.name) else "to_host"
    if kind in {"memcpy", "memset"}:
        return "other_work"
    if STEP.fullmatch(event.name) and event.cat.lower() in {"user_annotation", "operator"}:
        return "step"
    return "loading" if LOADING.match(event.name) else "host"


def _swept(spans: list[tuple[int, int]], begin: int, end: int) -> int:
    total, reach = 0, begin
    for start, stop in sorted(spans):
        low, high = max(start, reach), min(stop, end)
        if high > low:
            total += high - low
            reach = high
    return total


@pytest.mark.parametrize("recording", recordings(), scope="class")
class TestEveryRecording:
    def test_parts_add_up_to_the_step(self, recording: str) -> None:
        _, account = account_in(recording)
        check(account)

    def test_times_are_as_counted_from_the_json(self, recording: str) -> None:
        """Time at work in the ledger's window, and the length of the whole recording."""
        profile, account = account_in(recording)
        window = account.ledger.window
        counted = _counted(path_of(recording), profile.table.origin_ns)
        busy = sum(entry.ns_total for entry in account.ledger.entries if entry.cause.is_of_device)
        inside = counted.union(*WORK, begin=window.start_ns, end=window.end_ns)
        assert busy == pytest.approx(inside, rel=1e-3, abs=2000)
        if profile.steps.basis == "profiler_step":
            empty = profile.steps.unused.empty
            assert len(empty) == (recording == "mi250_toy/mi250"), "its last mark holds no operator"
            steps = [(step.start_ns, step.end_ns) for step in (*profile.steps.items, *empty)]
            assert sorted(steps) == sorted(counted.spans["step"][None])
        spans = [span for of in counted.spans.values() for each in of.values() for span in each]
        assert profile.wall_ns == max(end for _, end in spans) - min(start for start, _ in spans)
        parts = {
            cause: sum(entry.ns_total for entry in account.ledger.entries if entry.cause.word == cause)
            for cause in ("compute", "communication")
        }
        compute = counted.union("compute", begin=window.start_ns, end=window.end_ns)
        both = counted.union("compute", "communication", begin=window.start_ns, end=window.end_ns)
        assert parts["compute"] == pytest.approx(compute, rel=1e-3, abs=2000)
        assert parts["communication"] == pytest.approx(both - compute, rel=1e-3, abs=2000)


def first_of(folder: str) -> str:
    """The first recording in a shared folder; skips where it is absent."""
    found = [name for name in recordings() if name.partition("/")[0] == folder]
    return found[0] if found else path_of(folder).name


@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_cause_is_the_one_seen_by_hand(name: str) -> None:
    ledger = ledger_in(first_of(name))
    assert (ledger.recording, ledger.entries[0].id) == LARGEST[name]


@pytest.mark.parametrize("name", STEP_MS)
def test_the_step_is_that_of_the_kernels(name: str) -> None:
    ledger = ledger_in(first_of(name))
    assert ledger.step_ns.median / 1e6 == pytest.approx(STEP_MS[name], rel=0.02)


PERIODIC = (
    "v100_ddp_resnet_ns", "a100_ddp8_control", "v100_ddp2_test", "mi300_ddp8_resnet_checkpoint", "rtx2080ti_linear",
    "v100_memory_compile_216k",
)  # fmt: skip


@pytest.mark.parametrize("name", PERIODIC)
def test_kernels_repeat_at_the_pace_of_the_steps(name: str) -> None:
    marked = ledger_in(first_of(name)).step_ns.median
    profile, _ = account_in(first_of(name))
    unmarked = span_of(profile.table, ProfileSteps("none", ()), profile.device_work)
    assert unmarked.source == "repeating_unit"
    assert np.median(np.diff(unmarked.bounds)) == pytest.approx(marked, rel=0.02)


def said(ledger: Ledger) -> str:
    """The banner, what was left out, and the first three entries with owner and advice, in one line."""
    parts = [ledger.banner or "", *(left.reason for left in ledger.left_out)]
    for entry in ledger.entries[:3]:
        owner = entry.owner
        functions = [each.function for each in (owner.library, owner.own) if each]
        parts += [entry.title, *functions, owner.operator or "", owner.kernel or ""]
        parts += [entry.advice or "", entry.nothing_to_fix or ""]
    return " ".join(parts)


def test_the_first_advice_of_an_expert_is_among_the_first_three() -> None:
    known = {name.split("/")[0]: name for name in reversed([*recordings()])}
    here = [name for name in FIRST_ADVICE if name in known]
    if not here:
        pytest.skip("no shared recording is here")
    missing = [name for name in here if not re.search(FIRST_ADVICE[name], said(ledger_in(known[name])), re.DOTALL)]
    assert not missing, f"not said: {missing}"


def test_unnamed_time_is_little_where_launches_are_known() -> None:
    shares = []
    first = {name.split("/")[0]: name for name in reversed(recordings())}
    for recording in first.values():
        if recording == "absent":
            pytest.skip("no shared recording is here")
        ledger = ledger_in(recording)
        has_device = any(entry.cause is Cause.COMPUTE for entry in ledger.entries)
        if has_device and ledger.recording == "steady" and not recording.startswith("mtia"):
            shares.append(ledger.unnamed_ns / (ledger.window.end_ns - ledger.window.start_ns))
    assert np.median(shares) < 0.01
    assert np.mean(np.array(shares) < 0.05) >= 0.8
