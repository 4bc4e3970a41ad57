"""Iterations of servers: what their marks say, and what the device did for each, against counts from the raw JSON."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.serving.iterations import Iteration, Repeated, iterations_of, repeated_of
from tb_tidy_plugin.profile.steps.iteration_marks import Batch, batch_of, merged, sizes_of
from tb_tidy_plugin.trace.kineto import read_trace
from tests.ledger.traces import Made
from tests.support.recordings import shared

LONG = "execute_{}_context_{}(sq{}sk{}sqsq{}sqsk{})_generation_{}(sq{}sk{}sqsq{}sqsk{})"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            LONG.format(32, 0, 0, 0, 0, 0, 32, 32, 32785, 32, 32785),
            Batch("decode", 32, 0, 32, 32, 32785, 32785, 32785),
        ),
        (
            LONG.format(120, 1, 100, 300, 10000, 30000, 20, 20, 4000, 20, 4000),
            Batch("mixed", 21, 1, 20, 120, 4300, 4000, 34000),
        ),
        ("execute_context_1(888_788544)_generation_0(0)", Batch("prefill", 1, 1, 0, 888, 888, 0, 788544)),
        ("execute_context_2(888_788544)_generation_3(50)", Batch("mixed", 5, 2, 3, 891, None, 50, 788594)),
        ("execute_context_0(0_0)_generation_8(4096)", Batch("decode", 8, 0, 8, 8, 4096, 4096, 4096)),
        ("execute_context_2(6144)_generation_3(3)", Batch("mixed", 5, 2, 3, 6147)),
        ("execute_context_0(0)_generation_32(128)", Batch("decode", 32, 0, 32, 128)),  # three tokens are speculated
        ("execute_new_2_cached_6", Batch("mixed", 8)),
        ("execute_new_0_cached_6", Batch("decode", 6)),
        ("step[EXTEND bs=15 toks=15360]", Batch("prefill", 15, 15, 0, tokens=15360)),
        (
            "step[EXTEND bs=2 toks=12 c_sqsq=80 c_sqsk=120 c_sk=20]",
            Batch("prefill", 2, 2, 0, tokens=12, kv_tokens=20, query_key=120),
        ),
        ("step[DECODE bs=32]", Batch("decode", 32, 0, 32, tokens=32)),
        ("step[DECODE bs=2 g_sqsq=2 g_sqsk=30 g_sk=30]", Batch("decode", 2, 0, 2, 2, 30, 30, 30)),
        (
            "step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]",
            Batch("decode", 64, 0, 64, 128, 131072, 131072, 262144),
        ),
        ("step[TARGET_VERIFY bs=4]", Batch("decode", 4, 0, 4)),  # how many tokens it verifies is not said
        (
            "step[MIXED bs=5 c=2 g=3 c_sq=6144 c_sk=7144 c_sqsq=20 c_sqsk=23 g_sq=3 g_sk=6144 g_sqsq=3 g_sqsk=6144]",
            Batch("mixed", 5, 2, 3, 6147, 13288, 6144, 6167),
        ),
        ("step[MIXED bs=2]", Batch("mixed", 2)),
        (
            "prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3 sqsq=59768832 sqsk=59768832 sk=17408 tbo=1]",
            Batch("prefill", 6, 6, 0, 17408, 17408, None, 59768832),
        ),
        ("decode[bs=117/128 tok=117 d=117]", Batch("decode", 117, 0, 117, 117, padded=128)),
        ("eager_decode[bs=32 tok=128 d=32 spec=3 sk=65536]", Batch("decode", 32, 0, 32, 128, 65536, 65536)),
        (
            "decode[bs=128 tok=384 p=2 d=126 sqsk=1114112 sk=258048]",
            Batch("mixed", 128, 2, 126, 384, 258048, None, 1114112),
        ),
        ("step[OTHER bs=1]", Batch("unknown", 1)),
        ("execute_diffusion_2_1024x768", Batch("diffusion", 2, size="1024x768")),
    ],
)
def test_what_a_mark_says(name: str, expected: Batch) -> None:
    assert batch_of(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "execute_model", "step[", "execute_context_1(1", "step[DECODE bs=x]", "execute_" * 9,
        "decode[bs=]", "prefill[bs=1", f"step[DECODE bs={9**30}]", f"decode[bs=1{' a=1' * 200}]",
    ],
)  # fmt: skip
def test_a_mark_of_no_known_form_says_nothing(name: str) -> None:
    assert batch_of(name) is None


def test_nested_marks_are_merged_and_the_outer_one_counts() -> None:
    names = ["ProfilerStep#3", "step[DECODE bs=8]", "execute_context_0(0_0)_generation_9(4096)"]
    batch = merged(names)
    assert (batch.phase, batch.requests, batch.kv_tokens) == ("decode", 8, 4096)
    assert sizes_of(names) == {8}


class Counted(NamedTuple):
    """By hand, in ms: the busiest stream's window, busy share of it, pauses above 20 µs by whether launched late."""

    window: float
    busy: float
    late: float
    queued: float


SHARED = (
    "mi300_sglang_graph_decode",
    "mi300_sglang_prefill_decode",
    "mi300_vllm_graph_decode",
    "b200_eager",
    "mi300_xdit_flux_profile",
)


@lru_cache(maxsize=1)
def file_of(name: str) -> Path:
    return next(shared(f"traces/{name}").glob("*.json.gz"))


def counted(name: str) -> Counted:
    """The figures of the only iteration, from the raw JSON, piece by piece."""
    events: list[dict[str, Any]] = json.loads(gzip.decompress(file_of(name).read_bytes()))["traceEvents"]
    events = [event for event in events if event.get("ph") == "X"]
    mark = min(
        (event for event in events if event.get("cat") == "user_annotation" and event["name"].startswith("execute_")),
        key=lambda event: event["ts"],
    )
    calls = {
        event["args"]["correlation"]: event["ts"]
        for event in events
        if event.get("cat") in {"cuda_runtime", "cuda_driver"} and event["tid"] == mark["tid"]
        and mark["ts"] <= event["ts"] < mark["ts"] + mark["dur"]
    }  # fmt: skip
    work = sorted(
        (event["ts"], event["ts"] + event["dur"], calls[event["args"]["correlation"]], event["args"]["stream"])
        for event in events
        if event.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"} and event["args"].get("correlation") in calls
    )
    streams = {each[3] for each in work}
    busiest = max(streams, key=lambda stream: sum(end - start for start, end, _, on in work if on == stream))
    first = min(start for start, _, _, on in work if on == busiest)
    last = max(end for _, end, _, on in work if on == busiest)
    reach, idle, late, queued = first, 0.0, 0.0, 0.0
    for start, end, launched, _ in work:
        if start > reach:
            idle += start - reach
            if start - reach > 20:
                late += (start - reach) * (launched > reach)
                queued += (start - reach) * (launched <= reach)
        reach = max(reach, end)
    return Counted((last - first) / 1000, 1 - idle / (last - first), late / 1000, queued / 1000)


@pytest.mark.parametrize("name", SHARED, ids=[name.rpartition("_")[2] for name in SHARED])
def test_the_shared_recordings_are_as_counted_from_the_json(name: str) -> None:
    [found] = iterations_of(Profile(read_trace(file_of(name))))
    expected = counted(name)
    assert found.window_ns / 1e6 == pytest.approx(expected.window, rel=1e-4)
    assert found.busy_ns / found.window_ns == pytest.approx(expected.busy, abs=1e-4)
    assert found.host_late_ns / 1e6 == pytest.approx(expected.late, abs=0.002)
    assert found.queued_ns / 1e6 == pytest.approx(expected.queued, abs=0.002)


def test_figures_of_the_design_page() -> None:
    [found] = iterations_of(Profile(read_trace(file_of("mi300_sglang_graph_decode"))))
    assert (found.batch.phase, found.batch.requests, found.batch.kv_tokens, found.mode) == (
        "decode",
        32,
        32785,
        "graph",
    )
    assert round(found.tokens_per_second or 0) == 3062
    assert found.lead_ns is not None
    assert found.lead_ns < 50_000  # the copy before holds the host for 463 ms


def served(shift: int = 0) -> Made:
    """Two decodes of eager kernels; the device runs `shift` µs behind."""
    made = Made()
    for start, name in ((0, "step[DECODE bs=2]"), (1000, "step[DECODE bs=4]")):
        made.mark(name, start, start + 500)
        for at in range(4):
            launch = start + 10 + 100 * at
            made.kernel("k", launch + 20 + shift, launch + 70 + shift, launch)
    return made


def found_in(made: Made) -> tuple[Iteration, ...]:
    return iterations_of(made.profile())


def test_a_backlog_moves_the_window_and_nothing_else() -> None:
    for shift in (0, 5000):
        first, second = found_in(served(shift))
        assert (first.window_ns, first.busy_ns, first.kernels, first.mode) == (350_000, 200_000, 4, "eager")
        assert first.gap_ns == 650_000
        assert second.gap_ns is None
        assert (first.lead_ns, second.lead_ns) == ((20 + shift) * 1000,) * 2
        assert (first.host_late_ns, first.queued_ns) == ((150_000, 0) if not shift else (0, 150_000))
        assert first.time_per_output_token_ns == 1_000_000
        assert second.tokens_per_second == pytest.approx(4e9 / 350_000)


def test_a_mark_without_device_work_has_its_own_length() -> None:
    [found] = found_in(Made().mark("step[IDLE bs=0]", 0, 100).operator("aten::mm", 10, 20))
    assert (found.mode, found.window_ns, found.busy_ns, found.tokens_per_second) == ("no_device", 100_000, 0, None)


def test_the_sequence_that_explains_most_is_found() -> None:
    layers = [9, *[1, 2, 3, 4, 2] * 6, 8]
    found = repeated_of(np.array(layers), np.ones(len(layers), np.int64))
    assert found == Repeated(count=5, kernels=5, share=25 / 32)
    assert repeated_of(np.arange(5), np.ones(5, np.int64)) is None
