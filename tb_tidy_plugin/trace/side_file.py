"""The side file of a trace: an out-of-tree device's activity, as JSON. Its page is `docs/out-of-tree-devices.md`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from tb_tidy_plugin.system.allowance import has_read
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.system.side_files import DEVICE_EVENTS_SUFFIX, DEVICE_EVENTS_VERSION, LONGEST_LATENCY_NS
from tb_tidy_plugin.trace.limits import MOST_DEVICES
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.trace.remote import AnyPath, is_file, size_of
from tb_tidy_plugin.words.errors import TraceError, UnreadError

_MAX_FILE_BYTES = 256 << 20

_WRITE_AGAIN = "Write it again with `tb_tidy_plugin.capture.write_device_events`, or delete it."


class ExternalDevice(msgspec.Struct, frozen=True):
    """The device: `kind` is the name of its back end (`npu`), `name` that of the product, empty if unknown."""

    kind: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    name: Annotated[str, msgspec.Meta(max_length=256)] = ""
    index: Annotated[int, msgspec.Meta(ge=0, le=MOST_DEVICES)] = 0


class OperatorTime(msgspec.Struct, frozen=True):
    """The device time of one operator, with the keys that join it to the trace.

    `name` is that in the trace, with or without overload. `external_id` is `External id` there, and `FunctionEvent.id`
    in PyTorch. `thread` is `tid` there, or the profiler's own small number of that thread. `device_time_ns` includes
    that of the operators inside.
    """

    name: str
    external_id: int
    thread: int
    device_time_ns: int


class MemorySample(msgspec.Struct, frozen=True):
    """Memory in use on the device, in bytes, at one time in Unix ns (`time.time_ns()`)."""

    time_ns: int
    bytes: int


class DeviceEvents(msgspec.Struct, frozen=True):
    """One device's activity during one trace.

    `launch_latency_ns` is the time from the start of an operator on the host to that of its work on an idle device.
    Unknown fields are ignored.
    """

    version: Literal[1]
    device: ExternalDevice
    launch_latency_ns: Annotated[int, msgspec.Meta(ge=0, le=LONGEST_LATENCY_NS)]
    operators: list[OperatorTime]
    memory: list[MemorySample] = []


class _Versioned(msgspec.Struct):
    version: int


def side_file_of(trace: AnyPath) -> AnyPath | None:
    """The side file beside `trace`, by its name; of a trace compressed later, also by its name before that."""
    names = [trace.name, trace.name.removesuffix(".gz")]
    paths = (trace.with_name(name + DEVICE_EVENTS_SUFFIX) for name in names)
    return next((path for path in paths if is_file(path)), None)


def refuse_link_away(side_file: AnyPath, trace: AnyPath) -> None:
    """Refuses a side file that, links resolved, does not lie beside its trace.

    Whoever put a link here may have no permission to read its target.

    Raises:
        UnreadError: its place is unknown.
        TraceError: it is a link to a folder that holds neither the trace, nor the file that the trace is a link to.
    """
    if not isinstance(side_file, Path) or not isinstance(trace, Path):
        return
    try:
        if not side_file.is_symlink():
            return
        leads_to, beside, of_trace = (os.path.realpath(each, strict=True) for each in (side_file, trace.parent, trace))
    except OSError as problem:
        raise _unread(problem) from None
    if os.path.dirname(leads_to) not in {beside, os.path.dirname(of_trace)}:  # noqa: PTH120 - as realpath has them
        raise TraceError("It is a link to a folder other than the trace's.", "Put the file itself beside the trace.")


def read_device_events(path: AnyPath) -> DeviceEvents:
    """The side file `path`.

    Raises:
        UnreadError: it cannot be read.
        TraceError: it is not a side file of this version.
    """
    text = _text(path)
    try:
        version = decode(text, _Versioned).version
        if version != DEVICE_EVENTS_VERSION:
            advice = "Write it again, or use a tb-tidy that supports this version."
            raise TraceError(f"It has version {version}; this reader knows version {DEVICE_EVENTS_VERSION}.", advice)
        return decode(text, DeviceEvents)
    except msgspec.ValidationError as problem:
        raise TraceError(f"It does not match the format: {problem}.", _WRITE_AGAIN) from None
    except (*NOT_JSON, RecursionError):
        raise TraceError("It is not JSON.", _WRITE_AGAIN) from None


def _text(path: AnyPath) -> bytes:
    try:
        if size_of(path) > _MAX_FILE_BYTES:
            raise TraceError("It is larger than 256 MiB.", _WRITE_AGAIN)
        text = path.read_bytes()
    except OSError as problem:
        raise _unread(problem) from None
    has_read(len(text))
    return text


def _unread(problem: OSError) -> UnreadError:
    reason = problem.strerror or type(problem).__name__
    return UnreadError(f"It cannot be read: {reason}.", "Check the path and its permissions.")
