"""`tb-tidy annotate`: the user's own source files with what each line costs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec
from rich.console import RenderableType
from rich.text import Text

from tb_tidy_plugin.analysis.lines import LineCost, line_costs, operator_places
from tb_tidy_plugin.cli.check import DONE, NOTHING_READ
from tb_tidy_plugin.cli.configured import with_limits
from tb_tidy_plugin.cli.places import PLACE, with_links
from tb_tidy_plugin.cli.printed import say
from tb_tidy_plugin.cli.sources import with_source_roots
from tb_tidy_plugin.errors import NotFoundError, TraceError
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.render.terminal import plain
from tb_tidy_plugin.sources.align import Aligner, Sources
from tb_tidy_plugin.sources.lookup import sources_of
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.files import TraceFile, find_traces
from tb_tidy_plugin.trace.limits import Limits, held_to
from tb_tidy_plugin.trace.remote import Place
from tb_tidy_plugin.units import Nanoseconds, Share
from tb_tidy_plugin.visible import visible

AROUND = 2  # lines without cost that are shown between lines with one; more are left out


@click.command(short_help="Print your sources with what each line costs.")
@click.argument("path", type=PLACE)
@click.argument("file", required=False)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@with_links
@with_source_roots
@with_limits
def annotate(
    path: Place, file: str | None, form: str, source_roots: tuple[Path, ...], limits: Limits, follow_links: bool
) -> None:
    """Print the sources of the recording PATH with what each line costs: all files of the user's own, or FILE.

    PATH is a trace file, or a folder that holds exactly one. A line's time is that of the calls on it, with all that
    they call in turn, over the whole recording; so the lines of a function add up to what its callers' lines show.

    JSON is `{"origin_ns", "operators": [{"start_ns", "name", "file", "line", "end_line", "function", "precision",
    "tie"}]}`: every operator called from user code, with the lines that are as likely in `tie`.

    Exit codes: 0 done, 2 nothing could be read.
    """
    trace = _only(path, follow_links=follow_links)
    try:
        with held_to(limits):
            profile = Profile(read_with_side_files(trace.path, limits=limits))
            sources = sources_of(trace, source_roots, profile.metadata.captured.sources)
            aligner = Aligner(profile, sources)
            places = operator_places(profile, aligner) if form == "json" else None
            costs = line_costs(profile, aligner).lines if form == "text" else ()
    except TraceError as problem:
        click.echo(f"{visible(str(trace.path))}: {visible(problem.error)}\n{problem.advice}", err=True)
        sys.exit(NOTHING_READ)
    for note in (*profile.metadata.notes, *sources.complaints):
        click.echo(f"note: {visible(note)}", err=True)  # beside the output, which may be JSON
    if places is not None:
        click.echo(msgspec.json.format(msgspec.json.encode(places), indent=2).decode())
    else:
        say(*_pages(_asked(costs, file, profile), sources, profile.time_spent.wall_ns), no_wrap=True)
    sys.exit(DONE)


def _only(path: Place, *, follow_links: bool) -> TraceFile:
    """The only trace at `path`.

    Raises:
        NotFoundError: there is none, or there are several.
    """
    found = find_traces(path, follow_links=follow_links)
    if len(found) > 1:
        names = ", ".join(f"`{each.path}`" for each in found[:3])
        raise NotFoundError(f"`{path}` holds {len(found)} traces: {names} …", "Name one of them.")
    return found[0]


def _asked(costs: Sequence[LineCost], file: str | None, profile: Profile) -> dict[str, list[LineCost]]:
    """The costs by file, most time first; of one file where it is named, by its end if need be."""
    by_file: dict[str, list[LineCost]] = {}
    for cost in costs:
        by_file.setdefault(cost.file, []).append(cost)
    if file is not None:
        by_file = {name: lines for name, lines in by_file.items() if name == file or name.endswith(f"/{file}")}
        if not by_file:
            raise NotFoundError(f"No line of `{file}` was recorded, or its source was not found.", _how(profile))
    if not by_file:
        raise NotFoundError("No line of the user's own code could be found.", _how(profile))
    return dict(sorted(by_file.items(), key=lambda each: -max(line.host_ns for line in each[1])))


def _how(profile: Profile) -> str:
    if "stacks" not in profile.recorded:
        return "Record with `with_stack=True`."
    return "Say where the sources are with `--source-root DIR`; they must be as they were when recorded."


def _pages(files: dict[str, list[LineCost]], sources: Sources, wall_ns: int) -> Iterator[RenderableType]:
    has_device = any(cost.device_ns for costs in files.values() for cost in costs)
    for name, costs in files.items():
        yield plain(name)
        yield _page(sources(name) or [], {cost.line: cost for cost in costs}, wall_ns, has_device=has_device)
        yield Text()


def _page(lines: Sequence[str], costs: dict[int, LineCost], wall_ns: int, *, has_device: bool) -> Text:
    headings = ["line", "time", "share", *(["device"] if has_device else []), "calls"]
    rows: list[tuple[list[str], str]] = [(headings, "source")]
    last = 0
    for number in sorted(shown for line in costs for shown in range(line - AROUND, line + AROUND + 1)):
        if last < number <= len(lines):
            if number > last + 1:
                rows.append(([""] * len(headings), ""))
            last, cost = number, costs.get(number)
            figures = _figures(cost, wall_ns, has_device=has_device) if cost else [""] * (len(headings) - 1)
            rows.append(([str(number), *figures], lines[number - 1]))
    widths = [max(map(len, column)) for column in zip(*(figures for figures, _ in rows), strict=True)]
    page = Text()
    for figures, source in rows:
        cells = (figure.rjust(width) for figure, width in zip(figures, widths, strict=True))
        page.append("  ".join(cells) + "  " + plain(source).plain + "\n", "" if any(figures[1:]) else "dim")
    return page


def _figures(cost: LineCost, wall_ns: int, *, has_device: bool) -> list[str]:
    device = [str(Nanoseconds(cost.device_ns)) if cost.device_ns else ""] if has_device else []
    share = str(Share(cost.host_ns / wall_ns)) if wall_ns else ""
    return [str(Nanoseconds(cost.host_ns)), share, *device, str(cost.calls)]
