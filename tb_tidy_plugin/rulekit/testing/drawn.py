"""Profiles drawn as text, so that the reader of a test sees the trace.

One event per line: name, `start-end` in µs, attributes. Indentation is nesting and is checked against the times::

    ProfilerStep#1           0-900
      train.py(12): step     1-899
        aten::ones           0-199    dims=,  types=ScalarList
        aten::to             200-499  dims=64x64  types=float  copy=HtoD@300-480:16384
        aten::mm             500-890  dims=64x64,64x64  types=float,float  kernel=ampere_sgemm_128x64_nn@520-890

Attributes: `dims`, `strides` and `types` (per input, comma separated; `-` or nothing for no tensor, `2x3+4x3` and
`2x3+` for a list of tensors), `scalars` (`Concrete Inputs`; a list of sizes as `[2x3]`), `wait=start-end` (when the
host waits for the device in it), `seq` (sequence number), `fwd` (forward thread id), `thread` (1 by default), and, as
often as needed, `kernel=name@start-end`, `graph=name@start-end` (a kernel of a graph's replay),
`copy=HtoD@start-end:bytes` (or `DtoH`, `DtoD`), `fill=start-end:bytes`:
device work that the event launches in its first µs. It runs on one stream; work that overlaps earlier lines' runs on
others. The text goes through the real reader: it is written as Kineto
would write it.

A line that begins with `# ` is a comment; `# device: A100` names one of the devices below.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from tb_tidy_plugin.profile.graphs.replay import with_replayed
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.kineto import read_trace

_LINE = re.compile(r"(?P<indent> *)(?P<name>\S.*?) +(?P<start>\d+)-(?P<end>\d+)(?P<attributes>( +\w+=\S*)*) *")
COMMENT = re.compile(r"# (?P<key>\w+): (?P<value>.*\S) *")
_ANNOTATION = re.compile(
    r"ProfilerStep#|gloo:|nccl:|Optimizer\.|DistributedDataParallel\.|enumerate\(DataLoader\)#|execute_|decode\[|## "
)
FIRST_STREAM = 7
_PYTHON = re.compile(r".*\(\d+\): |nn\.Module: |<built-in ")
COPY_NAMES = {
    "HtoD": "Memcpy HtoD (Pageable -> Device)",
    "DtoH": "Memcpy DtoH (Device -> Pageable)",
    "DtoD": "Memcpy DtoD (Device -> Device)",
}


class Gpu(msgspec.Struct, frozen=True):
    """The device of a drawn profile."""

    name: str
    major: int
    minor: int
    version_key: str = "cuda_runtime_version"


A100 = Gpu("NVIDIA A100-SXM4-80GB", 8, 0)
V100 = Gpu("Tesla V100-SXM2-16GB", 7, 0)
MI300 = Gpu("AMD Instinct MI300X", 9, 4, "hip_runtime_version")


def draw(text: str, gpu: Gpu | None = None) -> Profile:
    """The profile that `text` draws, with `gpu` as its only device; without it the one that a comment names."""
    with tempfile.TemporaryDirectory() as folder:
        return draw_into(Path(folder), text, gpu)


def draw_into(folder: Path, text: str, gpu: Gpu | None = None) -> Profile:
    """The same profile, with its trace left in `folder`."""
    gpu = gpu or _device_in(text)
    document: dict[str, Any] = {"schemaVersion": 1, "traceEvents": list(_events(text, gpu)), "baseTimeNanoseconds": 0}
    if gpu is not None:
        properties = {"id": 0, "name": gpu.name, "computeMajor": gpu.major, "computeMinor": gpu.minor}
        document |= {"deviceProperties": [properties], gpu.version_key: 1}
    path = folder / "drawn.pt.trace.json"
    path.write_text(json.dumps(document))
    profile = Profile(with_replayed(read_trace(path)))
    _check_nesting(text, profile)
    return profile


def comments(text: str) -> list[tuple[str, str]]:
    """Key and value of each comment `# key: value`, in their order."""
    return [(match["key"], match["value"]) for match in map(COMMENT.fullmatch, text.splitlines()) if match]


def _device_in(text: str) -> Gpu | None:
    names = [value for key, value in comments(text) if key == "device"]
    known = {name: value for name, value in globals().items() if isinstance(value, Gpu)}
    assert len(names) <= 1, f"a drawn profile has one device, not {names}"
    assert set(names) <= set(known), f"no such device: {names}; there are {', '.join(known)}"
    return known[names[0]] if names else None


def row_of(profile: Profile, name: str, nth: int = 0) -> int:
    """The row of the `nth` event called `name`, in order of start."""
    rows = [row for row in range(len(profile.table)) if profile.table.names[profile.table.name[row]] == name]
    return sorted(rows, key=profile.start_ns)[nth]


def _events(text: str, gpu: Gpu | None) -> Iterator[dict[str, Any]]:
    ids = count(1)
    python_ids = count(1)
    streams: list[list[tuple[int, int]]] = []
    runtime = "hip" if gpu is not None and gpu.version_key.startswith("hip") else "cuda"
    for match in _lines(text):
        name, start, end = match["name"], int(match["start"]), int(match["end"])
        attributes = [part.split("=", 1) for part in match["attributes"].split()]
        given = dict(attributes)
        number = next(ids)
        args: dict[str, Any] = {"Ev Idx": number}
        category = "user_annotation" if _ANNOTATION.match(name) else "cpu_op"
        if _PYTHON.match(name):
            category = "python_function"
            args["Python id"] = next(python_ids)
        else:
            args["External id"] = number
        args |= _inputs(given)
        thread = int(given.get("thread", 1))
        yield _complete(category, name, start, end, args, pid=100, tid=thread)
        for key, value in attributes:
            if key in {"kernel", "graph", "copy", "fill"}:
                yield from _on_free_stream(
                    _device_work(key, value, start, next(ids) + 10_000, number, thread, runtime), streams
                )
        if "wait" in given:
            since, until = map(int, given["wait"].split("-"))
            args = {"correlation": next(ids) + 10_000}
            yield _complete("cuda_runtime", runtime + "StreamSynchronize", since, until, args, pid=100, tid=thread)


def _inputs(given: dict[str, str]) -> dict[str, Any]:
    args: dict[str, Any] = {}
    for attribute, key in (("dims", "Input Dims"), ("strides", "Input Strides")):
        if attribute in given:
            args[key] = [_sizes(text) for text in given[attribute].split(",")]
    if "types" in given:
        names = {"half": "c10::Half", "bfloat16": "c10::BFloat16", "long": "long int", "-": ""}
        args["Input type"] = [names.get(name, name) for name in given["types"].split(",")]
    if "scalars" in given:
        args["Concrete Inputs"] = [
            text.replace("x", ", ") if text.startswith("[") else text for text in given["scalars"].split(",")
        ]
    if "seq" in given:
        args |= {"Sequence number": int(given["seq"]), "Fwd thread id": int(given.get("fwd", 0))}
    return args


def _sizes(text: str) -> list[Any]:
    """`2x3` as a list of numbers, `2x3+4x3` and `2x3+` as lists of such lists."""
    if "+" in text:
        return [_sizes(part) for part in text.split("+") if part]
    return [int(size) for size in text.split("x")] if text.strip("-") else []


def _on_free_stream(events: Iterator[dict[str, Any]], streams: list[list[tuple[int, int]]]) -> Iterator[dict[str, Any]]:
    """A launch and its device work, that on the first stream on which nothing runs meanwhile; `streams` hold spans."""
    launch, work = events
    start, end = work["ts"], work["ts"] + work["dur"]
    busy = (any(begin < end and start < stop for begin, stop in spans) for spans in streams)
    at = next((at for at, is_busy in enumerate(busy) if not is_busy), len(streams))
    streams += [[]] if at == len(streams) else []
    streams[at].append((start, end))
    stream = FIRST_STREAM + at
    yield launch
    yield work | {"tid": stream, "args": work["args"] | {"stream": stream}}


def _device_work(
    kind: str, value: str, launch: int, correlation: int, external_id: int, thread: int, runtime: str
) -> Iterator[dict[str, Any]]:
    if kind == "fill":
        value = f"Memset (Device)@{value}"
    label, _, when = value.rpartition("@")
    times, _, size = when.partition(":")
    start, end = (int(time) for time in times.split("-"))
    call = {"kernel": "LaunchKernel", "graph": "GraphLaunch", "copy": "MemcpyAsync", "fill": "MemsetAsync"}[kind]
    shared = {"correlation": correlation, "External id": external_id}
    yield _complete("cuda_runtime", runtime + call, launch, launch + 1, shared, pid=100, tid=thread)
    category = {"kernel": "kernel", "graph": "kernel", "copy": "gpu_memcpy", "fill": "gpu_memset"}[kind]
    args = shared | {"device": 0, "stream": FIRST_STREAM} | ({"bytes": int(size)} if size else {})
    yield _complete(category, COPY_NAMES.get(label, label), start, end, args, pid=0, tid=FIRST_STREAM)


def _complete(
    category: str, name: str, start: int, end: int, args: dict[str, Any], pid: int, tid: int
) -> dict[str, Any]:
    return {
        "ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": end - start, "args": args,
    }  # fmt: skip


def _lines(text: str) -> Iterator[re.Match[str]]:
    for line in text.splitlines():
        if line.strip() and not line.startswith("# "):
            match = _LINE.fullmatch(line)
            assert match is not None, f"not a drawn event: {line!r}"
            yield match


def _check_nesting(text: str, profile: Profile) -> None:
    matches = list(_lines(text))
    depths: list[int] = []
    indents: list[int] = []
    for match in matches:
        indent = len(match["indent"])
        while indents and indents[-1] >= indent:
            indents.pop()
        depths.append(len(indents))
        indents.append(indent)
    drawn = sorted((int(match["start"]), depth, match["name"]) for match, depth in zip(matches, depths, strict=True))
    origin = min(start for start, _, _ in drawn)
    rebuilt = sorted(
        (
            profile.start_ns(row) // 1000 + origin,
            int(profile.tree.depth[row]),
            profile.table.names[profile.table.name[row]],
        )
        for row in range(profile.tree.size)
    )
    assert rebuilt == drawn, "the times do not nest as the text is indented"
