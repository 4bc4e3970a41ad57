"""Worker, span and rank of a trace from the names of its file and folders.

`<worker>.<span>.pt.trace.json` is torch-tb-profiler's form; the others are those of frameworks.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from tb_tidy_plugin.system.side_files import CAPTURE_SUFFIX, DEVICE_EVENTS_SUFFIX, GRAPH_SUFFIX
from tb_tidy_plugin.trace.remote import AnyPath, absolute

MEMORY_SNAPSHOT = ".memory_snapshot.pickle"
"""Suffix, for the name of a trace or of its worker, of the file that `torch.cuda.memory._dump_snapshot` wrote."""

MODEL_CONFIG = "config.json"
"""Hugging Face's description of the model, in the folder of a trace."""

TRACE_NAME = re.compile(r"(?P<worker>.*?)(?:\.(?P<span>\d+))?\.pt\.trace\.json(?:\.gz)?")
"""Names of files that are traces whatever their content."""

JSON_NAME = re.compile(r"(?P<stem>.+?)\.(?:json|trace)(?:\.gz)?", re.IGNORECASE | re.DOTALL)
AXIS = r"(?:TP|DP|PP|EP)-\d+"
SGLANG = re.compile(rf"(?P<span>\d+(?:\.\d+)?)-(?P<worker>{AXIS}(?:-{AXIS})*)(?P<stage>-\w+)?(?:\.trace)?")
"""A stage, such as `DECODE`, is a separate recording by the same worker."""

BESIDE = (DEVICE_EVENTS_SUFFIX, CAPTURE_SUFFIX)
"""Suffixes, for the name of a trace, of the files whose events are in its columns."""

OURS = (CAPTURE_SUFFIX, DEVICE_EVENTS_SUFFIX, GRAPH_SUFFIX)

RANK_FOLDER = re.compile(r"rank[-_]?(\d{1,9})", re.IGNORECASE)
RANK_IN_FILE = (
    re.compile(r"rank[-_]?(\d{1,9})", re.IGNORECASE),  # torchtitan, vLLM, Megatron, torchtune, verl
    re.compile(r"^profile_(\d{1,9})\.json"),  # Accelerate, and Hugging Face's trainer
    re.compile(r"^r(\d{1,9})-\d{4}-\d"),  # torchtune, older
    re.compile(r"^(?!.*\bPP-0*[1-9]).*?\bTP-(\d{1,9})"),  # SGLang; later pipeline stages begin at an unknown rank
)


_DIGITS = re.compile("([0-9]+)")


def reading_order(*names: str) -> tuple[object, ...]:
    """Sort key of names by text, and by their numbers where they have any: `rank2` comes before `rank10`."""
    return (*map(_parts_in_order, names), names)


def _parts_in_order(name: str) -> list[tuple[int, str]]:
    """Texts and numbers in turn; of two numbers the one with fewer digits is smaller, however long they are."""
    parts = _DIGITS.split(name)
    parts[1::2] = [number.lstrip("0") for number in parts[1::2]]
    return [(len(part) if at % 2 else 0, part) for at, part in enumerate(parts)]


class NameParts(NamedTuple):
    """The parts of a file's name; `span` is empty if the name has none."""

    worker: str
    span: str


def is_trace_name(name: str) -> bool:
    """True if files of this name are traces whatever their content."""
    return TRACE_NAME.fullmatch(name) is not None


def may_be_trace(name: str) -> bool:
    """True if a file of this name may be a trace, depending on its content."""
    return JSON_NAME.fullmatch(name) is not None and not name.endswith(OURS)


def name_parts(name: str) -> NameParts:
    """The worker and the span in a file's name; a file may have any name."""
    if match := TRACE_NAME.fullmatch(name):
        return NameParts(match["worker"], match["span"] or "")
    match = JSON_NAME.fullmatch(name)
    stem = match["stem"] if match else name.removesuffix(".gz")
    serving = SGLANG.fullmatch(stem)
    return NameParts(serving["worker"], serving["span"] + (serving["stage"] or "")) if serving else NameParts(stem, "")


def snapshots_beside(trace: AnyPath) -> list[AnyPath]:
    """Possible places of a trace's memory snapshot, nearest first: by its name, its worker's, or the folder's."""
    names = dict.fromkeys((trace.name, trace.name.removesuffix(".gz"), name_parts(trace.name).worker, ""))
    return [trace.with_name((name + MEMORY_SNAPSHOT).removeprefix(".")) for name in names]


def model_config_beside(trace: AnyPath) -> AnyPath:
    """The possible place of the configuration of a trace's model."""
    return trace.with_name(MODEL_CONFIG)


def rank_in_names(path: AnyPath) -> int | None:
    """The rank by a file's name, else by that of its folder, else None."""
    folder, _, file = str(absolute(path)).replace(os.sep, "/").rpartition("/")
    for pattern in RANK_IN_FILE:
        if match := pattern.search(file):
            return int(match[1])
    match = RANK_FOLDER.fullmatch(folder.rpartition("/")[2])
    return int(match[1]) if match else None
