"""Records one step of a program with its true lines.

A trace function puts a marker before every instruction of the program, with the instruction's own position. Python
suspends profiling while a trace function runs, so the markers are all that it adds to the recording.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

MARK = "@line"


def record_step(step: Callable[[], object], program: Path, trace: Path, *, is_marked: bool) -> None:
    """Writes the trace of one step, after one to warm up, and its side file; plainly where it is not to be marked."""
    from torch import profiler

    from tb_tidy_plugin.capture.handler import CaptureOptions, capturing

    def mark(name: str) -> None:
        with profiler.record_function(name):
            pass

    step()
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True, with_stack=True) as recording:
        previous = sys.gettrace()
        if is_marked:
            sys.settrace(tracer(str(program), mark))
        try:
            step()
        finally:
            sys.settrace(previous)
    capturing(lambda prof: prof.export_chrome_trace(str(trace)), CaptureOptions(sources=False))(recording)


def tracer(program: str, mark: Callable[[str], None]) -> Callable[[FrameType, str, Any], Any]:
    """A trace function that marks each instruction of the file `program`."""
    positions: dict[Any, list[tuple[int | None, ...]]] = {}

    def trace(frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 - as Python declares it
        code = frame.f_code
        if code.co_filename != program:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            if code not in positions:
                positions[code] = list(code.co_positions())
            line, end_line, _, _ = positions[code][frame.f_lasti // 2]
            if line is not None:
                mark(f"{MARK} {line} {end_line}")
        return trace

    return trace
