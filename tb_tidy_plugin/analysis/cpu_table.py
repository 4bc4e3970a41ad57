"""Table of the CPU's work for the report."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.analysis.operator_rows import shapes_text
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.cpu_work import CpuWork, SlowCall, frame_times
from tb_tidy_plugin.report.figures import CpuFigures, FrameRow, SlowCallRow
from tb_tidy_plugin.sources.frames import Frame, parse_frame
from tb_tidy_plugin.sources.places import Places
from tb_tidy_plugin.torchfacts.inductor import is_generated
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.sets import distinct
from tb_tidy_plugin.trace.strings import NumberTable

MOST_SLOW_CALLS, _MOST_FRAMES = 200, 200


def cpu_figures(profile: Profile, cpu: CpuWork, places: Places) -> CpuFigures:
    """Threads, slow calls, and Python's self time."""
    slow = cpu.slow_calls[:MOST_SLOW_CALLS]
    steps = profile.step_of(np.array([call.row for call in slow], np.int64)).tolist()
    return CpuFigures(
        threads=cpu.threads.threads,
        most_threads=cpu.threads.most,
        mean_threads=cpu.threads.busy_mean,
        slow_calls=[_slow(profile, cpu, places, *both) for both in zip(slow, steps, strict=True)],
        frames=_frames(profile),
    )


def _slow(profile: Profile, cpu: CpuWork, places: Places, call: SlowCall, step: int) -> SlowCallRow:
    frame, group = places.of(call.row), cpu.groups[call.group]
    return SlowCallRow(
        operator=group.name,
        shapes=shapes_text(profile.signatures.shapes[group.shape], ()),
        start_ns=profile.start_ns(call.row),
        own_ns=call.own_ns,
        median_ns=call.median_ns,
        threads=call.threads,
        contended=call.contended,
        step=None if step == ABSENT else profile.steps.items[step].name,
        file=frame.file if frame else "",
        line=frame.line if frame else None,
    )


def _frames(profile: Profile) -> list[FrameRow] | None:
    """Python functions by self time.

    Built-ins and modules have no file: their time counts for the function that calls them. The time of code that
    `torch.compile` generated counts for the user's function around it.
    """
    times = frame_times(profile)
    if times is None:
        return None
    own, frames = _functions(profile)
    owner = _with_generated(profile, own, frames)
    is_function = owner != ABSENT
    above = profile.tree.nearest_ancestor(is_function)
    number = owner[np.where(is_function, np.arange(len(owner)), above)][times.rows]
    has_function = (is_function[times.rows]) | (above[times.rows] != ABSENT)
    self_ns = np.zeros(len(frames), np.int64)
    np.add.at(self_ns, number[has_function], times.self_ns[has_function])
    calls = np.bincount(own[own != ABSENT], minlength=len(frames))
    order = np.argsort(-self_ns, kind="stable")[:_MOST_FRAMES]
    columns = (column[order].tolist() for column in (calls, self_ns))
    return [_frame(frames[at], *values) for at, *values in zip(order.tolist(), *columns, strict=True)]


def _functions(profile: Profile) -> tuple[Rows, tuple[Frame, ...]]:
    """The function's number for each tree row that calls a Python function with a file, else `ABSENT`."""
    table, size = profile.table, profile.tree.size
    is_python = table.category[:size] == Category.PYTHON
    frames = NumberTable[Frame]()
    by_name = np.full(len(table.names), ABSENT, np.int64)
    for name in distinct(table.name[:size][is_python]).tolist():
        frame = parse_frame(table.names[name])
        by_name[name] = ABSENT if frame is None else frames.number(frame)
    return np.where(is_python, by_name[table.name[:size]], ABSENT), frames.values()


def _with_generated(profile: Profile, own: Rows, frames: tuple[Frame, ...]) -> Rows:
    """The same numbers, with calls of generated code counted as the user's function around them."""
    table, size = profile.table, profile.tree.size
    by_name = np.array([is_generated(name.partition("(")[0]) for name in table.names] + [False])
    generated = (table.category[:size] == Category.PYTHON) & by_name[table.name[:size]]
    if not generated.any():
        return own
    around = profile.tree.nearest_ancestor(np.array([frame.own_code for frame in frames] + [False])[own])
    return np.where(generated, np.append(own, ABSENT)[around], own)


def _frame(frame: Frame, calls: int, self_ns: int) -> FrameRow:
    return FrameRow(
        file=frame.file,
        line=frame.line,
        function=frame.function,
        own_code=frame.own_code,
        calls=calls,
        self_ns=self_ns,
    )
