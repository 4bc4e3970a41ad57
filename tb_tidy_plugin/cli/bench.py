"""`tb-tidy bench`: times of the findings' statements on this machine, with the pattern and without it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

import click
import msgspec
from click.core import ParameterSource
from rich.console import Console, RenderableType
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from tb_tidy_plugin.analysis.answers import RECIPES
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.pairs import BUDGET_S, Measuring, OnPair, Pair, PairResult, measured, pairs_in
from tb_tidy_plugin.analysis.paths import analyse
from tb_tidy_plugin.benchmarks.measurement import Measurement, NotMeasured
from tb_tidy_plugin.benchmarks.process import NO_TORCH, MeasuringProgress
from tb_tidy_plugin.benchmarks.runner import has_torch
from tb_tidy_plugin.benchmarks.store import StoreError, keep, save_beside
from tb_tidy_plugin.cli.bench_machine import bench_machine
from tb_tidy_plugin.cli.exit_codes import INTERRUPTED, code_of
from tb_tidy_plugin.cli.jobs import with_job_for_benchmarks
from tb_tidy_plugin.cli.output import say_problems
from tb_tidy_plugin.cli.places import PLACE
from tb_tidy_plugin.cli.printed import say
from tb_tidy_plugin.cli.progress import progress_bar
from tb_tidy_plugin.render.terminal import plain
from tb_tidy_plugin.report.model import Problem, has_unread
from tb_tidy_plugin.system.machine_file import LEISURE_S
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.words.errors import NotFoundError, TidyError
from tb_tidy_plugin.words.units import Nanoseconds
from tb_tidy_plugin.words.visible import visible

SHOWN_STATEMENT = 60
_VERDICTS = {
    "faster": ("faster", "green"),
    "slower": ("slower", "red"),
    "no_clear_difference": ("no difference", "dim"),
}


class BenchRow(msgspec.Struct, frozen=True, kw_only=True):
    """One pair in the JSON: `measurement`, or the reason why there is none."""

    rule: str
    findings: dict[str, list[str]]
    measurement: Measurement | None = None
    error: str | None = None
    advice: str | None = None


@click.command(short_help="Measure how much fixes save on this machine.")
@click.argument("path", type=PLACE, nargs=-1, metavar="[PATH]...")
@click.option("--machine", is_flag=True, help="Measure this machine instead, for the limits in reports; takes no PATH.")
@click.option("--finding", metavar="ID", help="Measure only this finding.")
@click.option(
    "--device", default="", help="cuda, cuda:1, rocm, mps, xpu or cpu; by default a device of the recording's kind."
)
@click.option(
    "--budget",
    type=click.FloatRange(0.01, 600),
    default=BUDGET_S,
    show_default=True,
    help="Seconds for each pair of statements.",
)
@click.option("--save", is_flag=True, help="Write the results beside each trace, for other machines.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@with_job_for_benchmarks
def bench(
    job: Job,
    path: tuple[AnyPath, ...],
    *,
    machine: bool,
    finding: str | None,
    device: str,
    budget: float,
    save: bool,
    form: str,
) -> None:
    """Measure how much the fixes of the findings in PATH save on this machine; several PATHs are measured together.

    For each finding, two statements, with the pattern and without it, run in turns in a separate process. They come
    from the rules, with the recorded shapes; no code of the recorded program runs. The results are cached. From then on
    `tb-tidy check` shows them, and uses them in its savings if the recording is from the same kind of device.

    With `--machine`, what this machine can do is measured for ten seconds, or for `--budget`, and kept for reports on
    its recordings.

    Exit codes: 0 done, 2 a trace could not be read, or nothing could be measured or stored, 130 interrupted.
    """
    if machine != (not path):
        raise click.UsageError("Give either one or several PATHs or --machine.")
    if machine:
        is_given = click.get_current_context().get_parameter_source("budget") is not ParameterSource.DEFAULT
        bench_machine(budget if is_given else LEISURE_S, form)
        return
    how = Measuring(asked=device, budget_s=budget)
    done = bench_all(path, job, how, finding=finding, save=save)
    say_problems(done.problems)
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode([_row(*each) for each in done.results]), indent=2).decode())
    else:
        say(_table(done.results))
    if done.not_kept:
        raise done.not_kept
    if not done.is_whole:
        sys.exit(INTERRUPTED)
    is_empty = not any(isinstance(result, Measurement) for _, result in done.results)
    sys.exit(code_of(found=False, unread=is_empty or has_unread(done.problems)))


class Benched(msgspec.Struct, frozen=True):
    """The measurements, and what is missing.

    Attributes:
        is_whole: False after Ctrl-C.
        not_kept: the reason if some could not be stored.
        problems: traces that could not be read, or not completely.
    """

    results: list[PairResult]
    is_whole: bool
    not_kept: StoreError | None
    problems: list[Problem]


def bench_all(
    path: tuple[AnyPath, ...], job: Job, how: Measuring, *, finding: str | None = None, save: bool = False
) -> Benched:
    """Measures, and stores what it can.

    Raises:
        TidyError: there is nothing to measure, or PyTorch is missing.
    """
    if not has_torch():
        raise TidyError(NO_TORCH.error, NO_TORCH.advice)
    with progress_bar(job) as watched:
        found = list(analyse(watched, path, RECIPES))
    pairs = pairs_in(found, job.rules, finding)
    problems = [each.problem for each in found if each.problem is not None]
    if not pairs:
        say_problems(problems)
        what = f"The finding `{finding}` has no" if finding else "No finding has"
        names = " and ".join(f"`{each}`" for each in path)
        raise NotFoundError(f"{what} statements to measure in {names}.", "`tb-tidy check` lists the findings.")
    results: list[PairResult] = []
    is_whole, not_kept = True, None
    with _bar(len(pairs)) as show:
        try:
            for pair, result in measured(pairs, how, show):
                results.append((pair, result))
                not_kept = _kept(pair, result, save=save) or not_kept
        except KeyboardInterrupt:
            is_whole = False
    return Benched(results, is_whole, not_kept, problems)


def bench_for_report(path: tuple[AnyPath, ...], job: Job) -> None:
    """Measures a report's findings, for the report to show; says so if the results cannot be stored and thus not shown.

    Raises:
        TidyError: PyTorch is missing.
    """
    with suppress(NotFoundError):  # no finding has statements; the report itself says if a path has no traces
        if problem := bench_all(path, job, Measuring()).not_kept:
            click.echo(f"The report is without it: {visible(problem.error)} {visible(problem.advice)}", err=True)


def _kept(pair: Pair, result: Measurement | NotMeasured, *, save: bool) -> StoreError | None:
    """Stores a result at once, so that Ctrl-C loses at most the current pair; returns the error if that fails."""
    if isinstance(result, NotMeasured):
        return None
    problem = None
    writes: list[Callable[[], object]] = [partial(keep, result)]
    writes += [partial(save_beside, trace, [result]) for trace in pair.findings if save]
    for write in writes:
        try:
            write()
        except StoreError as unkept:
            problem = unkept
    return problem


@contextmanager
def _bar(count: int) -> Iterator[OnPair]:
    """A callback for the progress of each pair; shows nothing if stderr is not a terminal."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Bar(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=float(count))

        def show(number: int, pair: Pair, state: MeasuringProgress) -> None:
            bar.update(task, description=f"{pair.rule}: {state.stage}", completed=number + state.fraction)

        yield show


def _row(pair: Pair, result: Measurement | NotMeasured) -> BenchRow:
    findings = {str(trace): list(ids) for trace, ids in pair.findings.items()}
    if isinstance(result, Measurement):
        return BenchRow(rule=pair.rule, findings=findings, measurement=result)
    return BenchRow(rule=pair.rule, findings=findings, error=result.error, advice=result.advice)


def _table(results: Sequence[PairResult]) -> RenderableType:
    table = Table("Rule and statements", "Before", "After", "After / before", "Verdict", box=None, pad_edge=False)
    for pair, result in results:
        statements = [_shortened(text) for text in (pair.statements.before, pair.statements.after)]
        shown = Text("\n").join([Text(pair.rule, "bold"), *statements])
        if isinstance(result, NotMeasured):
            table.add_row(shown, "", "", "", Text.assemble(("not measured\n", "yellow"), _said(result)))
        else:
            table.add_row(shown, *_figures(result))
    return table


def _figures(result: Measurement) -> tuple[str, str, str, Text]:
    verdict, style = _VERDICTS[result.verdict]
    said = "\n".join([*result.doubts, f"{result.on.kind}: {result.on.name}"])
    return (
        str(Nanoseconds(round(result.before_ns))),
        str(Nanoseconds(round(result.after_ns))),
        f"{result.ratio:.3g}\n({result.low:.3g} to {result.high:.3g})",
        Text.assemble((verdict, style), "\n", *(Text.assemble(plain(line), "\n") for line in said.splitlines())),
    )


def _said(result: NotMeasured) -> Text:
    return plain(f"{result.error} {result.advice}")


def _shortened(statement: str) -> Text:
    """The last line that does something, which is the essence of the pair."""
    line = statement.strip().splitlines()[-1].strip()
    return plain(line if len(line) <= SHOWN_STATEMENT else f"{line[: SHOWN_STATEMENT - 1]}…")
