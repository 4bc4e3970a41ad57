"""`tb-tidy compare`: changes between two recordings, and predicted against realised savings."""

from __future__ import annotations

import re
import sys
from typing import Literal

import click
import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.named import ShownNames
from tb_tidy_plugin.cli.exit_codes import NOT_READ, code_of
from tb_tidy_plugin.cli.jobs import with_job
from tb_tidy_plugin.cli.output import as_text, print_document
from tb_tidy_plugin.cli.places import PLACE, ArgumentType
from tb_tidy_plugin.cli.progress import progress_bar
from tb_tidy_plugin.compare.compare import compared
from tb_tidy_plugin.compare.model import Comparison, first_rows
from tb_tidy_plugin.compare.reading import asked_for, named
from tb_tidy_plugin.compare.recording import StepRange, StepsError, step_range
from tb_tidy_plugin.compare.steps import verdict_of
from tb_tidy_plugin.render.comparison import comparison_document
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.words.visible import visible

_MOST_ROWS = 200  # of operators and of kernels
REGRESSION = re.compile(r"regression(?::(\d+(?:\.\d+)?)%)?")


class FailOn(ArgumentType[float]):
    """`regression`, or `regression:3%`: the allowed increase of the step."""

    name = "regression[:N%]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The allowed increase as a part of the step."""
        match = REGRESSION.fullmatch(str(value))
        if match is None:
            self.fail("Write `regression` or `regression:3%`.", param, ctx)
        return float(match[1] or 0) / 100


class _Steps(ArgumentType[StepRange]):
    """`3-7`, or `5`."""

    name = "steps"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> StepRange:
        try:
            return step_range(str(value))
        except StepsError as problem:
            self.fail(str(problem), param, ctx)


@click.command(short_help="Compare two recordings, or steps of one.")
@click.argument("base", type=PLACE)
@click.argument("candidate", type=PLACE, required=False)
@click.option("--steps", type=_Steps(), metavar="3-7", help="Only these steps of BASE, by the numbers in their names.")
@click.option(
    "--with",
    "other_steps",
    type=_Steps(),
    metavar="8-12",
    help="Only these steps of CANDIDATE, or of BASE if there is no CANDIDATE.",
)
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@click.option(
    "--fail-on",
    type=FailOn(),
    help="Exit with 1 if steps became slower, beyond the noise; with `:N%` only if by more than this.",
)
@with_job
def compare(
    job: Job,
    base: AnyPath,
    candidate: AnyPath | None,
    steps: StepRange | None,
    other_steps: StepRange | None,
    form: Literal["text", "json", "markdown"],
    fail_on: float | None,
) -> None:
    """Compare the recording CANDIDATE with BASE: trace files, run folders or logdirs.

    With `--steps` and `--with`, compare some steps with others, of BASE alone or of both. Without them all steps count
    except warm-up steps.

    The output says whether steps became faster, which findings are gone, new, better or worse, and how much the fixes
    were expected to save and did save. Findings are matched by rule, function and the text of their lines, so lines may
    have moved. The comparison accounts for noise between steps and between recordings: "no clear difference" is a
    possible answer.

    Exit codes: 0 done, 1 `--fail-on` reached, 2 a trace could not be read.
    """
    if candidate is None and (steps is None or other_steps is None):
        raise click.UsageError("Give a CANDIDATE, or two ranges of steps of one recording: --steps 3-7 --with 8-12.")
    with progress_bar(job) as watched:
        before = asked_for(base, watched, steps)
        after = replace(before, steps=other_steps) if candidate is None else asked_for(candidate, watched, other_steps)
    for side in (before, after):
        if not side.recordings:
            why = f" {visible(side.problem.error)}\n{visible(side.problem.advice)}" if side.problem else ""
            click.echo(f"tb-tidy: nothing in `{visible(side.path)}` could be read.{why}", err=True)
            sys.exit(NOT_READ)
    comparison = named(first_rows(compared(before, after), _MOST_ROWS), before, after, ShownNames(job))
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(comparison), indent=2).decode())
    elif form == "markdown":
        click.echo(as_text(comparison_document(comparison, form), form), nl=False)
    else:
        print_document(comparison_document(comparison, form))
    sys.exit(code_of(found=_is_slower(comparison, fail_on), unread=bool(before.lost + after.lost)))


def _is_slower(comparison: Comparison, fail_on: float | None) -> bool:
    """A regression needs a whole interval above 1, and a ratio above the allowed one; per unit of other work."""
    if fail_on is None or comparison.step_ratio is None:
        return False
    ratio = comparison.step_ratio
    if comparison.work is not None:
        if comparison.work.time_per_unit is None:
            click.echo("tb-tidy: the work per step changed, so `--fail-on` cannot tell whether it is slower.", err=True)
            return False
        ratio = comparison.work.time_per_unit
    return verdict_of(ratio) == "slower" and ratio.value > 1 + fail_on
