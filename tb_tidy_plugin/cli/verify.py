"""`tb-tidy verify`: two versions of a program in turns, without the profiler."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal

import click
import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.cli.exit_codes import code_of
from tb_tidy_plugin.cli.jobs import with_job
from tb_tidy_plugin.cli.places import PLACE
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.verify.checkouts import folder_of
from tb_tidy_plugin.verify.model import Verification
from tb_tidy_plugin.verify.programs import ended_by_signals
from tb_tidy_plugin.verify.verify import Plan, promises_in, verified
from tb_tidy_plugin.words.errors import TidyError
from tb_tidy_plugin.words.units import Bytes, Nanoseconds, Share
from tb_tidy_plugin.words.visible import visible

_USUAL = Plan()


@click.command(short_help="Verify a change: compare the program before and after it.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option(
    "--before", required=True, metavar="REV|DIR", help="Git revision or folder of the program before the change."
)
@click.option(
    "--after",
    default=".",
    show_default=True,
    metavar="REV|DIR",
    help="Git revision or folder of the program after the change.",
)
@click.option(
    "--promise", type=PLACE, help="Recording of the program before the change; compare its predicted savings."
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=_USUAL.rounds,
    show_default=True,
    help="Start both programs this many times.",
)
@click.option(
    "--turns", type=click.IntRange(5), default=_USUAL.turns, show_default=True, help="Number of turns of each process."
)
@click.option("--turn", type=click.FloatRange(0.01), default=_USUAL.turn_s, show_default=True, help="Seconds per turn.")
@click.option(
    "--steps",
    type=click.IntRange(1),
    default=_USUAL.steps,
    show_default=True,
    help="Compare the results of this many first steps.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0.0),
    default=_USUAL.tolerance,
    show_default=True,
    help="Relative difference up to which results count as equal.",
)
@click.option(
    "--limit",
    type=click.FloatRange(1.0),
    default=_USUAL.limit_s,
    show_default=True,
    help="Seconds to wait for a program's first step, or for a turn.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@with_job
def verify(
    job: Job,
    command: tuple[str, ...],
    before: str,
    after: str,
    promise: AnyPath | None,
    rounds: int,
    turns: int,
    turn: float,
    steps: int,
    tolerance: float,
    limit: float,
    form: Literal["text", "json"],
) -> None:
    """Run COMMAND before and after a change, in turns and without the profiler, and compare time, results and memory.

    COMMAND runs in both folders; git writes the files of a revision into a temporary one. It must mark its steps with
    `tidy_profile` or a callback of `tb_tidy_plugin.capture`, which record nothing during `verify`.

    Exit codes: 0 not slower, with the same results; 1 slower, or with different results; 2 a program could not run;
    130 interrupted.
    """
    if os.name == "nt":
        raise TidyError("`tb-tidy verify` does not run on Windows.", "Use Linux, macOS or WSL.")
    plan = Plan(rounds, turns, turn, steps, tolerance, limit)
    with ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        folders = stack.enter_context(folder_of(before)), stack.enter_context(folder_of(after))
        promises = []
        if promise is not None:
            report = analyze_path(
                promise, replace(job, source_roots=(folders[0], *job.source_roots), undated=(folders[0],))
            )
            promises = promises_in(report, folders[1])
        progress = stack.enter_context(_progress())
        found = verified((before, after), folders, command, plan, promises, progress)
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        click.echo("\n".join(visible(line) for line in _lines(found)))
        if promise is not None and not promises:
            click.echo("promised: nothing, since no finding of the recording has its fix in the changed files")
    sys.exit(code_of(found=found.verdict == "slower" or found.results == "different", unread=False))


def _lines(found: Verification) -> Iterator[str]:
    interval = f"{found.low:.3f} to {found.high:.3f}, 95 %"
    yield f"{found.verdict}: a step takes {found.ratio:.3f} times as long ({interval})"
    for name, side in (("before", found.before), ("after", found.after)):
        memory = f", at most {Bytes(side.peak_bytes)} of memory" if side.peak_bytes else ""
        yield f"  {name}: {Nanoseconds(side.step_ns)} per step over {side.steps} steps{memory} ({side.folder})"
    compared = f"{found.losses} losses and all parameters" if found.losses else "all parameters"
    yield f"results ({compared}): {found.results}{f'. {found.reason}' if found.reason else ''}"
    for each in found.promises:
        bounds = f"{Share(each.low)} to {Share(each.high)}"
        yield f"promised by {each.rule}: {Share(each.expected)} ({bounds}): {each.message}"
    if found.promised is not None:
        part = f", {Share(max(found.saved, 0.0) / found.promised)} of the promise" if found.promised > 0 else ""
        yield f"saved: {Share(max(found.saved, 0.0))} of {Share(found.promised)}{part}"


@contextmanager
def _progress() -> Iterator[Callable[[str, float], object]]:
    """A progress bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda what, part: bar.update(task, description=what, completed=part)
