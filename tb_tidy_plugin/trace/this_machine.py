"""The measured speed of this machine, for recordings that it made without a capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.system.machine_file import SHARED_NAMES, files_of_this_machine, host_name, read_machine
from tb_tidy_plugin.trace.measured_machine import MeasuredMachine
from tb_tidy_plugin.trace.recover import NOT_JSON

if TYPE_CHECKING:
    from tb_tidy_plugin.trace.columns import EventTable


def with_this_machine(table: EventTable, worker: str) -> EventTable:
    """The table with this machine's figures if it has none and this machine made the recording.

    PyTorch names a recording by host and process, `HOST_PID`; a name that many hosts have proves nothing. The figures
    are the latest, whatever the build of PyTorch, which a plain recording does not tell.
    """
    captured = table.metadata.captured
    if captured.machine is not None or not _is_of_this_host(worker):
        return table
    for file in files_of_this_machine():
        found = _decoded(read_machine(file))
        if found is not None:
            return replace(table, metadata=replace(table.metadata, captured=replace(captured, machine=found)))
    return table


def _is_of_this_host(worker: str) -> bool:
    host, _, process = worker.rpartition("_")
    return process.isascii() and process.isdigit() and host == host_name() and host.casefold() not in SHARED_NAMES


def _decoded(content: bytes | None) -> MeasuredMachine | None:
    if content is None:
        return None
    try:
        return decode(content, MeasuredMachine)
    except NOT_JSON:
        return None


def machine_state() -> list[tuple[str, int, int]]:
    """A state that changes when this machine is measured."""
    found = []
    for file in files_of_this_machine():
        try:
            about = file.stat()
        except OSError:
            continue
        found.append((file.name, about.st_size, about.st_mtime_ns))
    return found
