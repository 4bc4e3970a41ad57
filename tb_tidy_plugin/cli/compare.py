"""`tb-tidy compare`: what changed between two recordings, and whether fixes kept their promise."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console

from tb_tidy_plugin.cli.check import DONE, FAIL_ON_REACHED, NOTHING_READ, WIDTH_WITHOUT_TERMINAL
from tb_tidy_plugin.cli.configured import with_configuration
from tb_tidy_plugin.cli.progress import progress_bar
from tb_tidy_plugin.cli.sources import with_source_roots
from tb_tidy_plugin.compare.compare import compared
from tb_tidy_plugin.compare.markdown import to_markdown
from tb_tidy_plugin.compare.model import Comparison
from tb_tidy_plugin.compare.text import to_text
from tb_tidy_plugin.configuration.checks import checks_of
from tb_tidy_plugin.configuration.files import Configuration
from tb_tidy_plugin.report.summary import summary_of

REGRESSION = re.compile(r"regression(?::(\d+(?:\.\d+)?)%)?")


class FailOn(click.ParamType[float]):
    """`regression`, or `regression:3%`: the step may become so much longer."""

    name = "regression[:N%]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The allowed part of the step."""
        match = REGRESSION.fullmatch(str(value))
        if match is None:
            self.fail("Write `regression` or `regression:3%`.", param, ctx)
        return float(match[1] or 0) / 100


@click.command()
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@click.option(
    "--fail-on",
    type=FailOn(),
    help="Exit with 1 when steps became slower, noise allowed for; with `:N%` only when by more than this.",
)
@with_source_roots
@with_configuration
def compare(
    configuration: Configuration,
    base: Path,
    candidate: Path,
    form: str,
    fail_on: float | None,
    source_roots: tuple[Path, ...],
) -> None:
    """Compare the recording CANDIDATE with BASE: trace files, run folders or logdirs.

    Says whether steps became faster, which findings are gone, new, better or worse, and what fixes were expected to
    save against what they did. Findings are matched by rule, function and the text of their lines, so that lines may
    have moved. Noise from step to step and between recordings is allowed for: "no clear difference" is an answer.

    Exit codes: 0 done, 1 `--fail-on` reached, 2 one of the two could not be read.
    """
    checks = checks_of(configuration)
    with progress_bar() as progress:
        before, after = (
            summary_of(path, checks.of_profiles, progress, checks.ignores, source_roots) for path in (base, candidate)
        )
    for path, side in ((base, before), (candidate, after)):
        if not side.profiles:
            click.echo(f"tb-tidy: nothing in `{path}` could be read.", err=True)
            sys.exit(NOTHING_READ)
    comparison = compared(before, after, str(base), str(candidate))
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(comparison), indent=2).decode())
    elif form == "markdown":
        click.echo(to_markdown(comparison), nl=False)
    else:
        console = Console() if sys.stdout.isatty() else Console(width=WIDTH_WITHOUT_TERMINAL)
        console.print(to_text(comparison))
    sys.exit(_exit_code(comparison, fail_on))


def _exit_code(comparison: Comparison, fail_on: float | None) -> int:
    """A regression is one only where the whole interval lies above 1, and the ratio above what is allowed."""
    if fail_on is None or comparison.verdict != "slower" or comparison.step_ratio is None:
        return DONE
    return FAIL_ON_REACHED if comparison.step_ratio.value > 1 + fail_on else DONE
