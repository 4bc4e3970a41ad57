"""`tb-tidy merge-device-events`: a trace and its side file, as one trace for Perfetto."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click

from tb_tidy_plugin.render.terminal import plain
from tb_tidy_plugin.trace.external import infer_activity, is_merged
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.merge import device_events, event_list_of, samples_during, write_merged
from tb_tidy_plugin.trace.side_file import read_device_events
from tb_tidy_plugin.words.errors import TidyError, TraceError
from tb_tidy_plugin.words.units import Nanoseconds

Read = TypeVar("Read")

GIVEN = click.Path(exists=True, dir_okay=False, path_type=Path)
_WRITTEN = click.Path(dir_okay=False, path_type=Path)


@click.command("merge-device-events", short_help="Write device times into a copy of a trace.")
@click.argument("trace", type=GIVEN)
@click.argument("events", type=GIVEN)
@click.option(
    "-o", "--out", type=_WRITTEN, required=True, help="The trace to write, compressed if its name ends in `.gz`."
)
@click.option("--force", is_flag=True, help="Overwrite OUT if it exists.")
def merge_device_events(trace: Path, events: Path, out: Path, force: bool) -> None:
    """Write the device times in EVENTS into a copy of TRACE, to view in Perfetto.

    EVENTS is the side file of TRACE (`TRACE.device_events.json`). tb-tidy itself needs no merge: it reads the side file
    beside the trace.
    """
    _check_out(out, (trace, events), force)
    given = _read(events, read_device_events)
    table = _read(trace, read_trace)
    if is_merged(table):
        raise TraceError(f"`{trace}` is already merged.", "Give the original trace.")
    activity = infer_activity(table, given, events.name)
    if not len(activity.operators):
        error = f"No entry of `{events}` matches an operator of `{trace}`."
        raise TraceError(error, "Give the side file that was written with this trace.")
    place = _read(trace, event_list_of)
    memory = samples_during(table, activity, given.memory, place.base_ns)
    write_merged(trace, device_events(table, activity, memory, place.base_ns), place.end, out)
    click.echo(f"Wrote `{out}`: {len(activity.operators):,} kernels, {Nanoseconds(activity.busy_ns)} of device time.")
    for note in activity.notes:
        click.echo(f"note: {plain(note)}")
    if missing := len(given.memory) - len(memory):
        total = len(given.memory)
        click.echo(f"note: {missing:,} of {total:,} memory samples are left out: not of this recording, or negative.")


def _read(path: Path, read: Callable[[Path], Read]) -> Read:
    """The result of `read` for `path`; adds the path to errors, since there are two files."""
    try:
        return read(path)
    except TraceError as problem:
        raise TraceError(f"`{path}` cannot be used. {problem.error}", problem.advice) from None


def _check_out(out: Path, inputs: Sequence[Path], force: bool) -> None:
    """Checks that `out` may be written.

    Raises:
        TidyError: it may not, or its place is unreadable.
    """
    if not os.path.isdir(out.parent):  # noqa: PTH112 - pathlib's raises for a name that is too long
        raise TidyError(f"The folder `{out.parent}` does not exist.", "Create it, or choose another path with `-o`.")
    try:
        is_input = any(out.samefile(given) for given in inputs)
    except FileNotFoundError:
        return
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise TidyError(f"`{out}` could not be written: {reason}.", "Choose another path with `-o`.") from None
    if is_input:
        raise TidyError(f"`{out}` is one of the files to merge.", "Choose another name with `-o`.")
    if not force:
        raise TidyError(f"`{out}` already exists.", "Overwrite it with `--force`, or choose another name with `-o`.")
