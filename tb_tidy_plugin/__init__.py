"""TorchTidy: names the performance anti-patterns in a recorded PyTorch profile, with line, cost and saving.

Importing this package must stay free of side effects and of dependencies, since TensorBoard imports it to find the
plugin and an error here would stop TensorBoard itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path

    from tb_tidy_plugin.render.notebook import Cell
    from tb_tidy_plugin.report.model import Report

__version__ = "0.1.0"


def analyze(path: str | PathLike[str], source_roots: Sequence[Path] = (), *, follow_links: bool = False) -> Report:
    """Analyse one trace file, one run folder or a whole logdir.

    Sources beside a trace or in one of `source_roots` give the lines inside functions. Links in a folder that lead out
    of it are logged and skipped, unless `follow_links` is True.

    Raises:
        TidyError: `path` does not exist or holds no trace. A trace that cannot be read does not raise: it is listed in
            `Report.problems`, and the other traces are reported as usual.
    """
    from tb_tidy_plugin.analysis.job import Job
    from tb_tidy_plugin.analysis.paths import analyze_path

    return analyze_path(path, Job(source_roots=tuple(source_roots), follow_links=follow_links))


def show(
    path: str | PathLike[str], source_roots: Sequence[Path] = (), *, follow_links: bool = False, height_px: int = 720
) -> Cell:
    """The report of `path` in a notebook's cell, `height_px` pixels high; the arguments are those of `analyze`.

    Raises:
        TidyError: `path` does not exist or holds no trace.
    """
    from tb_tidy_plugin.render.html import to_html
    from tb_tidy_plugin.render.notebook import Cell
    from tb_tidy_plugin.render.report import report_document

    return Cell(to_html(report_document(analyze(path, source_roots, follow_links=follow_links), "html")), height_px)
