"""TorchTidy: names the performance anti-patterns in a recorded PyTorch profile, with line, cost and saving.

Importing this package must stay free of side effects and of dependencies, since TensorBoard imports it to find the
plugin and an error here would stop TensorBoard itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_tidy_plugin.words.errors import TidyError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from tb_tidy_plugin.render.notebook import Cell
    from tb_tidy_plugin.report.model import Report

__all__ = ["TidyError", "__version__", "analyze", "annotate", "show"]

__version__ = "0.1.0"


def analyze(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    source_roots: Sequence[str | PathLike[str]] = (),
    *,
    follow_links: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    config: str | PathLike[str] | None = None,
    jobs: int | None = None,
    cache: bool = False,
) -> Report:
    """Analyse one trace file, one run folder or a whole logdir, or several of them together.

    Args:
        path: a path, an address such as `s3://bucket/run`, or a sequence of them.
        source_roots: folders of sources. These and sources beside a trace give the lines inside functions.
        follow_links: True if links in a folder may lead out of it; else they are logged and skipped.
        select: names, codes, code prefixes or categories of the rules to check, or `ALL`; by default those that
            `config` selects, else all.
        ignore: the same for rules to leave out.
        config: a `tb-tidy.toml`, or a `pyproject.toml` with `[tool.tb-tidy]`; none is searched for. The file is
            trusted: it may name rules of your own, which are imported.
        jobs: most traces to analyse at a time; by default as many as cores and memory allow.
        cache: True to use and fill the cache of `tb-tidy`.

    Raises:
        TidyError: `path` does not exist or holds no trace; `config`, `select` or `ignore` names something that does not
            exist. A trace that cannot be read does not raise, nor does one of several paths: `Report.problems` lists
            it, and the other traces are reported as usual.
        ValueError: `jobs` is less than 1.
    """
    from pathlib import Path

    from msgspec.structs import replace

    from tb_tidy_plugin.analysis.engines import engine_of
    from tb_tidy_plugin.analysis.paths import analyze_path
    from tb_tidy_plugin.configuration.checks import WantedRules, job_of
    from tb_tidy_plugin.configuration.files import Configuration, read_configuration
    from tb_tidy_plugin.trace.cache import NOWHERE, Cache, default_folder

    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be 1 or greater, not {jobs}")
    configuration = Configuration() if config is None else read_configuration(Path(config))
    job = replace(
        job_of(configuration, WantedRules(select=_names(select), ignore=_names(ignore))),
        source_roots=tuple(Path(root).absolute() for root in source_roots),
        follow_links=follow_links,
        engine=engine_of("local", jobs),
        cache=Cache(default_folder()).usable() if cache else NOWHERE,
    )
    return analyze_path(path, job)


def _names(given: Sequence[str]) -> Sequence[str]:
    """The names of rules; a single string is one name, and not its letters."""
    return (given,) if isinstance(given, str) else given


def show(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    source_roots: Sequence[str | PathLike[str]] = (),
    *,
    follow_links: bool = False,
    height_px: int = 720,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    config: str | PathLike[str] | None = None,
    jobs: int | None = None,
    cache: bool = False,
) -> Cell:
    """The report of `path` in a notebook's cell, `height_px` pixels high; the other arguments are those of `analyze`.

    Raises:
        TidyError: as `analyze`.
    """
    from tb_tidy_plugin.render.html import to_html
    from tb_tidy_plugin.render.notebook import Cell
    from tb_tidy_plugin.render.report import report_document

    report = analyze(
        path,
        source_roots,
        follow_links=follow_links,
        select=select,
        ignore=ignore,
        config=config,
        jobs=jobs,
        cache=cache,
    )
    document = report_document(report, "html")
    return Cell(to_html(document), height_px, document.title)


def annotate(
    path: str | PathLike[str],
    file: str | None = None,
    source_roots: Sequence[str | PathLike[str]] = (),
    *,
    follow_links: bool = False,
    height_px: int = 720,
    cache: bool = False,
) -> Cell:
    """The sources of one trace in a notebook's cell, with the time of each line by pass, as `tb-tidy annotate`.

    Args:
        path: a trace file, or a folder with exactly one.
        file: the only file to show, possibly by the end of its path.
        source_roots, follow_links, cache: as for `analyze`.
        height_px: height of the frame in pixels.

    Raises:
        TidyError: `path` does not exist, cannot be read or holds no trace or several; no line of `file` is known.
    """
    from pathlib import Path

    from tb_tidy_plugin.analysis.detailed_answers import LINES
    from tb_tidy_plugin.analysis.job import Job
    from tb_tidy_plugin.analysis.named import ShownNames
    from tb_tidy_plugin.analysis.paths import analyse_files
    from tb_tidy_plugin.render.annotated import annotated, annotated_document
    from tb_tidy_plugin.render.html import to_html
    from tb_tidy_plugin.render.notebook import Cell
    from tb_tidy_plugin.sources.lookup import FoundSources
    from tb_tidy_plugin.trace.cache import NOWHERE, Cache, default_folder
    from tb_tidy_plugin.trace.files import only_trace
    from tb_tidy_plugin.trace.remote import path_or_url
    from tb_tidy_plugin.words.errors import TraceError

    job = Job(
        source_roots=tuple(Path(root).absolute() for root in source_roots),
        follow_links=follow_links,
        cache=Cache(default_folder()).usable() if cache else NOWHERE,
    )
    trace = only_trace(path_or_url(path), follow_links=follow_links)
    (found,) = analyse_files(job, [trace], LINES)
    if found.answer is None:
        assert found.problem is not None
        raise TraceError(found.problem.error, found.problem.advice)
    sources = FoundSources(trace, job.source_roots, found.answer.captured)
    document = annotated_document(annotated(found.answer, file, sources, ShownNames(job).beside(str(trace.path))))
    return Cell(to_html(document), height_px, document.title)
