"""The one way from a path to answers about all traces there; a trace that fails does not affect the others."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin import __version__
from tb_tidy_plugin.analysis.answers import FIXES, Answer, FixesAnswer, Question, Reported
from tb_tidy_plugin.analysis.code_fixes import with_code_fixes, with_hints
from tb_tidy_plugin.analysis.engines import GivenUp, each, is_one_enough
from tb_tidy_plugin.analysis.job import Job, UsualRules
from tb_tidy_plugin.analysis.remembered import OWN_RULES, Remembered
from tb_tidy_plugin.report import model
from tb_tidy_plugin.system.collector import held_off
from tb_tidy_plugin.system.threads import meanwhile
from tb_tidy_plugin.trace.cache import NOWHERE, UNREAD, state_of
from tb_tidy_plugin.trace.files import TraceFile, find_traces_at
from tb_tidy_plugin.trace.limits import held_to, likely_text
from tb_tidy_plugin.trace.remote import absolute, path_or_url, size_of
from tb_tidy_plugin.words.errors import TidyError, TraceError, unexpected
from tb_tidy_plugin.words.visible import log_called

if TYPE_CHECKING:
    from tb_tidy_plugin.rulekit.carried import CarriedRules

_A = TypeVar("_A", bound=Answer)

log = log_called(__name__)

TracePaths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""One path or address, or several; several are analysed together, named as in the folder around them."""

USUAL_RULES = "usual"
FEWER = "Free memory, give it all of it with `--jobs 1`, or record fewer steps."
WORKER_BYTES = 160 << 20  # of a worker that has read nothing yet
WORKER_RATIO = 8  # most bytes of memory per byte of JSON; measured in docs/scale.md


class Analysed(msgspec.Struct, Generic[_A], frozen=True):
    """One of the traces at a path.

    Attributes:
        answer: None if nothing in the file could be used.
        problem: names the part of the file that could not be read; None if all of it was read.
        is_whole: False if a file beside the trace could not be read this time.
    """

    file: TraceFile
    answer: _A | None
    problem: model.Problem | None
    is_whole: bool = True


def analyze_path(path: TracePaths, job: Job, *, with_changes: bool = True) -> model.Report:
    """The report on a trace file, a run folder or a logdir.

    Args:
        path: any of these, or several of them.
        job: settings of the analysis.
        with_changes: True if findings have the code changes, False if they only name the command for them.

    Raises:
        NotFoundError: nothing is there. Traces that cannot be read do not raise: they are in `Report.problems`.
        EngineError: the engine cannot be used.
    """
    runs: list[model.RunReport] = []
    problems: list[model.Problem] = []
    for run, found in groupby(analyse(job, path, FIXES), key=lambda each: each.file.run):
        of_run = list(found)
        ranks = [each.answer for each in of_run if each.answer is not None]
        problems += [each.problem for each in of_run if each.problem is not None]
        if not ranks:
            continue
        try:
            reports = with_code_fixes(ranks, job) if with_changes else with_hints(ranks)
            runs.append(_run_report(job, run, ranks, reports))
        except (TidyError, ImportError):  # about all runs
            raise
        except Exception as problem:  # one run must not cost the user the others
            log.info("the report on %s failed", run, exc_info=True)
            broken = unexpected(problem, "report on the run")
            problems += [_problem(each.file, broken) for each in of_run if each.answer is not None]
    return model.Report(schema=model.SCHEMA_VERSION, version=__version__, runs=runs, problems=problems)


def _run_report(
    job: Job, run: str, ranks: Sequence[FixesAnswer], reports: list[model.ProfileReport]
) -> model.RunReport:
    """The report on a run; a single trace has nothing to compare with."""
    if len(ranks) == 1:
        return model.RunReport(run=run, profiles=reports, outcomes=[], findings=[], ranks=None)
    from tb_tidy_plugin.analysis.runs import run_report

    summaries = [summary for rank in ranks for summary in rank.summaries]
    return run_report(run, reports, summaries, job.of_runs, job.ignores)


def analyse(job: Job, path: TracePaths, question: Question[_A]) -> Iterator[Analysed[_A]]:
    """The answer for each trace at `path`, in the order of runs, workers and spans.

    Raises:
        NotFoundError: nothing is there. Traces that cannot be read do not raise, nor does one of several paths.
        EngineError: the engine cannot be used.
    """
    paths = [path] if isinstance(path, str | os.PathLike) else path
    files, lacking = find_traces_at([path_or_url(each) for each in paths], follow_links=job.follow_links)
    yield from analyse_files(job, files, question)
    for place, problem in lacking:
        yield _unread(TraceFile("", "", "", place), problem)


def analyse_files(job: Job, files: Sequence[TraceFile], question: Question[_A]) -> Iterator[Analysed[_A]]:
    """The answer for each of these traces, in their order.

    Raises:
        EngineError: the engine cannot be used.
    """
    if job.engine.is_elsewhere:
        job = replace(job, cache=NOWHERE)
    sizes = [likely_text(file.path.name, size_of(file.path)) for file in files]
    needed = WORKER_BYTES + WORKER_RATIO * max(sizes, default=0)
    if is_one_enough(job.engine, len(files), needed):
        yield from (_analysed(job, question, file) for file in files)
        return
    from_anywhere = [replace(file, path=absolute(file.path)) for file in files]
    waiting = {number: known for number, file in enumerate(from_anywhere) if (known := _known(job, question, file))}
    left = {number: file for number, file in enumerate(from_anywhere) if number not in waiting}
    with closing(_by_workers(job, question, left, needed)) as arriving:
        for number, file in enumerate(files):
            while number not in waiting:
                waiting.update([next(arriving)])
            yield _named_as(file, waiting.pop(number))


def _by_workers(
    job: Job, question: Question[_A], files: Mapping[int, TraceFile], needed: int
) -> Generator[tuple[int, Analysed[_A]]]:
    """The number of each file and its answer, in the order of completion."""
    from tb_tidy_plugin.rulekit.carried import CarriedRules

    numbered = list(files.items())
    carried = None if isinstance(job.rules, UsualRules) else CarriedRules(job.of_profiles)
    of_all = replace(job, rules=UsualRules() if carried is None else (), progress=None)
    work = partial(_by_worker, of_all, carried, question)
    for count, (at, found) in enumerate(each(job.engine, work, list(files.values()), needed), 1):
        number, file = numbered[at]
        job.report(file, f"{count} of {len(files)} analysed:", count / len(files))
        yield number, _lost(file, found) if isinstance(found, GivenUp) else found


def _known(job: Job, question: Question[_A], file: TraceFile) -> Analysed[_A] | None:
    """The cached answer, or None."""
    remembered = remembered_by(job, question)
    answer = remembered.load(file, remembered.key(file))
    return None if answer is None else Analysed(file, answer, answer.problem)


def remembered_by(job: Job, question: Question[_A]) -> Remembered[_A]:
    """The cached answers to this question."""
    usual = isinstance(job.rules, UsualRules)  # the cache key includes the package's code, which determines them
    rules = [] if usual else [(rule.name(), type(rule).__module__, rule.settings) for rule in job.of_profiles]
    is_ours = all(module.startswith(OWN_RULES) for _, module, _ in rules)
    ignored = sorted((glob, sorted(names)) for glob, names in job.ignores.rules.items())
    captures = [state_of(path) for path in job.graph_captures]
    asked = (USUAL_RULES if usual else rules, ignored, captures, dict(job.devices), job.device) if is_ours else None
    return Remembered(job.cache, question.kind, question.answer, asked, job.source_roots, question.by_measurements)


@held_off()
def _analysed(job: Job, question: Question[_A], file: TraceFile) -> Analysed[_A]:
    """One trace with its answer: from the cache, or computed and stored there."""
    remembered = remembered_by(job, question)
    key = remembered.key(file)
    if (known := remembered.load(file, key)) is not None:
        return Analysed(file, known, known.problem)
    try:
        from tb_tidy_plugin.analysis.reading import trace_in

        with held_to(job.limits):
            with meanwhile(partial(_import_rest, job)):
                read = trace_in(file, job)
            from tb_tidy_plugin.analysis.assemble import analysis_of

            analysis = analysis_of(file, job, read)
            answer = question.of(analysis)
            looked_at = analysis.looked_at
    except TraceError as problem:
        return _unread(file, problem)
    except (TidyError, ImportError):  # about the settings or the installation: all traces have it
        raise
    except MemoryError:
        return _unread(file, TraceError("There is not enough memory for this trace.", FEWER))
    except Exception as problem:  # one trace must not cost the user the others
        log.info("the analysis of %s failed", file.path, exc_info=True)
        return _unread(file, unexpected(problem, "analysis"))
    remembered.keep(file, key, answer, looked_at)
    return Analysed(file, answer, answer.problem, UNREAD not in looked_at.values())


def _import_rest(job: Job) -> None:
    """Imports what is needed after reading, while the file is read."""
    from tb_tidy_plugin.analysis import assemble, runs  # noqa: F401 - imported ahead

    _ = job.of_profiles


def _by_worker(job: Job, rules: CarriedRules | None, question: Question[_A], file: TraceFile) -> Analysed[_A]:
    """The answer for one trace in a worker, which may see other files."""
    if job.engine.is_elsewhere and isinstance(file.path, Path) and not file.path.exists():
        error = f"The workers of `{job.engine}` cannot find this file."
        advice = "Give a folder that they share with this machine, or an address such as `s3://bucket/run`."
        return _unread(file, TraceError(error, advice))
    from tb_tidy_plugin.trace.strings import remember_answers

    remember_answers()
    return _analysed(job if rules is None else replace(job, rules=rules.rules), question, file)


def _named_as(file: TraceFile, found: Analysed[_A]) -> Analysed[_A]:
    """The answer with the path as the user gave it; a worker may be in another folder."""
    path = str(file.path)
    problem = found.problem and msgspec.structs.replace(found.problem, path=path)
    answer = found.answer and msgspec.structs.replace(found.answer, problem=problem)
    if isinstance(answer, Reported):
        answer = msgspec.structs.replace(answer, report=msgspec.structs.replace(answer.report, path=path))
    return Analysed(file, answer, problem, found.is_whole)


def _lost(file: TraceFile, given_up: GivenUp) -> Analysed[_A]:
    """A trace whose worker died."""
    error = f"The worker that analysed this trace ended, most likely because memory ran out ({given_up.reason})."
    return _unread(file, TraceError(error, FEWER))


def _unread(file: TraceFile, problem: TidyError) -> Analysed[_A]:
    """A file in which nothing could be used."""
    return Analysed(file, None, _problem(file, problem))


def _problem(file: TraceFile, problem: TidyError) -> model.Problem:
    return model.Problem(path=str(file.path), error=problem.error, advice=problem.advice, recovered_events=0)
