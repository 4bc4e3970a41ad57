"""Writes the side file with the device times of a back end whose kernels Kineto does not see.

PyTorch measures such a device (PrivateUse1) around each operator. The times are in its own list of events, and are lost
if only the trace is exported. The format is on the page `docs/out-of-tree-devices.md`.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tb_tidy_plugin.capture.guarded import log_harmless, unless_it_fails
from tb_tidy_plugin.system.files import write_whole
from tb_tidy_plugin.system.side_files import DEVICE_EVENTS_SUFFIX, DEVICE_EVENTS_VERSION, LONGEST_LATENCY_NS

if TYPE_CHECKING:
    import torch
    from torch.autograd.profiler_util import FunctionEvent

    Profiler: TypeAlias = torch.profiler.profile | torch.autograd.profiler.profile

LAUNCH_LATENCY_NS = 5_000
"""Time from the start of an operator to that of its work on an idle device: CUDA's, as the default."""


def write_device_events(
    prof: Profiler,
    trace_path: str | os.PathLike[str],
    device_kind: str = "privateuseone",
    launch_latency_ns: int = LAUNCH_LATENCY_NS,
    device_name: str = "",
    memory: Iterable[tuple[int, int]] = (),
) -> Path | None:
    """Writes the side file of the trace `trace_path`; call it after the export, in `on_trace_ready`.

    Each rank writes its own, beside its own trace. Never raises: a failure is logged, and the trace stays as good
    as it is without the file.

    Args:
        prof: the profiler that timed the device, of `torch.profiler` or `torch.autograd.profiler`.
        trace_path: the trace as exported, including `.gz` if it has that.
        device_kind: name of the back end, with the number of the device this process used if it is not 0 (`npu:3`).
        launch_latency_ns: from the start of an operator on the host to that of its work on an idle device, in ns.
        device_name: of the product.
        memory: samples of memory in use: Unix time in ns (`time.time_ns()`), bytes.

    Returns:
        The side file; None if none was written.
    """

    def write() -> Path | None:
        path = Path(f"{os.fspath(trace_path)}{DEVICE_EVENTS_SUFFIX}")
        document = {
            "version": DEVICE_EVENTS_VERSION,
            "device": _device(device_kind, device_name),
            "launch_latency_ns": _latency_ns(launch_latency_ns),
            "operators": list(_operators(prof)),
            "memory": [{"time_ns": int(time_ns), "bytes": int(size)} for time_ns, size in memory],
        }
        if not document["operators"]:
            text = f"no operator has device time, so no device events are written for {trace_path}"
            log_harmless(logging.WARNING, text)
            return None
        if not Path(trace_path).exists():
            log_harmless(logging.WARNING, f"the trace {trace_path} does not exist; export it under that name")
        return write_whole(path, json.dumps(document, separators=(",", ":")).encode())

    return unless_it_fails(f"the device time of {trace_path}", write)


def _device(kind: str, name: str) -> dict[str, str | int]:
    back_end, _, index = kind.partition(":")
    return {"kind": back_end, "name": name, "index": int(index or 0)}


def _latency_ns(given: int) -> int:
    if not 0 <= given <= LONGEST_LATENCY_NS:
        raise ValueError(f"a launch latency of {given} ns is not possible")
    return int(given)


def _operators(prof: Profiler) -> Iterator[dict[str, str | int]]:
    from torch.autograd.profiler import profile

    recorder = prof if isinstance(prof, profile) else prof.profiler  # torch.profiler's own is that of torch.autograd
    if recorder is None:
        raise RuntimeError("the profiler has not recorded anything")
    for event in recorder.function_events or ():
        time_ns = round(event.device_time_total * 1000)
        if time_ns > 0 and event.id > 0 and _is_on_host(event):
            yield {
                "name": event.trace_name or event.name,
                "external_id": event.id,
                "thread": _thread(event),
                "device_time_ns": time_ns,
            }


def _is_on_host(event: FunctionEvent) -> bool:
    return event.device_type.name == "CPU" and not getattr(event, "is_python_function", False)


def _thread(event: FunctionEvent) -> int:
    """The thread's id in the trace; older versions of PyTorch only know their own small number of it."""
    return int(getattr(event, "device_resource_id", event.thread))
