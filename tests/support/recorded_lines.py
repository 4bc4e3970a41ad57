"""Records steps of given lines in a process of their own: operators of all kinds run there, and some are rarely used.

`python -m tests.support.recorded_lines` reads requests, one JSON object per line, and answers each with a line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.environments import same_imports
from tests.support.recordings import ROOT

STEPS = 3
COMMAND = (sys.executable, "-m", __name__)


@contextmanager
def recorder() -> Iterator[Callable[[str, Path], None]]:
    """Starts the process; the function writes a trace of `STEPS` steps, each of which runs some lines.

    It raises an AssertionError if the lines raise an error, or the process ends.
    """
    environment = same_imports()
    pipe = subprocess.PIPE
    with subprocess.Popen(COMMAND, stdin=pipe, stdout=pipe, text=True, cwd=ROOT, env=environment) as process:

        def record(lines: str, trace: Path) -> None:
            assert process.stdin
            assert process.stdout
            process.stdin.write(f"{json.dumps({'lines': lines, 'trace': str(trace)})}\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, f"the process that records ended with {process.wait()}"
            error = json.loads(answer)
            assert not error, error

        yield record


# In the process


def main() -> None:
    """Records what each line of the input asks for; the answer is an error's text, or empty."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    known = values()
    for request in sys.stdin:
        try:
            _record(known, **json.loads(request))
        except Exception as error:  # noqa: BLE001 - the test shows it
            answers.write(f"{json.dumps(repr(error))}\n")
        else:
            answers.write('""\n')
        answers.flush()


def _record(known: dict[str, Any], lines: str, trace: str) -> None:
    from torch.profiler import ProfilerActivity, profile, schedule

    body = "\n    ".join(lines.splitlines())
    exec(compile(f"def step(number):\n    {body}\n", "train.py", "exec"), known)
    with profile(
        activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=STEPS), acc_events=True,
        on_trace_ready=lambda recording: recording.export_chrome_trace(trace),
        record_shapes=True,
        with_stack="clip" in lines,  # which only the names of functions tell
    ) as recording:  # fmt: skip
        for number in range(1 + STEPS):
            known["step"](number)
            recording.step()


def values() -> dict[str, Any]:
    """What programs find: `x`, of the shape of `m`, `data(v)`, of that of `v`, and operators of a library."""
    import numpy as np
    import torch

    define: Any = torch.library.Library  # untyped
    library = define("tidytest", "DEF")
    for schema, run in {
        "fill(Tensor(a!) m, Tensor x) -> ()": _add,
        "fill_each(Tensor(a!)[] m, Tensor x) -> ()": _add_each,
        "flat(Tensor(a) m) -> Tensor(a)": _flat,
        "bump(Tensor(a!) m) -> ()": _bump,
    }.items():
        library.impl(library.define(schema), run, "CPU")

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, m: torch.Tensor, x: torch.Tensor) -> torch.Tensor:  # noqa: ANN401 - a context of torch
            m[0].add_(x[0])
            return x * 2

    kept: dict[object, torch.Tensor] = {}

    def data(like: torch.Tensor) -> torch.Tensor:
        key = (like.shape, like.dtype)
        if key not in kept:
            kept[key] = torch.rand(like.shape).mul(100).to(like.dtype)
        return kept[key]  # made while the profiler warms up

    return {
        "data": data, "library": library,
        "torch": torch, "np": np, "F": torch.nn.functional, "x": torch.rand(32, 48), "w": torch.rand(48, 8),
        "index": torch.arange(32), "Scale": Scale,
        "clip": torch.nn.utils.clip_grad_norm_, "made": torch.rand(32, 48, requires_grad=True),
    }  # fmt: skip


def _add(m: Any, x: Any) -> None:  # noqa: ANN401 - a tensor each
    m.add_(x)


def _add_each(m: Any, x: Any) -> None:  # noqa: ANN401 - a list of tensors
    for each in m:
        each.add_(x)


def _flat(m: Any) -> Any:  # noqa: ANN401
    return m.view(-1)


def _bump(m: Any) -> None:  # noqa: ANN401
    m.view(-1).add_(m.sum())


if __name__ == "__main__":
    main()
