"""A host with two devices that executes a list of instructions, and the trace that Kineto would write of it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.kineto import read_trace

LAUNCH_US, LATENCY_US, RETURN_US, HAND_OVER_US = 2, 5, 3, 4
MAIN, BACKWARD = 1, 2


@dataclass(frozen=True)
class Instruction:
    """An operator that works `host_us`, then launches a kernel of `kernel_us` (0 for none), then waits if it `sync`s.

    Streams 0 and 1 are on the first device, stream 2 on the second. With `joins`, its stream first waits for the others
    of its device; with `awaits`, for the kernel of the instruction that many places before, as the recording says. With
    `kernels` it launches a graph of that many kernels. `backward` runs on a separate thread while the main one waits.
    It waits for its own stream, for all streams, or for what it `awaits`.
    """

    host_us: int
    kernel_us: int = 0
    stream: int = 0
    joins: bool = False
    awaits: int = 0
    sync: Literal["", "stream", "device", "event"] = ""
    kernels: int = 1
    backward: bool = False


@dataclass
class _Machine:
    now: int = 0
    free: list[int] = field(default_factory=lambda: [0, 0, 0])
    thread: int = MAIN
    awaited: frozenset[int] = frozenset()
    done: dict[int, tuple[int, int]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    def put(self, category: str, name: str, start: int, end: int, thread: int, **args: object) -> None:
        pid = 100 if thread in {MAIN, BACKWARD} else 0
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": thread, "ts": start, "dur": end - start,
             "args": args}
        )  # fmt: skip

    def call(self, name: str, length: int, **args: object) -> int:
        """Records a call of the runtime; returns when it began."""
        begin = self.now
        self.now += length
        self.put("cuda_runtime", name, begin, self.now, self.thread, **args)
        return begin

    def run(self, number: int, instruction: Instruction) -> None:
        self.thread = BACKWARD if instruction.backward else MAIN
        self.now += HAND_OVER_US if instruction.backward else 0
        begin = self.now
        self.now += instruction.host_us
        if instruction.kernel_us:
            self.launch(number, instruction)
        if instruction.sync == "event":
            if number - instruction.awaits in self.done:
                self.wait_for(number, number - instruction.awaits, "cudaEventSynchronize", stream=-1)
        elif instruction.sync:
            waits_for = self.free if instruction.sync == "device" else [self.free[instruction.stream]]
            wait = max(max(waits_for) - self.now, 0) + RETURN_US
            self.call(f"cuda{instruction.sync.capitalize()}Synchronize", wait)
        self.now += 1
        name = f"autograd::engine::evaluate_function: op{number}" if instruction.backward else f"op{number}"
        self.put("cpu_op", name, begin, self.now, self.thread, **{"External id": number + 1})
        self.now += HAND_OVER_US if instruction.backward else 0

    def launch(self, number: int, instruction: Instruction) -> None:
        stream, correlation, device = instruction.stream, 1000 + number, instruction.stream // 2
        if instruction.joins:
            self.call("cudaStreamWaitEvent", 1)
            self.free[stream] = max(self.free[:2] if device == 0 else self.free[2:])
        if number - instruction.awaits in self.done and instruction.sync != "event":
            done = self.wait_for(number, number - instruction.awaits, "cudaStreamWaitEvent", stream=7 + stream)
            self.free[stream] = max(self.free[stream], done)
        call = "cudaLaunchKernel" if instruction.kernels == 1 else "cudaGraphLaunch"
        launched = self.call(call, LAUNCH_US, correlation=correlation)
        for at in range(instruction.kernels):
            start = max(launched + LATENCY_US, self.free[stream])
            self.free[stream] = start + instruction.kernel_us
            self.put("kernel", f"kernel{number}.{at}", start, self.free[stream], 7 + stream,
                     correlation=correlation, device=device, stream=7 + stream)  # fmt: skip
        if number in self.awaited:
            self.call("cudaEventRecord", 1, correlation=2000 + number)
            self.done[number] = stream, self.free[stream]

    def wait_for(self, number: int, other: int, call: str, stream: int) -> int:
        """Records the call that waits, or makes a stream wait, for another instruction; returns when it began."""
        other_stream, done = self.done[other]
        begin = self.call(call, max(done - self.now, 0) + RETURN_US if stream < 0 else 1, correlation=3000 + number)
        kind = "Event Sync" if stream < 0 else "Stream Wait Event"
        self.put("cuda_sync", kind, begin, begin + 1, stream, correlation=3000 + number, device=other_stream // 2,
                 stream=stream, wait_on_stream=7 + other_stream,
                 wait_on_cuda_event_record_corr_id=2000 + other)  # fmt: skip
        return done


def recorded(steps: Sequence[Sequence[Instruction]]) -> Profile:
    """The profile of `steps`, each a list of instructions; operators are named `op0`, `op1`, … across all steps."""
    flat = enumerate(instruction for step in steps for instruction in step)
    machine, number = _Machine(awaited=frozenset(at - each.awaits for at, each in flat if each.awaits)), 0
    for at, instructions in enumerate(steps):
        begin = machine.now
        for instruction in instructions:
            machine.run(number, instruction)
            number += 1
        machine.now += 1
        machine.put("user_annotation", f"ProfilerStep#{at}", begin, machine.now, MAIN)
    document = {"schemaVersion": 1, "baseTimeNanoseconds": 0, "cuda_runtime_version": 12, "traceEvents": machine.events}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made_up.pt.trace.json")
        path.write_text(json.dumps(document))
        return Profile(read_trace(path))
