"""`tb-tidy annotate`: the user's source files with the cost of each line."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import click
import msgspec
from rich.console import RenderableType
from rich.text import Text

from tb_tidy_plugin.analysis.answers import Question
from tb_tidy_plugin.analysis.detailed_answers import LINES, PLACES, NotedAnswer
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.lines import Annotations
from tb_tidy_plugin.analysis.named import ShownNames, renamed
from tb_tidy_plugin.analysis.paths import analyse_files
from tb_tidy_plugin.cli.exit_codes import DONE, NOT_READ
from tb_tidy_plugin.cli.jobs import with_job_without_rules
from tb_tidy_plugin.cli.output import say_problems
from tb_tidy_plugin.cli.places import PLACE
from tb_tidy_plugin.cli.printed import say
from tb_tidy_plugin.cli.progress import progress_bar
from tb_tidy_plugin.render.annotated import Annotated, Row, annotated, asked, costs_by_file, is_called
from tb_tidy_plugin.render.terminal import plain
from tb_tidy_plugin.report.model import SCHEMA_VERSION
from tb_tidy_plugin.sources.lookup import FoundSources
from tb_tidy_plugin.trace.files import TraceFile, only_trace
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.words.visible import visible

N = TypeVar("N", bound=NotedAnswer)


@click.command(short_help="Print your sources with the cost of each line.")
@click.argument("path", type=PLACE)
@click.argument("file", required=False)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@with_job_without_rules
def annotate(job: Job, path: AnyPath, file: str | None, form: str) -> None:
    """Print the sources of the recording PATH with the cost of each line: all of your own files, or only FILE.

    PATH is a trace file, or a folder with exactly one. Times are per step, as in the ledger of `check`: each nanosecond
    of the step counts on one line, as forward, backward, optimizer, loading or other time. The backward pass counts on
    the lines whose gradients it computes. `total` adds the time of your own functions that a line calls. A `?` stands
    for the lines of a function that are not known. The last lines add everything up.

    JSON is `{"schema", "wall_ns", "step", "lines", "origin_ns", "operators"}`. `lines` is the table that the text
    shows: `[{"file", "line", "host_ns", "device_ns", "calls", "shared", "known_by", "total_ns", "ties", "forward_ns",
    "backward_ns", "optimizer_ns", "loading_ns", "other_ns"}]`. `total_ns` and the five passes are sums over the steps
    of the ledger. `step` is these steps, with the same passes: `{"steps", "ns", "functions", "elsewhere", …}`. Lines,
    `functions` (time on lines that are not known) and `elsewhere` (outside your own code) add up to it. `host_ns`,
    `device_ns` and `calls` are those of the calls on a line, with all that they call, over the whole recording, out of
    `wall_ns`. `ties` are other lines that fit equally well. `operators` is every operator called from user code:
    `[{"start_ns", "name", "file", "line", "end_line", "function", "precision", "tie", "generated"}]`, with `start_ns`
    from `origin_ns` on; `tie` lists equally likely lines. For kernels that `torch.compile` generated, `generated` says
    whether they belong to the forward or the backward pass, and which further lines they compute.

    Exit codes: 0 done, 2 the trace could not be read.
    """
    trace = only_trace(path, follow_links=job.follow_links)
    named = ShownNames(job).beside(str(trace.path))
    if form == "json":
        answer = _answer_to(PLACES, trace, job)
        places = answer.places
        by_file = asked(answer, file, named) if file else costs_by_file(answer)
        shown = Annotations(
            schema=SCHEMA_VERSION,
            origin_ns=places.origin_ns,
            wall_ns=answer.wall_ns,
            step=answer.step,
            lines=[cost for costs in by_file.values() for cost in costs],
            operators=[each for each in places.operators if file is None or is_called(each.file, file, named)],
        )
        click.echo(msgspec.json.format(msgspec.json.encode(renamed(shown, named)), indent=2).decode())
    else:
        lines = _answer_to(LINES, trace, job)
        sources = FoundSources(trace, job.source_roots, lines.captured)
        found = annotated(lines, file, sources, named)
        _say_notes(complaint for complaint in sources.complaints if complaint not in lines.notes)
        say(*_pages(found), no_wrap=True)
    sys.exit(DONE)


def _answer_to(question: Question[N], trace: TraceFile, job: Job) -> N:
    """The answer; prints its notes to stderr, and ends the process if nothing in the trace can be used."""
    with progress_bar(job) as watched:
        (found,) = analyse_files(watched, [trace], question)
    if found.answer is None:
        assert found.problem is not None
        say_problems([found.problem])
        sys.exit(NOT_READ)
    _say_notes(found.answer.notes)
    return found.answer


def _say_notes(notes: Iterable[str]) -> None:
    """Prints notes to stderr, since stdout may be JSON."""
    for note in notes:
        click.echo(f"note: {visible(note)}", err=True)


def _pages(found: Annotated) -> Iterator[RenderableType]:
    for page in found.files:
        yield plain(page.name)
        yield _table([(page.headings, "source"), *page.rows])
        yield Text()
    yield _table([(found.headings, ""), *found.sums])


def _table(rows: Sequence[Row]) -> Text:
    """Figures, right-aligned, before a line of text each; lines without figures are dim."""
    widths = [max(map(len, column)) for column in zip(*(figures for figures, _ in rows), strict=True)]
    page = Text()
    for figures, source in rows:
        cells = (figure.rjust(width) for figure, width in zip(figures, widths, strict=True))
        page.append("  ".join(cells) + "  " + plain(source).plain + "\n", "" if any(figures[1:]) else "dim")
    return page
