"""A host with two streams of a device, run by a list of instructions, and the trace that Kineto would write of it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.kineto import read_trace

LAUNCH_US, LATENCY_US, RETURN_US = 2, 5, 3


@dataclass(frozen=True)
class Instruction:
    """An operator that works `host_us`, then launches a kernel of `kernel_us` (0 for none), then waits if `sync`.

    With `joins`, its stream first waits for the other one.
    """

    host_us: int
    kernel_us: int = 0
    stream: int = 0
    joins: bool = False
    sync: bool = False


@dataclass
class _Machine:
    now: int = 0
    free: list[int] = field(default_factory=lambda: [0, 0])
    events: list[dict[str, Any]] = field(default_factory=list)

    def put(self, category: str, name: str, start: int, end: int, thread: int, **args: object) -> None:
        pid = 0 if thread > 1 else 100
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": thread, "ts": start, "dur": end - start,
             "args": args}
        )  # fmt: skip

    def call(self, name: str, length: int, **args: object) -> int:
        """A call of the runtime; gives when it began."""
        begin = self.now
        self.now += length
        self.put("cuda_runtime", name, begin, self.now, 1, **args)
        return begin

    def run(self, number: int, instruction: Instruction) -> None:
        begin = self.now
        self.now += instruction.host_us
        if instruction.kernel_us:
            stream, correlation = instruction.stream, 1000 + number
            if instruction.joins:
                self.call("cudaStreamWaitEvent", 1)
                self.free[stream] = max(self.free)
            launched = self.call("cudaLaunchKernel", LAUNCH_US, correlation=correlation)
            start = max(launched + LATENCY_US, self.free[stream])
            self.free[stream] = start + instruction.kernel_us
            self.put("kernel", f"kernel{number}", start, self.free[stream], 7 + stream,
                     correlation=correlation, device=0, stream=7 + stream)  # fmt: skip
        if instruction.sync:
            wait = max(max(self.free) - self.now, 0) + RETURN_US
            self.call("cudaDeviceSynchronize", wait)
        self.now += 1
        self.put("cpu_op", f"op{number}", begin, self.now, 1, **{"External id": number + 1})


def recorded(steps: Sequence[Sequence[Instruction]]) -> Profile:
    """The profile of `steps`, each a list of instructions; operators are called `op0`, `op1`, … over all steps."""
    machine, number = _Machine(), 0
    for at, instructions in enumerate(steps):
        begin = machine.now
        for instruction in instructions:
            machine.run(number, instruction)
            number += 1
        machine.now += 1
        machine.put("user_annotation", f"ProfilerStep#{at}", begin, machine.now, 1)
    document = {"schemaVersion": 1, "baseTimeNanoseconds": 0, "cuda_runtime_version": 12, "traceEvents": machine.events}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made_up.pt.trace.json")
        path.write_text(json.dumps(document))
        return Profile(read_trace(path))
