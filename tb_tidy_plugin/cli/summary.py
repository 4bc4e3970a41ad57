"""`tb-tidy summary`: time and memory of a trace, a run or a logdir."""

from __future__ import annotations

import sys
from typing import get_args

import click
import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.named import ShownNames, renamed
from tb_tidy_plugin.analysis.summary import summary_of
from tb_tidy_plugin.cli.exit_codes import code_of
from tb_tidy_plugin.cli.jobs import with_job
from tb_tidy_plugin.cli.output import print_document
from tb_tidy_plugin.cli.places import with_paths
from tb_tidy_plugin.cli.progress import progress_bar
from tb_tidy_plugin.render.summary import SummaryOptions, summary_document
from tb_tidy_plugin.report.figures import OperatorGroup
from tb_tidy_plugin.report.model import has_unread
from tb_tidy_plugin.trace.remote import AnyPath

_GROUPS: tuple[OperatorGroup, ...] = get_args(OperatorGroup)


@click.command(short_help="Show where time and memory go.")
@with_paths
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--group",
    type=click.Choice(_GROUPS),
    default="name",
    show_default=True,
    help="Group operators by this, in text. `line` also finds the lines inside functions, which takes longer.",
)
@click.option(
    "--top",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Rows of each table, in text.",
)
@with_job
def summary(job: Job, path: tuple[AnyPath, ...], form: str, group: OperatorGroup, top: int) -> None:
    """Show where time and memory go in PATH: a trace file, a run folder or a logdir, or several.

    The summary shows steps and their parts, operators, modules, memory and CPU work. JSON has all rows of all tables:
    `profiles` is a list of `{"run": …, "report": …, "figures": …}`, where `report` is a profile as
    `tb-tidy check --format json` prints it and `figures` holds the tables that the page shows.

    Exit codes: 0 done, 2 a trace could not be read.
    """
    with progress_bar(job) as watched:
        found = summary_of(path, watched, by_line=group == "line")
    names = ShownNames(job)
    found = replace(found, profiles=[renamed(each, names.beside(each.report.path)) for each in found.profiles])
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        print_document(summary_document(found, SummaryOptions(group, top)))
    sys.exit(code_of(found=False, unread=has_unread(found.problems)))
