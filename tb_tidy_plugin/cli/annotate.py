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
from tb_tidy_plugin.analysis.lines import Annotations, LineCost
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

    PATH is a trace file, or a folder with exactly one. A line's time is that of all calls on it, including everything
    that they call, over the whole recording. So the lines of a function add up to the times on its callers' lines.

    JSON is `{"schema", "wall_ns", "lines", "origin_ns", "operators"}`. `lines` is the table that the text shows:
    `[{"file", "line", "host_ns", "device_ns", "calls", "shared", "known_by"}]`, out of `wall_ns`. `operators` is every
    operator called from user code: `[{"start_ns", "name", "file", "line", "end_line", "function", "precision", "tie",
    "generated"}]`, with `start_ns` from `origin_ns` on; `tie` lists equally likely lines. For kernels that
    `torch.compile` generated, `generated` says whether they belong to the forward or the backward pass, and which
    further lines they compute.

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
            lines=[cost for costs in by_file.values() for cost in costs],
            operators=[each for each in places.operators if file is None or _is_called(each.file, file, named)],
        )
        click.echo(msgspec.json.format(msgspec.json.encode(renamed(shown, named)), indent=2).decode())
    else:
        lines = _answer_to(LINES, trace, job)
        sources = FoundSources(trace, job.source_roots, lines.captured)
        pages = list(_pages(_asked(lines, file, named), sources, lines.wall_ns, named))
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
    return dict(sorted(by_file.items(), key=lambda each: -max(line.host_ns for line in each[1])))


def _is_called(name: str, file: str, named: Callable[[str], str]) -> bool:
    """True if a recorded file is the one that the user named, possibly by the end of its path."""
    return any(f"/{each}".endswith(f"/{file}") for each in (name, named(name)))


def _how(answer: LineCostsAnswer) -> str:
    if not answer.has_stacks:
        return "Record with `with_stack=True`."
    return "Name the folder of the sources with `--source-root DIR`; they must be unchanged since the recording."


def _pages(
    files: dict[str, list[LineCost]], sources: Sources, wall_ns: int, named: Callable[[str], str]
) -> Iterator[RenderableType]:
    has_device = any(cost.device_ns for costs in files.values() for cost in costs)
    for name, costs in files.items():
        yield plain(named(name))
        yield _page(sources(name) or [], {cost.line: cost for cost in costs}, wall_ns, has_device=has_device)
        yield Text()


def _page(lines: Sequence[str], costs: dict[int, LineCost], wall_ns: int, *, has_device: bool) -> Text:
    headings = ["line", "time", "share", *(["device"] if has_device else []), "calls"]
    rows: list[tuple[list[str], str]] = [(headings, "source")]
    last = 0
    for number in sorted(shown for line in costs for shown in range(line - _AROUND, line + _AROUND + 1)):
        if last < number <= len(lines):
            if number > last + 1:
                rows.append(([""] * len(headings), ""))
            last, cost = number, costs.get(number)
            figures = _figures(cost, wall_ns, has_device=has_device) if cost else [""] * (len(headings) - 1)
            rows.append(([str(number), *figures], lines[number - 1] + _remark(cost)))
    widths = [max(map(len, column)) for column in zip(*(figures for figures, _ in rows), strict=True)]
    page = Text()
    for figures, source in rows:
        cells = (figure.rjust(width) for figure, width in zip(figures, widths, strict=True))
        page.append("  ".join(cells) + "  " + plain(source).plain + "\n", "" if any(figures[1:]) else "dim")
    return page


def _remark(cost: LineCost | None) -> str:
    """A remark on kernels that compute several lines, and on replayed graphs."""
    if cost is None:
        return ""
    shared = [f"shared by {cost.shared} lines"] if cost.shared > 1 else []
    replayed = [f"replayed: {KNOWN_BY_WORDS[cost.known_by]}"] if cost.known_by else []
    return f"  # {', '.join(shared + replayed)}" if shared or replayed else ""


def _figures(cost: LineCost, wall_ns: int, *, has_device: bool) -> list[str]:
    device = [str(Nanoseconds(cost.device_ns)) if cost.device_ns else ""] if has_device else []
    share = part_text(min(cost.host_ns / wall_ns, 1.0)) if wall_ns else ""
    return [str(Nanoseconds(cost.host_ns)), share, *device, str(cost.calls)]
