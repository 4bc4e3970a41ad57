"""A trace's text through everything: read, analysed, and written in every form that we write."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path

import msgspec
from rich.console import Console

from tb_tidy_plugin.plugin.worker import Result, findings_of, result_of
from tb_tidy_plugin.report.assemble import analyses as analyses_at
from tb_tidy_plugin.report.html import to_html
from tb_tidy_plugin.report.json import to_json
from tb_tidy_plugin.report.markdown import to_markdown
from tb_tidy_plugin.report.model import Problem, Report
from tb_tidy_plugin.report.paths import analyze_path
from tb_tidy_plugin.report.sarif import to_sarif
from tb_tidy_plugin.report.text import to_text
from tb_tidy_plugin.rules import catalogue

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""What a terminal obeys, or an editor uses to show other text than there is."""

NAME = "w.1.pt.trace.json"


class UnsoundError(AssertionError):
    """Something that may happen with no text whatever."""


def check(text: bytes, folder: Path, limit_s: float | None = None) -> Report:
    """Reads `text` as a trace in `folder` and writes the report in every form.

    Raises:
        UnsoundError: a rule failed, a form is not what it should be, or it took longer than `limit_s` (processor time).
    """
    path = folder / "run" / NAME
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text)
    began = time.process_time()
    report = analyze_path(path)
    for _, analysis in analyses_at(path):
        if not isinstance(analysis, Problem):
            msgspec.json.decode(msgspec.json.encode(result_of(analysis, findings_of(analysis))), type=Result)
    _check_forms(report)
    took = time.process_time() - began
    failed = [
        f"{outcome.rule}: {outcome.reason}"
        for run in report.runs
        for profile in run.profiles
        for outcome in profile.outcomes
        if outcome.status == "failed"
    ]
    if failed:
        raise UnsoundError("; ".join(failed))
    if limit_s is not None and took > limit_s:
        raise UnsoundError(f"took {took:.1f} s")
    return report


def written(report: Report) -> dict[str, str]:
    """The report in all forms that are meant to be looked at."""
    text = io.StringIO()
    Console(file=text, width=100, color_system=None).print(to_text(report))
    return {
        "text": text.getvalue(),
        "markdown": to_markdown(report),
        "sarif": to_sarif(report, catalogue()),
        "html": to_html(report),
    }


def _check_forms(report: Report) -> None:
    if msgspec.json.decode(to_json(report), type=Report) != report:
        raise UnsoundError("the report is another one after it was read back")
    forms = written(report)
    json.loads(forms["sarif"])
    for name, text in forms.items():
        text.encode()
        if found := OBEYED.search(text):
            raise UnsoundError(f"{name} holds {found[0]!r}: {text[max(0, found.start() - 60) : found.end() + 20]!r}")
