"""The ledger of random traces: it adds up whatever is in them, and does not depend on the order of the file."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tidy_plugin.ledger.account import Account
from tests.ledger.traces import MAIN, OTHER, Made, check

NAMES = (
    "aten::mm", "aten::add_", "aten::copy_", "autograd::engine::evaluate_function: X", "train.py(3): step",
    "torch/nn/modules/module.py(9): _call_impl", "<built-in method run_backward of x>",
    "enumerate(DataLoader)#_X.__next__", "ProfilerStep#1", "ProfilerStep#2", "gloo:all_reduce", "cudaMalloc",
    "cudaStreamSynchronize", "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaStreamWaitEvent",
    "cudaLaunchKernel", "Python GC", "Buffer Flush", "Optimizer.step#A.step",
    "torch/_dynamo/convert_frame.py(9): _compile", "execute_context_1(1)", "",
)  # fmt: skip
WORK = (
    "gemm",
    "ncclDevKernel_AllReduce_Sum_f32",
    "softmax",
    "triton_poi_fused_add",
    "Memcpy HtoD (Pageable -> Device)",
)

Event = tuple[str, int, int, int, int]
times = st.integers(0, 30_000)
hosts = st.lists(
    st.tuples(st.sampled_from(NAMES), times, st.integers(0, 12_000), st.sampled_from((MAIN, OTHER)), st.integers(0, 20))
)
works = st.lists(st.tuples(st.sampled_from(WORK), times, st.integers(0, 6_000), st.integers(7, 9), st.integers(0, 20)))


def made(hosts_: list[Event], works_: list[Event]) -> Made:
    """A trace of events that need not nest, nor have anything to do with each other."""
    trace = Made().operator("aten::ones", 1, 2)
    for name, start, length, thread, correlation in hosts_:
        category = "cpu_op"
        if name.startswith("cuda"):
            category = "cuda_runtime"
        elif name.startswith(("<", "torch/", "train.py")):
            category = "python_function"
        elif "#" in name or name.startswith(("gloo", "execute")):
            category = "user_annotation"
        elif name == "Buffer Flush":
            category = "overhead"
        trace.add(category, name, start + 1, start + length + 1, thread, correlation=correlation)
    for name, start, length, stream, correlation in works_:
        category = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        trace.add(
            category, name, start + 1, start + length + 1, stream, 0, device=0, stream=stream, correlation=correlation
        )
    return trace


def busy_ns(account: Account, works_: list[Event]) -> int:
    """Time in the window in which any work runs: counted µs by µs."""
    window = account.ledger.window
    runs = np.zeros(60_000, np.bool_)
    for _, start, length, _, _ in works_:
        runs[start + 1 : start + length + 1] = True
    return int(runs[window.start_ns // 1000 + 1 : window.end_ns // 1000 + 1].sum()) * 1000


@given(hosts, works)
@settings(max_examples=80)
def test_parts_add_up(hosts_: list[Event], works_: list[Event]) -> None:
    account = made(hosts_, works_).account()
    check(account)
    busy = sum(each.ns_total for each in account.ledger.entries if each.cause.is_of_device)
    if has_overlaps(works_):  # a stream does one thing at a time: what runs into the next is cut there
        assert busy <= busy_ns(account, works_)
    else:
        assert busy == busy_ns(account, works_)


def has_overlaps(works_: list[Event]) -> bool:
    """True if two pieces of work of one stream begin together, or one begins before the other has ended."""
    order = sorted((stream, start, start + length) for _, start, length, stream, _ in works_)
    return any(
        one[0] == other[0] and (one[1] == other[1] or other[1] < one[2]) for one, other in itertools.pairwise(order)
    )


@given(hosts, works, st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_the_order_of_the_file_does_not_matter_to_the_device(
    hosts_: list[Event], works_: list[Event], random: object
) -> None:
    first = made(hosts_, works_)
    second = made(hosts_, works_)
    random.shuffle(second.events)  # type: ignore[attr-defined]
    one, other = first.account().ledger, second.account().ledger
    assert one.window.end_ns - one.window.start_ns == other.window.end_ns - other.window.start_ns


@pytest.mark.parametrize("depth", [20_000])
def test_deep_nesting_takes_no_recursion(depth: int) -> None:
    trace = Made().mark("ProfilerStep#1", 1, 100_000)
    for at in range(depth):
        trace.operator("aten::add", 10 + at, 90_000 - at)
    trace.kernel("gemm", 95_000, 99_000, launch=94_000)
    check(trace.account())
