"""The timeline against counts that know nothing of rows and levels."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from tb_tidy_plugin.profile.steps.steps import ProfileSteps, steps_of
from tb_tidy_plugin.profile.timeline.timeline import (
    BUSY_PARTS,
    FIRST_LEVEL_NS,
    MOST_LEVELS,
    Timeline,
    combinations,
    timeline_of,
)
from tb_tidy_plugin.profile.timeline.window import MOST_BARS, Bars, bars_in, event_around, events_between
from tb_tidy_plugin.rulekit.testing import A100, draw
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.columns import Category, EventTable

SAMPLES = sorted(Path("sample_runs").glob("*/*.pt.trace.json.gz"))
NO_STEPS = ProfileSteps("none", ())
DRAWN = draw(
    """
    ProfilerStep#1          0-900
      train.py(1): step     1-899
        aten::mm            100-200  dims=64x32,32x8  types=float,float  kernel=gemm@150-450
        aten::add           300-310
        aten::add           311-320
    aten::mul               400-500  thread=2
    """,
    gpu=A100,
)


@dataclass(frozen=True)
class Raw:
    """One event as the file has it, in ns."""

    start: int
    end: int


@cache
def sample(path: Path) -> tuple[Timeline, tuple[Raw, ...]]:
    table = read_with_side_files(path)
    text = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    complete = [each for each in text if each["ph"] == "X" and each.get("cat") != "Trace"]
    instants = [each for each in text if each["ph"] == "i" and each["name"] in {"[memory]", "[OutOfMemory]"}]
    origin = min(round(each["ts"] * 1000) for each in (*complete, *instants))
    starts = [(round(each["ts"] * 1000) - origin, round(each.get("dur", 0) * 1000)) for each in (*complete, *instants)]
    raw = tuple(Raw(start, start + duration) for start, duration in starts)
    return timeline_of(table, NO_STEPS), raw


def overlapping(raw: tuple[Raw, ...], from_ns: int, to_ns: int) -> int:
    return sum(each.start < to_ns and (each.end > from_ns or each.start >= from_ns) for each in raw)


def counted(bars: Bars) -> int:
    return int((bars.last - bars.first).sum())


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("part", [(0.0, 1.0), (0.0, 0.5), (0.31, 0.47), (0.5, 0.501), (0.7, 0.70001), (0.99, 1.0)])
@pytest.mark.parametrize("width", [1, 300, 2048])
def test_every_event_of_a_window_is_in_one_bar(path: Path, part: tuple[float, float], width: int) -> None:
    timeline, raw = sample(path)
    from_ns, to_ns = (round(edge * timeline.until_ns) for edge in part)
    bars = bars_in(timeline, from_ns, to_ns, width)
    assert counted(bars) == overlapping(raw, from_ns, to_ns) > 0


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.parent.name)
def test_what_is_a_pixel_long_stands_alone_and_the_rest_is_a_pixel_apart(path: Path) -> None:
    timeline, raw = sample(path)
    bars = bars_in(timeline, 0, timeline.until_ns, 2048)
    long = Counter((each.start, each.end) for each in raw if each.end - each.start >= bars.pixel_ns)
    single = bars.first[bars.last - bars.first == 1]
    alone = Counter(zip(timeline.start_ns[single].tolist(), timeline.end_ns[single].tolist(), strict=True))
    assert long - alone == Counter()
    rows = timeline.row_of(bars.first)
    gaps = timeline.start_ns[bars.first[1:]] - timeline.end_ns[bars.last[:-1] - 1]
    short = (bars.last - bars.first > 1) | (timeline.end_ns[bars.first] - timeline.start_ns[bars.first] < bars.pixel_ns)
    side_by_side = short[1:] & short[:-1] & (rows[1:] == rows[:-1])
    assert (gaps[side_by_side] >= bars.pixel_ns).all()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.parent.name)
def test_no_two_events_of_a_row_overlap(path: Path) -> None:
    timeline, _ = sample(path)
    rows = timeline.row_of(np.arange(len(timeline)))
    same = np.diff(rows) == 0
    assert (timeline.start_ns[1:][same] >= timeline.end_ns[:-1][same]).all()
    assert sum(lane.events for lane in timeline.lanes) == len(timeline)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.parent.name)
def test_ids_lead_to_their_events(path: Path) -> None:
    timeline, _ = sample(path)
    assert timeline.positions_of(timeline.ids.astype(np.int64)).tolist() == list(range(len(timeline)))
    assert timeline.position_of(int(timeline.ids.max()) + 1) is None
    assert timeline.position_of(-1) is None


def test_lanes_are_steps_threads_streams() -> None:
    timeline = timeline_of(DRAWN.table, DRAWN.steps)
    assert [(lane.kind, lane.name, lane.rows) for lane in timeline.lanes[:3]] == [
        ("steps", "Steps", 1),
        ("thread", "Thread 1", 4),  # step, function, operator, its launch
        ("thread", "Thread 2", 1),
    ]
    assert [(lane.kind, lane.name) for lane in timeline.lanes[3:]] == [("stream", "Device 0, stream 7")]


def test_depth_is_how_many_are_open() -> None:
    timeline = timeline_of(DRAWN.table, DRAWN.steps)
    add = int(np.flatnonzero(timeline.name == timeline.names.index("aten::add"))[0])
    assert timeline.row_depth[timeline.row_of(np.array([add]))[0]] == 2
    above = event_around(timeline, add)
    assert above is not None
    assert timeline.names[timeline.name[above]] == "train.py(1): step"


def test_a_kernel_knows_its_launch() -> None:
    timeline = timeline_of(DRAWN.table, DRAWN.steps)
    kernel = int(np.flatnonzero(timeline.name == timeline.names.index("gemm"))[0])
    launch = int(timeline.launch[kernel])
    assert timeline.names[timeline.name[launch]] == "cudaLaunchKernel"
    assert timeline.ids[launch] != timeline.ids[kernel]


def test_two_short_calls_become_one_block_far_away() -> None:
    timeline = timeline_of(DRAWN.table, DRAWN.steps)
    near, far = (bars_in(timeline, 0, 1_000_000, width) for width in (1000, 20))
    assert counted(near) == counted(far) == len(timeline)
    assert max(near.last - near.first) == 1
    assert max(far.last - far.first) == 2


def overlapping_table(spans: list[tuple[int, int]]) -> EventTable:
    """Events of one thread, which need not nest, as start and length."""
    table = draw("aten::add 0-1").table.take(np.zeros(len(spans), np.int64))
    start_ns = np.array([start for start, _ in spans], np.int64)
    end_ns = start_ns + np.array([length for _, length in spans], np.int64)
    return replace(table, start_ns=start_ns, end_ns=end_ns, file_order=np.arange(len(spans), dtype=np.int32))


SPANS = some.lists(some.tuples(some.integers(0, 40_000), some.integers(0, 9_000)), min_size=1, max_size=60)


@given(spans=SPANS, edges=some.tuples(some.integers(0, 49_000), some.integers(1, 20_000)), width=some.integers(1, 64))
def test_any_overlaps_and_any_window(spans: list[tuple[int, int]], edges: tuple[int, int], width: int) -> None:
    timeline = timeline_of(overlapping_table(spans), NO_STEPS)
    from_ns, to_ns = edges[0], edges[0] + edges[1]
    raw = tuple(Raw(start, start + length) for start, length in spans)
    bars = bars_in(timeline, from_ns, to_ns, width)
    assert counted(bars) == overlapping(raw, from_ns, to_ns)
    whole = bars_in(timeline, 0, timeline.until_ns, width)
    assert counted(whole) == len(spans)
    assert float(timeline.busy_ns[-1]) == sum(length for _, length in spans)


def test_instants_that_coincide_are_all_there() -> None:
    timeline = timeline_of(overlapping_table([(5000, 0)] * 7 + [(4000, 2000)]), NO_STEPS)
    assert counted(bars_in(timeline, 5000, 5001, 10)) == 8
    assert counted(bars_in(timeline, 5001, 5002, 10)) == 1


def test_what_is_too_deep_is_counted() -> None:
    deep = [(at, 100_000 - 2 * at) for at in range(MOST_LEVELS + 44)]
    timeline = timeline_of(overlapping_table(deep), NO_STEPS)
    [lane] = [lane for lane in timeline.lanes if lane.kind == "thread"]
    assert (lane.rows, lane.events, lane.deeper) == (MOST_LEVELS, MOST_LEVELS, 44)


def test_an_answer_is_bounded() -> None:
    comb = [(at * 3 * FIRST_LEVEL_NS, 2 * FIRST_LEVEL_NS) for at in range(2 * MOST_BARS)]
    timeline = timeline_of(overlapping_table(comb), NO_STEPS)
    fine = (timeline.until_ns // FIRST_LEVEL_NS) * 2
    bars = bars_in(timeline, 0, timeline.until_ns, fine)
    assert len(bars.first) <= MOST_BARS
    assert counted(bars) == 2 * MOST_BARS
    assert bars.pixel_ns > timeline.until_ns / fine


def test_a_crop_shrinks_around_its_event_until_it_is_small() -> None:
    timeline = timeline_of(overlapping_table([(at * 100, 50) for at in range(1000)]), NO_STEPS)
    positions, from_ns, to_ns = events_between(timeline, 0, timeline.until_ns, 70_000, 10)
    assert 1 <= len(positions) <= 10
    assert from_ns <= 70_000 <= to_ns


@pytest.mark.parametrize("around_ns", range(1000, 1008))
def test_a_crop_ends_where_every_moment_has_too_many_events(around_ns: int) -> None:
    timeline = timeline_of(overlapping_table([(at, 4000 - 2 * at) for at in range(20)]), NO_STEPS)
    positions, from_ns, to_ns = events_between(timeline, 0, 4000, around_ns, 10)
    assert len(positions) == 10
    assert from_ns <= around_ns <= to_ns <= from_ns + 2


def test_an_empty_table_has_an_empty_timeline() -> None:
    empty = draw("aten::add 0-1").table.take(np.zeros(0, np.int64))
    timeline = timeline_of(empty, steps_of(empty))
    assert (len(timeline), timeline.lanes[0].name) == (0, "Steps")
    assert counted(bars_in(timeline, 0, 10, 10)) == 0


def test_the_busy_parts_are_counted_nanosecond_by_nanosecond() -> None:
    timeline = timeline_of(DRAWN.table, DRAWN.steps)
    nanoseconds = np.zeros((2, timeline.until_ns), np.bool_)
    for line, which in enumerate([Category.OPERATOR, Category.KERNEL]):
        for row in np.flatnonzero(DRAWN.table.category == which).tolist():
            nanoseconds[line, DRAWN.table.start_ns[row] : DRAWN.table.end_ns[row]] = True
    edges = [part * timeline.until_ns // BUSY_PARTS for part in range(BUSY_PARTS)]
    lengths = np.diff([*edges, timeline.until_ns])
    host, device = np.add.reduceat(nanoseconds, edges, axis=1, dtype=np.int64) / lengths
    assert timeline.busy.host.tolist() == host.tolist()
    assert timeline.busy.device.tolist() == device.tolist()
    assert 0 < host.sum() < BUSY_PARTS > device.sum() > 0


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.parent.name)
def test_the_busy_parts_add_up_to_the_time_with_operators(path: Path) -> None:
    timeline, _ = sample(path)
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]

    def busy_ns(*categories: str) -> int:
        """Time with events of these categories, whatever runs beside them."""
        spans = sorted(
            (round(each["ts"] * 1000), round(each["ts"] * 1000) + round(each["dur"] * 1000))
            for each in events
            if each["ph"] == "X" and each.get("cat") in categories
        )
        busy, reached = 0, 0
        for start, end in spans:
            busy += max(end - max(start, reached), 0)
            reached = max(reached, end)
        return busy

    assert timeline.busy.host.mean() * timeline.until_ns == pytest.approx(busy_ns("cpu_op"), rel=1e-4)
    device_ns = busy_ns("kernel", "gpu_memcpy", "gpu_memset")
    assert bool(len(timeline.busy.device)) == bool(device_ns)
    if device_ns:
        assert timeline.busy.device.mean() * timeline.until_ns == pytest.approx(device_ns, rel=1e-4)


@given(some.lists(some.tuples(some.integers(0, 1), some.integers(-1, 3), some.integers(-(2**31), 2**31 - 1))))
def test_combinations_are_numbered_as_numpy_numbers_rows(rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, np.int32).reshape(-1, 3).T
    number, some_row = combinations(*columns)
    kinds, expected = np.unique(columns, axis=1, return_inverse=True)
    assert number.tolist() == expected.reshape(-1).tolist()
    assert columns[:, some_row].tolist() == kinds.tolist()
