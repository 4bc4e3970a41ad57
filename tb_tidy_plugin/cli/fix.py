"""`tb-tidy fix`: the fixes of findings in the user's own code, as diffs or written into the files."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click
import msgspec

from tb_tidy_plugin import __version__
from tb_tidy_plugin.analysis.answers import FIXES
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.named import ShownNames, renamed
from tb_tidy_plugin.analysis.paths import analyse
from tb_tidy_plugin.analysis.runs import run_report
from tb_tidy_plugin.cli.exit_codes import code_of
from tb_tidy_plugin.cli.jobs import with_job
from tb_tidy_plugin.cli.output import say_problems
from tb_tidy_plugin.cli.places import with_paths
from tb_tidy_plugin.cli.progress import progress_bar
from tb_tidy_plugin.fixes.installed import has_libcst
from tb_tidy_plugin.report.fix_model import Fixes, Unfixed
from tb_tidy_plugin.report.model import SCHEMA_VERSION, Problem, Report, RunReport, has_unread
from tb_tidy_plugin.sources.files import BOM, OwnFile
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.words.errors import TidyError
from tb_tidy_plugin.words.units import Nanoseconds, plural
from tb_tidy_plugin.words.visible import visible

if TYPE_CHECKING:
    from tb_tidy_plugin.analysis.fixing import Proposal

FIX_OPTIONS = ("--reviewed", "--unsafe-fixes")
_MARK = BOM.decode()


@click.command(short_help="Print or write fixes in your own code.")
@with_paths
@click.option("--apply", is_flag=True, help="Write the fixes that need no review and do not change behaviour.")
@click.option("--reviewed", is_flag=True, help="With --apply: also write fixes that need review.")
@click.option("--unsafe-fixes", "unsafe", is_flag=True, help="With --apply: also write fixes that change behaviour.")
@click.option("--safe-only", is_flag=True, help="Only fixes that keep results the same and need no review.")
@click.option("--format", "form", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True)
@with_job
def fix(
    job: Job, path: tuple[AnyPath, ...], apply: bool, reviewed: bool, unsafe: bool, safe_only: bool, form: str
) -> None:
    """Print the fixes of the findings in PATH as diffs of your own files: trace files, run folders or logdirs.

    `git apply` takes them in the root of the repository. `--apply` writes them to files in the current folder or under
    a `--source-root` that are unchanged since the recording.

    Exit codes: 0 done, 1 `--apply` could not write a fix, 2 a trace could not be read.
    """
    if not has_libcst():
        raise TidyError("`tb-tidy fix` needs LibCST.", "Run `pip install 'tb-tidy-plugin[fix]'`.")
    from tb_tidy_plugin.analysis.fixing import FixRequest, written

    report, proposals, unfixed = _found(path, job)
    names = ShownNames(job)
    left_out = ""
    left: list[Proposal] = []
    if safe_only:
        left = [each for each in proposals if not each.is_safe]
        proposals = [each for each in proposals if each.is_safe]
        left_out = f"{plural(len(left), 'fix is', 'fixes are')} left out by `--safe-only`."
    done: list[Proposal] = []
    failed: list[Unfixed] = []
    if apply:
        asked = FixRequest(reviewed, unsafe)
        done, failed = written([each for each in proposals if asked.includes(each)])
        if not safe_only:
            left = [each for each in proposals if not asked.includes(each)]
            left_out = _left_out(Counter(asked.lacks(each, FIX_OPTIONS) for each in left))
    unfixed = [renamed(each, names.of) for each in (*unfixed, *failed)]
    if form == "sarif":
        from tb_tidy_plugin.report.sarif import to_sarif

        kinds = [type(rule) for rule in job.rules]
        click.echo(to_sarif(names.report(report), kinds, [each.shown(names) for each in proposals]), nl=False)
    elif form == "json":
        answer = Fixes(
            schema=SCHEMA_VERSION,
            version=__version__,
            fixes=[each.shown(names) for each in proposals],
            unfixed=unfixed,
            problems=report.problems,
            written=_paths(done),
            left_out=len(left),
        )
        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())
    else:
        say_problems(report.problems)
        _say(proposals, unfixed, done, names)
        if left:
            click.echo(left_out)
        elif not proposals and not unfixed:
            click.echo("No finding has a fix.")
    sys.exit(code_of(found=bool(failed), unread=has_unread(report.problems)))


def _found(path: tuple[AnyPath, ...], job: Job) -> tuple[Report, list[Proposal], list[Unfixed]]:
    """The report, the fixes of its findings and the places without one; each finding once for all ranks."""
    from tb_tidy_plugin.analysis.fixing import Fixer

    fixer = Fixer(job)
    runs: list[RunReport] = []
    problems: list[Problem] = []
    proposals: dict[tuple[str, str], Proposal] = {}
    unfixed: dict[tuple[str, str, int], Unfixed] = {}
    with progress_bar(job) as watched:
        for run, found in groupby(analyse(watched, path, FIXES), key=lambda each: each.file.run):
            of_run = list(found)
            answers = [each.answer for each in of_run if each.answer is not None]
            problems += [each.problem for each in of_run if each.problem is not None]
            for answer in answers:
                for each in fixer.proposals(answer):
                    if isinstance(each, Unfixed):
                        unfixed.setdefault((each.finding, each.file, each.line), each)
                    else:
                        proposals.setdefault((each.fix.finding, each.fix.diff), each)
            if answers:
                summaries = [summary for answer in answers for summary in answer.summaries]
                reports = [answer.report for answer in answers]
                runs.append(run_report(run, reports, summaries, job.of_runs, job.ignores))
    report = Report(schema=SCHEMA_VERSION, version=__version__, runs=runs, problems=problems)
    return report, list(proposals.values()), list(unfixed.values())


def _paths(proposals: Iterable[Proposal]) -> list[str]:
    return sorted({str(each.file.path) for each in proposals if isinstance(each.file, OwnFile)})


def _left_out(needs: Counter[str]) -> str:
    """How many fixes were not written, and which options write them."""
    count = sum(needs.values())
    parts = ", ".join(f"{number} {'needs' if number == 1 else 'need'} {what}" for what, number in needs.items())
    return f"{plural(count, 'fix was', 'fixes were')} not written: {parts}."


def _say(
    proposals: Sequence[Proposal], unfixed: Sequence[Unfixed], done: Sequence[Proposal], names: ShownNames
) -> None:
    from tb_tidy_plugin.analysis.fixing import patches

    for each, patch in zip(proposals, patches(proposals, names), strict=True):
        click.echo("\n".join(_lines(each, patch, names)) + "\n")
    for place in unfixed:
        click.echo(visible(f"{place.file}:{place.line}: {place.rule}: no fix. {place.reason}"))
    for path in _paths(done):
        click.echo(visible(f"written: {path}"))


def _lines(proposal: Proposal, patch: str | None, names: ShownNames) -> Iterator[str]:
    """The fix as the lines of a patch, after a heading; what is not to be applied is a comment, as the heading is."""
    fix = proposal.fix
    saving = f"saves {Nanoseconds(fix.saving_ns)} per step, " if fix.saving_ns else ""
    yield visible(f"# {fix.rule}: {saving}{fix.safety}")
    if fix.check:
        yield visible(f"# needs review: {fix.check}")
    if patch is None:
        yield "# not in this patch: another fix changes the same characters. Record again after it."
        yield from (f"# {_line(line)}" for line in proposal.shown(names).diff.split("\n")[:-1])
    elif not patch:
        yield "# the same change as above"
    else:
        yield from map(_line, patch.split("\n")[:-1])


def _line(line: str) -> str:
    """A line of a patch for a terminal that git still takes: with tabs, form feeds, line ends and mark."""
    text = line.removesuffix("\r")
    kept = frozenset({"\t", "\f"} | ({_MARK} if text[1:2] == _MARK else set()))
    return "".join(each if each in kept else visible(each) for each in text) + line[len(text) :]
