"""Recordings that were never made: of a program whose source is here, and of all that a trace may hold."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.written import event, kineto_text, write

FILE = "train.py"
SOURCE = b'''\
# -*- coding: utf-8 -*-
import torch
from torch.nn import functional as F


def grow(count, start=torch.zeros(4, 8)):
    rows = start
    for number in range(count):
        if number % 2:
            rows = torch.cat([rows, torch.zeros(4, 8)])
        elif rows is not None:
            rows += 1
        else:
            continue
    return rows


class Model:
    """Calls others."""

    @torch.no_grad()
    def forward(self, x, *others, scale: float = 1.0, **named):
        with torch.autocast("cpu"), torch.no_grad():
            y = [F.relu(each) for each in (x, *others) if each.sum() > 0]
        try:
            z = torch.stack(y).mean() if y else x[..., 0]
        except (ValueError, TypeError) as problem:
            raise RuntimeError(f"{problem!r} at {x.shape[0]:>{8}}") from problem
        finally:
            torch.add(x, x)
        while z.item() < 3 and not (w := z > 1).all():
            z, w = z * 2, w
            assert z is not None, "never"
        return {"loss": z, **{name: value.item() for name, value in named.items()}}


async def serve(model, batches):
    async for batch in batches:
        match batch:
            case {"x": torch.Tensor() as x, **rest}:
                await model.forward(x, **rest)
            case [first, *_]:
                yield model.forward(first)
            case _:
                break


def train(): return (lambda a: a @ a.t())(torch.ones(2, 2)).sum().backward()
'''
CALLED = (
    "aten::zeros",
    "aten::cat",
    "aten::add_",
    "aten::relu",
    "aten::item",
    "aten::mul",
    "aten::mm",
    "aten::sum",
    "aten::t",
)


def recording() -> bytes:
    """A trace in which each function of the program runs twice and calls a few operators."""
    functions = [
        node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    events: list[dict[str, Any]] = [event("ProfilerStep#1", 0, 1000 * len(functions) * 2, cat="user_annotation")]
    for number, function in enumerate(functions * 2):
        start, ids = 1000 * number, {"Python id": number + 1}
        name = f"{FILE}({function.lineno}): {function.name}"
        events.append(event(name, start + 1, 990, cat="python_function", args=ids))
        args = {"Input Dims": [[4, 8], [4, 8]], "Input type": ["float", "float"]}
        events += [event(name, start + 10 + 50 * at, 40, args=args) for at, name in enumerate(CALLED)]
    return kineto_text(events).encode()


def write_program(folder: Path) -> Path:
    """The recording in `folder`, without its source."""
    folder.mkdir(parents=True, exist_ok=True)
    return write(folder / "w.1.pt.trace.json", recording())


def everything(steps: int) -> bytes:
    """Steps with an event of each kind: loading, modules, autograd, the optimizer, a device, ranks, memory."""
    events = [found for step in range(steps) for found in _step(step, 1000 * step)]
    footer = (
        '"baseTimeNanoseconds": 1706112000000000000, "record_shapes": 1, "with_stack": 1, "profile_memory": 1, '
        '"cuda_runtime_version": 12040, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", '
        '"totalGlobalMem": 85899345920, "computeMajor": 8, "computeMinor": 0}], '
        '"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2}'
    )
    if steps == 1:
        return json.dumps({**json.loads(f"{{{footer}}}"), "traceEvents": events}, separators=(",", ":")).encode()
    return kineto_text(events, footer).encode()


def _step(step: int, start: int) -> Iterator[dict[str, Any]]:
    def frame(name: str, at: int, dur: int, number: int, parent: int) -> dict[str, Any]:
        ids = {"Python id": 100 * step + number, "Python parent id": 100 * step + parent, "Ev Idx": 100 * step + number}
        return event(name, start + at, dur, cat="python_function", args=ids)

    def operator(name: str, at: int, dur: int, number: int, **args: object) -> dict[str, Any]:
        ids = {"External id": 100 * step + number, "Ev Idx": 100 * step + number}
        shapes = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""]}
        return event(name, start + at, dur, args=ids | shapes | args)

    def launched(name: str, cat: str, at: int, dur: int, number: int, **args: object) -> Iterator[dict[str, Any]]:
        ids = {"External id": 100 * step + number, "correlation": 100 * step + number}
        host = {"pid": 1, "tid": 1, "ts": start + at - 9}
        device = {"pid": 0, "tid": 7, "ts": start + at}
        yield event("cudaLaunchKernel", start + at - 9, 3, cat="cuda_runtime", args=ids)
        yield event(name, start + at, dur, cat=cat, pid=0, tid=7, args=ids | {"device": 0, "stream": 7} | args)
        yield {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 100 * step + number, **host}
        yield {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 100 * step + number, "bp": "e", **device}

    yield event(f"ProfilerStep#{step}", start, 990, cat="user_annotation", args={"Ev Idx": 100 * step})
    yield event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start + 1, 80, cat="user_annotation")
    yield frame(f"{FILE}(18): forward", 100, 300, 1, 0)
    yield frame("nn.Module: Linear_0", 110, 280, 2, 1)
    yield operator("aten::linear", 120, 60, 3, **{"Sequence number": 7 + step})
    yield operator("aten::addmm", 125, 50, 4)
    yield from launched(
        "ampere_sgemm_128x64_nn", "kernel", 160, 90, 4, grid=[8, 1, 1], **{"est. achieved occupancy %": 50}
    )
    yield operator("aten::to", 200, 40, 5)
    yield operator("aten::copy_", 205, 30, 6)
    yield from launched("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", 260, 20, 6, bytes=16384)
    yield operator("aten::item", 300, 60, 8)
    yield event("cudaStreamSynchronize", start + 310, 45, cat="cuda_runtime", args={"External id": 100 * step + 8})
    yield operator("autograd::engine::evaluate_function: AddmmBackward0", 420, 90, 9, **{"Fwd thread id": 1})
    yield operator("aten::mm", 430, 60, 10, **{"Sequence number": 7 + step, "Fwd thread id": 1})
    yield event("Optimizer.step#AdamW.step", start + 600, 200, cat="user_annotation")
    yield operator("aten::_foreach_add_", 620, 100, 11)
    yield from launched("Memset (Device)", "gpu_memset", 640, 5, 11, bytes=4096)
    yield operator("record_param_comms", 820, 60, 12, **{"Collective name": "allreduce", "In msg nelems": 4096})
    yield from launched("ncclDevKernel_AllReduce_Sum_f32", "kernel", 850, 90, 12, **{"Group size": 2, "Rank": 0})
    yield event("nccl:all_reduce", start + 849, 92, cat="gpu_user_annotation", pid=0, tid=7)
    for at, size in ((130, 4096), (500, -4096)):
        device = {"Bytes": size, "Addr": 7, "Device Type": 1, "Device Id": 0}
        args = device | {"Total Allocated": 8192, "Total Reserved": 1 << 20}
        instant = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]"}
        yield {**instant, "pid": 1, "tid": 1, "ts": start + at, "args": args}
