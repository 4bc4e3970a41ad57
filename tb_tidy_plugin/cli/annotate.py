"""`tb-tidy annotate`: the user's source files with the cost of each line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import click
import msgspec
from rich.console import RenderableType
from rich.text import Text

from tb_tidy_plugin.analysis.answers import Question
from tb_tidy_plugin.analysis.detailed_answers import LINES, PLACES, LineCostsAnswer, NotedAnswer
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.lines import (
    PASSES,
    Annotations,
    FunctionTime,
    LineCost,
    PassTime,
    StepTime,
    summed,
)
from tb_tidy_plugin.analysis.named import ShownNames, renamed
from tb_tidy_plugin.analysis.paths import analyse_files
from tb_tidy_plugin.cli.exit_codes import DONE, NOT_READ
from tb_tidy_plugin.cli.jobs import with_job_without_rules
from tb_tidy_plugin.cli.output import say_problems
from tb_tidy_plugin.cli.places import PLACE
from tb_tidy_plugin.cli.printed import say
from tb_tidy_plugin.cli.progress import progress_bar
from tb_tidy_plugin.render.terminal import plain
from tb_tidy_plugin.report.model import SCHEMA_VERSION
from tb_tidy_plugin.sources.align import Sources
from tb_tidy_plugin.sources.lookup import FoundSources
from tb_tidy_plugin.trace.files import TraceFile, find_traces
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.words.errors import NotFoundError
from tb_tidy_plugin.words.units import Nanoseconds, part_text
from tb_tidy_plugin.words.visible import visible
from tb_tidy_plugin.words.vocabulary import KNOWN_BY_WORDS

N = TypeVar("N", bound=NotedAnswer)

_AROUND = 2  # lines without cost around lines with one; more are left out


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
    trace = _only(path, follow_links=job.follow_links)
    named = ShownNames(job).beside(str(trace.path))
    if form == "json":
        answer = _answer_to(PLACES, trace, job)
        places = answer.places
        by_file = _asked(answer, file, named) if file else _by_file(answer)
        shown = Annotations(
            schema=SCHEMA_VERSION,
            origin_ns=places.origin_ns,
            wall_ns=answer.wall_ns,
            step=answer.step,
            lines=[cost for costs in by_file.values() for cost in costs],
            operators=[each for each in places.operators if file is None or _is_called(each.file, file, named)],
        )
        click.echo(msgspec.json.format(msgspec.json.encode(renamed(shown, named)), indent=2).decode())
    else:
        lines = _answer_to(LINES, trace, job)
        sources = FoundSources(trace, job.source_roots, lines.captured)
        pages = list(_pages(_asked(lines, file, named), sources, lines.step, named))
        _say_notes(complaint for complaint in sources.complaints if complaint not in lines.notes)
        say(*pages, no_wrap=True)
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


def _only(path: AnyPath, *, follow_links: bool) -> TraceFile:
    """The only trace at `path`.

    Raises:
        NotFoundError: there is none, or there are several.
    """
    found = find_traces(path, follow_links=follow_links)
    if len(found) > 1:
        names = ", ".join(f"`{each.path}`" for each in found[:3])
        raise NotFoundError(f"`{path}` contains {len(found)} traces: {names} … …", "Name one of them.")
    return found[0]


def _asked(answer: LineCostsAnswer, file: str | None, named: Callable[[str], str]) -> dict[str, list[LineCost]]:
    """The costs by recorded file, most time first; of one file if it is named, possibly by the end of its path.

    Raises:
        NotFoundError: there are none.
    """
    by_file = _by_file(answer)
    if file is not None:
        by_file = {name: lines for name, lines in by_file.items() if _is_called(name, file, named)}
        if not by_file:
            raise NotFoundError(f"No line of `{file}` was recorded, or its source was not found.", _how(answer))
    if not by_file:
        raise NotFoundError("No line of your own code could be found.", _how(answer))
    return by_file


def _by_file(answer: LineCostsAnswer) -> dict[str, list[LineCost]]:
    """The costs by file, most time first."""
    by_file: dict[str, list[LineCost]] = {}
    for cost in answer.costs:
        by_file.setdefault(cost.file, []).append(cost)
    return dict(
        sorted(by_file.items(), key=lambda each: max((line.total_ns, line.host_ns) for line in each[1]), reverse=True)
    )


def _is_called(name: str, file: str, named: Callable[[str], str]) -> bool:
    """True if a recorded file is the one that the user named, possibly by the end of its path."""
    return any(f"/{each}".endswith(f"/{file}") for each in (name, named(name)))


def _how(answer: LineCostsAnswer) -> str:
    if not answer.has_stacks:
        return "Record with `with_stack=True`."
    return "Name the folder of the sources with `--source-root DIR`; they must be unchanged since the recording."


def _pages(
    files: dict[str, list[LineCost]], sources: Sources, step: StepTime, named: Callable[[str], str]
) -> Iterator[RenderableType]:
    shown = [name for name in PASSES if getattr(step, name)]
    above = list[PassTime]()
    for name, costs in files.items():
        functions = [each for each in step.functions if each.file == name]
        above += [*costs, *functions]
        yield plain(named(name))
        yield _page(sources(name) or [], {cost.line: cost for cost in costs}, functions, step, shown)
        yield Text()
    yield _sums(summed(above), step, shown)


def _page(
    lines: Sequence[str],
    costs: dict[int, LineCost],
    functions: Sequence[FunctionTime],
    step: StepTime,
    shown: Sequence[str],
) -> Text:
    headings = ["line", *_headings("total", shown), "calls"]
    rows: list[tuple[list[str], str]] = [(headings, "source")]
    last = 0
    for number in sorted(near for line in costs for near in range(line - _AROUND, line + _AROUND + 1)):
        if last < number <= len(lines):
            if number > last + 1:
                rows.append(([""] * len(headings), ""))
            last, cost = number, costs.get(number)
            figures = _figures(cost.total_ns, cost, step, shown) if cost else [""] * (len(headings) - 2)
            calls = str(cost.calls) if cost and cost.calls else ""
            rows.append(([str(number), *figures, calls], lines[number - 1] + _remark(cost)))
    rows += [
        (["?", *_figures(each.own_ns, each, step, shown), ""], f"# in {each.function}, line not known")
        for each in functions
    ]
    return _table(rows)


def _sums(above: PassTime, step: StepTime, shown: Sequence[str]) -> Text:
    """The time above, in other files of the user's own, and outside them; it adds up to the step."""
    others = step.less(above, step.elsewhere)
    length = "1 step" if step.steps == 1 else f"1 of {step.steps} steps, on average"
    parts = (("above", above), ("your other files", others), ("outside your files", step.elsewhere))
    rows = [(_figures(each.own_ns, each, step, shown), name) for name, each in parts if each.own_ns]
    return _table([(_headings("time", shown), ""), *rows, (_figures(step.own_ns, step, step, shown), length)])


def _table(rows: Sequence[tuple[list[str], str]]) -> Text:
    """Figures, right-aligned, before a line of text each; lines without figures are dim."""
    widths = [max(map(len, column)) for column in zip(*(figures for figures, _ in rows), strict=True)]
    page = Text()
    for figures, source in rows:
        cells = (figure.rjust(width) for figure, width in zip(figures, widths, strict=True))
        page.append("  ".join(cells) + "  " + plain(source).plain + "\n", "" if any(figures[1:]) else "dim")
    return page


def _remark(cost: LineCost | None) -> str:
    """A remark on lines that fit as well, on kernels that compute several lines, and on replayed graphs."""
    if cost is None:
        return ""
    tied = [f"or line {' or '.join(map(str, cost.ties))}"] if cost.ties else []
    shared = [f"shared by {cost.shared} lines"] if cost.shared > 1 else []
    replayed = [f"replayed: {KNOWN_BY_WORDS[cost.known_by]}"] if cost.known_by else []
    remarks = ", ".join(tied + shared + replayed)
    return f"  # {remarks}" if remarks else ""


def _headings(first: str, shown: Sequence[str]) -> list[str]:
    return [first, "share", *(name.removesuffix("_ns") for name in shown)]


def _figures(total_ns: int, cost: PassTime, step: StepTime, shown: Sequence[str]) -> list[str]:
    """The total per step and its share, and the time of each pass; empty for none."""
    share = part_text(min(total_ns / step.ns, 1.0)) if total_ns else ""
    times = (total_ns, *(getattr(cost, name) for name in shown))
    total, *passes = (str(Nanoseconds(round(each / step.steps))) if each else "" for each in times)
    return [total, share, *passes]
