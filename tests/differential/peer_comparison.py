"""The page `docs/numbers.md`: what the PyTorch Profiler tab says of real traces, what is true, and what we say.

`python -m tests.differential.peer_comparison` writes it; it needs the shared traces and torch-tb-profiler.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tb_tidy_plugin.profile.events.intervals import covered
from tb_tidy_plugin.profile.kernels import collective_kernels
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import DEVICE_WORK, Category
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.plain_count import Event, PlainTrace, end_ns, plain_trace, start_ns, sweep
from tests.support.recordings import COUNTED_ONCE, ROOT, SHARED

PAGE = ROOT / "docs" / "numbers.md"
INTRODUCTION = """# Numbers

This page compares figures of the PyTorch Profiler tab (torch-tb-profiler 0.4.3) and of TorchTidy for real traces with
the true values. Independent code (`tests/support/plain_count.py`) counts the *true* values directly from the JSON. A
share is the union of events' time, divided by the time from the first step's start to the last step's end, or by the
whole trace if it has no steps. `make numbers` writes this page.

Every figure of TorchTidy equals the true one to the digits shown; a test checks this to within 0.5 %.

| trace | figure | torch-tb-profiler | true | TorchTidy |
|---|---|--:|--:|--:|
"""


@dataclass(frozen=True)
class Figure:
    """One figure of one trace; `peer` names what the peer calls it, None where it has no such figure."""

    name: str
    unit: str
    true: float | None
    ours: float | None
    peer: str | None


def traces() -> list[Path]:
    """The shared traces of real devices on the page."""
    return sorted(path for path in SHARED.glob("traces/*/*.gz") if path.parent.name not in COUNTED_ONCE)


def figures(path: Path) -> Iterator[Figure]:
    """The figures of one trace, counted twice."""
    plain, profile = plain_trace(path), Profile(read_trace(path))
    steps = plain.steps
    ours = profile.steps.items if profile.steps.basis == "profiler_step" else ()
    yield Figure("steps", "", len(steps), len(ours), "steps")
    true_mean = sum(end_ns(step) - start_ns(step) for step in steps) / len(steps) if steps else None
    our_mean = sum(step.duration_ns for step in ours) / len(ours) if ours else None
    yield Figure("mean step", "ms", _ms(true_mean), _ms(our_mean), "mean step")
    low, high = _window(plain)
    table = profile.table
    ours_low, ours_high = low - table.origin_ns, high - table.origin_ns
    loading = profile.covered(profile.matching(r"enumerate\(DataLoader\)#.*__next__", Category.ANNOTATION))
    kinds = [("data loading", plain.data_loading, [loading], "DataLoader")]
    if plain.devices:
        kernel = table.category == Category.KERNEL
        by_device = [(kernel & (table.device == device)) for device in plain.devices]
        collective = np.zeros(len(table), np.bool_)
        collective[collective_kernels(table)] = True
        kinds += [
            (
                "communication",
                plain.communication,
                [covered(table, rows & collective) for rows in by_device],
                "Communication",
            ),
            ("kernels", plain.kernels, [covered(table, rows) for rows in by_device], "GPU utilization"),
        ]
    for name, events, sets, peer in kinds:
        true = _union(plain, events, low, high) / (high - low)
        here = [int(found.within(np.array([ours_low]), np.array([ours_high]))[0]) for found in sets]
        yield Figure(name, "%", 100 * true, 100 * sum(here) / len(here) / (high - low), peer)
    if plain.devices:
        work = profile.matching("", *DEVICE_WORK)
        total = int(table.duration_ns[work].sum())
        true_total = sum(end_ns(event) - start_ns(event) for event in plain.work)
        yield Figure("device time", "ms", _ms(true_total), _ms(total), "operator device time")


def _union(plain: PlainTrace, events: list[Event], low: int, high: int) -> float:
    """Of device work per device, averaged; of host events as it is."""
    if not events or events[0].get("cat") not in {"kernel", "Kernel"}:
        return sweep(events, low, high)
    groups = [[event for event in events if event["args"]["device"] == at] for at in plain.devices]
    return sum(sweep(group, low, high) for group in groups) / len(groups)


def _window(plain: PlainTrace) -> tuple[int, int]:
    if plain.steps:
        return start_ns(plain.steps[0]), max(map(end_ns, plain.steps))
    return min(map(start_ns, plain.events)), max(map(end_ns, plain.events))


def _ms(time_ns: float | None) -> float | None:
    return None if time_ns is None else time_ns / 1e6


def trace_name(path: Path) -> str:
    """The folder's name, with the rank's where a folder holds several."""
    alone = len(list(path.parent.glob("*.gz"))) == 1
    return path.parent.name if alone else f"{path.parent.name}/{path.name.split('.')[0]}"


def page() -> str:
    """The whole page."""
    rows = [row for path in traces() for row in _rows(path)]
    return INTRODUCTION + "".join(rows)


def _rows(path: Path) -> Iterator[str]:
    peer = _peer(path)
    name = trace_name(path)
    for figure in figures(path):
        said = peer.get(figure.peer or "")
        if said is not None and figure.unit == "ms":
            said /= 1000
        cells = [
            name,
            figure.name,
            text_of(said, figure.unit),
            text_of(figure.true, figure.unit),
            text_of(figure.ours, figure.unit),
        ]
        yield f"| {' | '.join(cells)} |\n"


def text_of(value: float | None, unit: str) -> str:
    """A figure as the page shows it."""
    if value is None:
        return "–"
    if not unit:
        return f"{value:.0f}"
    return f"{value:.2f} {unit}" if abs(value) < 1e12 else f"{value:.3g} {unit}"


def _peer(path: Path) -> dict[str, float]:
    script = Path(__file__).with_name("peer_figures.py")
    done = subprocess.run(
        [sys.executable, str(script), str(path)], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        return {}
    said: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return said


if __name__ == "__main__":
    PAGE.write_text(page())
