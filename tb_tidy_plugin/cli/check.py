"""`tb-tidy check`: the report on a trace, a run or a logdir."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import click
import msgspec

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.named import ShownNames
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.cli.exit_codes import code_of
from tb_tidy_plugin.cli.jobs import with_job
from tb_tidy_plugin.cli.output import as_text, print_document, write_output
from tb_tidy_plugin.cli.places import with_paths
from tb_tidy_plugin.cli.progress import progress_bar
from tb_tidy_plugin.render.document import Form
from tb_tidy_plugin.report.json import to_json
from tb_tidy_plugin.report.model import Report, has_unread
from tb_tidy_plugin.report.value import Severity
from tb_tidy_plugin.trace.remote import AnyPath

if TYPE_CHECKING:
    from tb_tidy_plugin.compare.baseline import FindingsBaseline

WITH_CHANGES = frozenset({"json", "sarif", "html"})
"""Formats that show code changes; the others name the command that makes them."""

_Form: TypeAlias = Form | Literal["json", "sarif"]

OUTPUT_FORMS = ("text", "json", "markdown", "sarif", "html")

SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")


def _also(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> tuple[tuple[_Form, Path], ...]:
    found: list[tuple[_Form, Path]] = []
    for form, separator, file in (each.partition("=") for each in given):
        if form not in OUTPUT_FORMS or not separator or not file:
            raise click.BadParameter(f"Give FORMAT=FILE, with one of {', '.join(OUTPUT_FORMS)}.")
        found.append((cast("_Form", form), Path(file)))
    return tuple(found)


@click.command(short_help="Report the anti-patterns in traces.")
@with_paths
@click.option(
    "--format",
    "form",
    type=click.Choice(OUTPUT_FORMS),
    default="text",
    show_default=True,
    help="markdown suits comments on pull requests, sarif code hosts, and html is a standalone page to send or print.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to this file, all or nothing.",
)
@click.option(
    "--also",
    multiple=True,
    callback=_also,
    metavar="FORMAT=FILE",
    help="Also write the report in this format to FILE, from the same reading; can be repeated.",
)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES[:3], case_sensitive=False),
    help="Exit with 1 if there is a finding of this severity or higher: its fix saves 5 % (high) or 1 % (medium) of a "
    "step, or less (low).",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="For `--fail-on`, count only findings that are not in FILE.",
)
@click.option(
    "--write-baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write all findings to FILE, also those below a limit.",
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="In text, also list the rules that passed or were not checked, and all of many ranks.",
)
@click.option("--bench", is_flag=True, help="First measure how much the fixes save here, like `tb-tidy bench`.")
@with_job
def check(
    job: Job,
    path: tuple[AnyPath, ...],
    verbose: bool,
    bench: bool,
    form: _Form,
    output: Path | None,
    also: tuple[tuple[_Form, Path], ...],
    fail_on: Severity | None,
    baseline: Path | None,
    write_baseline: Path | None,
) -> None:
    """Report the anti-patterns in PATH: a trace file, a run folder or a logdir, or several, analysed together.

    Exit codes: 0 done, 1 `--fail-on` reached, 2 a trace could not be read.
    """
    known = None if baseline is None else _read_baseline(baseline)
    if bench:
        from tb_tidy_plugin.cli.bench import bench_for_report

        bench_for_report(path, job)
    with progress_bar(job) as watched:
        report = analyze_path(path, watched, with_changes=not WITH_CHANGES.isdisjoint({form, *dict(also)}))
    if write_baseline is not None:
        from tb_tidy_plugin.compare.baseline import baseline_of
        from tb_tidy_plugin.compare.reading import left_out_at

        known_now = baseline_of(report, left_out_at(path, job))
        text = msgspec.json.format(msgspec.json.encode(known_now), indent=1).decode()
        write_output(write_baseline, f"{text}\n")
    shown = ShownNames(job).report(report)
    for each, file in also:
        write_output(file, _written(shown, job, each, verbose))
    if output is not None:
        write_output(output, _written(shown, job, form, verbose))
    elif form == "text":
        from tb_tidy_plugin.render.report import report_document

        print_document(report_document(shown, "text", verbose=verbose))
    else:
        click.echo(_written(shown, job, form, verbose), nl=False)
    sys.exit(code_of(found=_is_reached(report, fail_on, known), unread=has_unread(report.problems)))


def _written(report: Report, job: Job, form: _Form, verbose: bool) -> str:
    """The report as the text of a file."""
    if form == "json":
        return to_json(report)
    if form == "sarif":
        from tb_tidy_plugin.report.sarif import to_sarif

        return to_sarif(report, [type(rule) for rule in job.rules])
    from tb_tidy_plugin.render.report import report_document

    return as_text(report_document(report, form, verbose=verbose), form)


def _read_baseline(file: Path) -> FindingsBaseline:
    from tb_tidy_plugin.compare.baseline import read_baseline

    return read_baseline(file)


def _is_reached(report: Report, fail_on: Severity | None, known: FindingsBaseline | None) -> bool:
    """True if there is a finding of this severity or a higher one; only findings that are not `known` count."""
    if fail_on is None:
        return False
    from tb_tidy_plugin.compare.baseline import all_findings, new_findings

    counted = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    new = None if known is None else new_findings(report, known)
    return any(each.severity in counted and (new is None or each.id in new) for each in all_findings(report))
