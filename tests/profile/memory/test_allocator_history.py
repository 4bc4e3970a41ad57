"""Histories of memory snapshots: curves against a count of their own and torch's, kinds and holders by construction."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tidy_plugin.profile.memory.allocator_history import AllocatorHistory, allocator_histories
from tb_tidy_plugin.profile.memory.kinds import MEMORY_KINDS
from tb_tidy_plugin.system.decoders import convert
from tb_tidy_plugin.trace.memory_snapshot import MemorySnapshot
from tests.support.memory_snapshots import BACKWARD, FORWARD, LOADED, MADE, MIB, STEP, DrawnSnapshot, training


def history(drawn: DrawnSnapshot) -> AllocatorHistory:
    (found,) = allocator_histories(convert(drawn.snapshot(), MemorySnapshot))
    return found


def counted(actions: list[dict[str, Any]], in_the_end: int) -> list[int]:
    """Allocated bytes before the first and after each action, from the end backwards."""
    sizes = [in_the_end]
    for each in reversed(actions):
        change = {"alloc": each["size"], "free_requested": -each["size"]}.get(each["action"], 0)
        sizes.append(sizes[-1] - change)
    return sizes[::-1]


def test_the_curve_is_what_was_allocated_after_each_action() -> None:
    drawn = training()
    found = history(drawn)
    expected = counted(drawn.actions, sum(size for size, _ in drawn.alive.values()))
    assert found.allocated_bytes.tolist() == expected
    assert found.kinds.sum(axis=0).tolist() == expected
    assert found.time_ns.tolist() == [0, *(1000 * at for at in range(len(drawn.actions)))]
    assert found.allocated_bytes[found.peak] == max(expected) == (3 + 32 + 12 + 33 + 64) * MIB
    assert found.reserved_bytes.tolist() == [0] + [256 * MIB] * len(drawn.actions)
    assert found.allocations == sum(each["action"] == "alloc" for each in drawn.actions)


@pytest.mark.torch
def test_the_end_is_what_torch_s_own_viewer_counts() -> None:
    pytest.importorskip("torch")
    from torch.cuda import _memory_viz

    viewer: Any = _memory_viz
    drawn = training()
    written = io.StringIO()
    for segment in drawn.snapshot()["segments"]:
        viewer._write_blocks(written, "all", segment["blocks"])  # noqa: SLF001 - the viewer's own count
    lines = [line.rpartition(" ") for line in written.getvalue().splitlines()]
    alive = sum(int(size) for name, _, size in lines if "active_allocated" in name)
    assert history(drawn).allocated_bytes[-1] == alive == 3 * MIB + 32 * MIB + 64 * MIB


@given(
    sizes=st.lists(st.integers(1, 1 << 40), min_size=1, max_size=40),
    freed=st.lists(st.integers(0, 1 << 20), max_size=40),
)
def test_any_order_adds_up(sizes: list[int], freed: list[int]) -> None:
    drawn = DrawnSnapshot()
    for at, size in enumerate(sizes):
        _ = drawn.had(size, MADE) if at % 5 == 0 else drawn.allocates(size, FORWARD if at % 3 else BACKWARD)
        if freed and drawn.alive:
            drawn.frees(sorted(drawn.alive)[freed.pop() % len(drawn.alive)])
    found = history(drawn)
    expected = counted(drawn.actions, sum(size for size, _ in drawn.alive.values()))
    assert found.allocated_bytes.tolist() == found.kinds.sum(axis=0).tolist() == expected
    assert (found.kinds >= 0).all()
    peak = int(found.allocated_bytes[found.peak])
    assert peak == max(expected) == sum(each.bytes for each in found.holders) + found.other_bytes


def test_kinds_by_stack_and_life() -> None:
    found = history(training())
    at_peak = dict(zip(MEMORY_KINDS, (found.kinds[:, found.peak] // MIB).tolist(), strict=True))
    assert at_peak == {
        "earlier": 3, "parameter": 32, "input": 0, "activation": 12, "gradient": 32, "optimizer_state": 64,
        "temporary": 1, "unknown": 0,
    }  # fmt: skip
    most = dict(zip(MEMORY_KINDS, (found.kinds.max(axis=1) // MIB).tolist(), strict=True))
    assert most["gradient"] == 32
    assert most["temporary"] == 1


def test_what_a_loader_allocates_is_an_input() -> None:
    drawn = DrawnSnapshot()
    drawn.allocates(MIB, LOADED)
    assert history(drawn).kinds[MEMORY_KINDS.index("input"), -1] == MIB


def test_holders_have_stacks_and_the_largest_comes_first() -> None:
    found = history(training())
    said = [(each.stack[0].name, each.kind, each.allocations, each.bytes // MIB) for each in found.holders]
    assert said == [
        ("_init_group", "optimizer_state", 4, 64),
        ("__init__", "parameter", 2, 32),
        ("gelu", "activation", 1, 12),
    ]
    assert found.other_bytes == (3 + 33) * MIB, "from before, and of the backward pass, which has no stacks"


def test_without_stacks_of_python_no_kind_is_guessed() -> None:
    drawn = DrawnSnapshot()
    kept = drawn.allocates(MIB, BACKWARD)
    drawn.frees(drawn.allocates(2 * MIB, BACKWARD))
    drawn.allocates(MIB, BACKWARD)
    drawn.frees(kept)
    found = history(drawn)
    held = {kind for kind, values in zip(MEMORY_KINDS, found.kinds, strict=True) if values.any()}
    assert held == {"temporary", "unknown"}


def test_a_snapshot_without_history_is_one_moment() -> None:
    drawn = DrawnSnapshot(reserved=64 * MIB)
    drawn.had(5 * MIB, STEP)
    drawn.had(7 * MIB, BACKWARD)
    found = history(drawn)
    assert found.allocated_bytes.tolist() == [12 * MIB]
    assert found.reserved_bytes.tolist() == [64 * MIB]
    assert [(each.kind, each.bytes) for each in found.holders] == [("optimizer_state", 5 * MIB)]


def test_failures_are_counted_and_an_address_that_comes_again_was_freed() -> None:
    drawn = DrawnSnapshot()
    drawn.fails(1 << 40)
    at = drawn.allocates(MIB, FORWARD)
    drawn.next_address = at
    drawn.allocates(2 * MIB, FORWARD)
    found = history(drawn)
    assert found.failures == 1
    assert found.allocated_bytes.tolist() == [0, 0, MIB, 2 * MIB]


def test_curves_are_thinned_and_keep_the_peak() -> None:
    drawn = training(steps=400)
    (found,) = allocator_histories(convert(drawn.snapshot(), MemorySnapshot), points=500)
    assert len(found.time_ns) <= 500
    assert found.allocated_bytes[found.peak] == max(counted(drawn.actions, sum(s for s, _ in drawn.alive.values())))
    assert np.all(np.diff(found.time_ns) >= 0)
