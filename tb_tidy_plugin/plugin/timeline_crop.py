"""A part of a timeline as a separate trace for other viewers, with names, times, shapes and launches only."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from tb_tidy_plugin.plugin.timeline_answers import shortened
from tb_tidy_plugin.profile.timeline.timeline import Timeline, TimelineLane
from tb_tidy_plugin.profile.timeline.window import events_between
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.sets import among, distinct

_MOST_EVENTS = 50_000
"""About 10 MB of text. A longer window is reduced to this size around its event."""

_NAME_LETTERS = 500
HOST_PID, STREAM_PID = 0, 1
PROCESSES = {HOST_PID: "Host", STREAM_PID: "Devices"}
LABELS = {
    Category.OTHER: "other",
    Category.OPERATOR: "cpu_op",
    Category.ANNOTATION: "user_annotation",
    Category.PYTHON: "python_function",
    Category.MEMORY: "cpu_instant_event",
    Category.RUNTIME: "cuda_runtime",
    Category.KERNEL: "kernel",
    Category.COPY: "gpu_memcpy",
    Category.FILL: "gpu_memset",
    Category.DEVICE_ANNOTATION: "gpu_user_annotation",
    Category.OVERHEAD: "overhead",
}


def cropped_trace(timeline: Timeline, from_ns: int, to_ns: int, around_ns: int) -> bytes:
    """The events of a window as JSON in the format of Chrome's trace viewer."""
    around_ns = min(max(around_ns, from_ns), to_ns)
    positions, from_ns, to_ns = events_between(timeline, from_ns, to_ns, around_ns, _MOST_EVENTS)
    lane = timeline.row_lane[timeline.row_of(positions)]
    shown = distinct(lane).tolist()
    events = [
        *_process_names(),
        *_lane_names(timeline.lanes, shown),
        *_events(timeline, positions, lane.tolist()),
        *_flows(timeline, positions),
    ]
    about = {"from_ns": from_ns, "to_ns": to_ns, "events": len(positions), "written_by": "TorchTidy"}
    return msgspec.json.encode({"traceEvents": events, "displayTimeUnit": "ns", "torchtidy": about})


def _process_names() -> Iterator[dict[str, object]]:
    for pid, text in PROCESSES.items():
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": text}}


def _lane_names(lanes: tuple[TimelineLane, ...], shown: list[int]) -> Iterator[dict[str, object]]:
    for number in shown:
        place = {"pid": _pid(lanes[number]), "tid": number}
        yield {"ph": "M", "name": "thread_name", **place, "args": {"name": shortened(lanes[number].name)}}
        yield {"ph": "M", "name": "thread_sort_index", **place, "args": {"sort_index": number}}


def _pid(lane: TimelineLane) -> int:
    return STREAM_PID if lane.kind == "stream" else HOST_PID


def _events(timeline: Timeline, positions: Rows, lanes: list[int]) -> Iterator[dict[str, object]]:
    columns = (timeline.start_ns, timeline.end_ns, timeline.name, timeline.category, timeline.shapes)
    for lane, start, end, name, category, shapes in zip(
        lanes, *(column[positions].tolist() for column in columns), strict=True
    ):
        yield {
            "ph": "X",
            "cat": LABELS[Category(category)],
            "name": shortened(timeline.names[name], _NAME_LETTERS),
            "pid": _pid(timeline.lanes[lane]),
            "tid": lane,
            "ts": _microseconds(start),
            "dur": _microseconds(end - start),
            "args": {"shapes": shortened(timeline.shape_texts[shapes], _NAME_LETTERS)} if shapes else {},
        }


def _flows(timeline: Timeline, positions: Rows) -> Iterator[dict[str, object]]:
    """Arrows with both ends in the part."""
    launched = positions[timeline.launch[positions] != ABSENT]
    launched = launched[among(timeline.launch[launched], positions)]
    for number, position in enumerate(launched.tolist()):
        for phase, at in (("s", int(timeline.launch[position])), ("f", position)):
            lane = int(timeline.row_lane[timeline.row_of(np.array([at]))[0]])
            yield {
                "ph": phase,
                "cat": "ac2g",
                "name": "ac2g",
                "id": number,
                "pid": _pid(timeline.lanes[lane]),
                "tid": lane,
                "ts": _microseconds(int(timeline.start_ns[at])),
            } | ({"bp": "e"} if phase == "f" else {})


def _microseconds(time_ns: int) -> float:
    return time_ns / 1000
