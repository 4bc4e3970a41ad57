"""The figures of a trace counted straight from its JSON, in plain Python: a reference that shares no code with ours.

Time is swept edge by edge: +1 at each start, -1 at each end, and an interval counts while the depth is above zero.
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEP = re.compile(r"ProfilerStep#\d+")
COLLECTIVE = re.compile(r"nccl|rccl|all_reduce|reduce_scatter|cross_device_reduce", re.IGNORECASE)

Event = dict[str, Any]


@dataclass(frozen=True)
class PlainTrace:
    """All complete events of a trace but the profiler's own span, as dictionaries."""

    events: list[Event]

    def of_kind(self, *kinds: str) -> list[Event]:
        """Events by category, in the words of 2021 or of today."""
        return [event for event in self.events if _kind(event) in kinds]

    @property
    def kernels(self) -> list[Event]:
        return self.of_kind("kernel")

    @property
    def work(self) -> list[Event]:
        return self.of_kind("kernel", "memcpy", "memset")

    @property
    def devices(self) -> list[int]:
        return sorted({event["args"]["device"] for event in self.work})

    @property
    def wall_ns(self) -> int:
        return max(map(end_ns, self.events)) - min(map(start_ns, self.events))

    @property
    def steps(self) -> list[Event]:
        """Steps of the host in which something begins: the copies on the device have a category of their own."""
        marks = [event for event in self.of_kind("user_annotation", "operator") if STEP.fullmatch(event["name"])]
        begun = [start_ns(event) for event in self.of_kind("cpu_op", "operator", "runtime") if event not in marks]
        found = [mark for mark in marks if any(start_ns(mark) <= time < end_ns(mark) for time in begun)]
        return sorted(found, key=start_ns)

    def per_device(self, events: list[Event]) -> float:
        """Union of the events' time on each device, averaged over the devices."""
        devices = self.devices
        return sum(sweep([event for event in events if event["args"]["device"] == at]) for at in devices) / len(devices)

    @property
    def communication(self) -> list[Event]:
        return [event for event in self.kernels if COLLECTIVE.search(event["name"])]

    @property
    def compute(self) -> list[Event]:
        return [event for event in self.kernels if not COLLECTIVE.search(event["name"])]

    @property
    def data_loading(self) -> list[Event]:
        return [event for event in self.events if re.match(r"enumerate\(DataLoader\)#.*__next__", event["name"])]


def plain_trace(path: Path) -> PlainTrace:
    """The trace at `path`, read by the standard library."""
    raw = path.read_bytes()
    data = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    events = data["traceEvents"] if isinstance(data, dict) else data
    return PlainTrace([event for event in events if event["ph"] == "X" and event.get("cat") != "Trace"])


def _kind(event: Event) -> str:
    """`kernel`, `memcpy`, … for both `gpu_memcpy` of today and `Memcpy` of 2021."""
    category = str(event.get("cat", "")).lower()
    if category == "mtia_ccp_events":  # what an MTIA executes
        return "kernel"
    return category.removeprefix("gpu_") if category in {"gpu_memcpy", "gpu_memset"} else category


def start_ns(event: Event) -> int:
    time: int = round(event["ts"] * 1000)  # whole µs stay integers, which float64 could not hold
    return time


def end_ns(event: Event) -> int:
    length: int = round(event["dur"] * 1000)
    return start_ns(event) + length


def sweep(events: list[Event], low: int | None = None, high: int | None = None) -> int:
    """Time with at least one of `events` running, inside the window from `low` to `high` if given."""
    edges = sorted(edge for event in events for edge in ((start_ns(event), 1), (end_ns(event), -1)))
    total = depth = last = 0
    for time, change in edges:
        here = max(time, low) if low is not None else time
        here = min(here, high) if high is not None else here
        if depth > 0:
            total += here - last
        depth += change
        last = here
    return total
