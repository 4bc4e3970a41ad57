"""`tb-tidy check`: the report on a trace, a run or a logdir."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from tb_tidy_plugin.cli.progress import progress_bar
from tb_tidy_plugin.cli.rules import chosen_rules
from tb_tidy_plugin.report.assemble import analyze_path
from tb_tidy_plugin.report.json import to_json
from tb_tidy_plugin.report.model import Report, Severity
from tb_tidy_plugin.report.text import to_text

SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")
DONE, FAIL_ON_REACHED, NOTHING_READ = 0, 1, 2
WIDTH_WITHOUT_TERMINAL = 100


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES[:3]),
    help="Exit with 1 when a finding of this severity or a higher one is there.",
)
@click.option(
    "--rule", "names", multiple=True, metavar="RULE", help="Check only this rule; may be given several times."
)
def check(path: Path, form: str, fail_on: Severity | None, names: tuple[str, ...]) -> None:
    """Report the anti-patterns in PATH: a trace file, a run folder or a logdir.

    Exit codes: 0 done, 1 `--fail-on` reached, 2 nothing could be read.
    """
    with progress_bar() as progress:
        report = analyze_path(path, [rule() for rule in chosen_rules(names)], progress)
    if form == "json":
        click.echo(to_json(report), nl=False)
    else:
        console = Console() if sys.stdout.isatty() else Console(width=WIDTH_WITHOUT_TERMINAL)
        console.print(to_text(report))
    sys.exit(_exit_code(report, fail_on))


def _exit_code(report: Report, fail_on: Severity | None) -> int:
    if not report.runs:
        return NOTHING_READ
    if fail_on is None:
        return DONE
    counted = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    findings = (finding for run in report.runs for profile in run.profiles for finding in profile.findings)
    return FAIL_ON_REACHED if any(finding.severity in counted for finding in findings) else DONE
