"""A trace's text through everything: read, analysed, and written in every form that we write."""

from __future__ import annotations

import io
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.plugin.analysis_worker import AnalysisResult, first_findings, result_of
from tb_tidy_plugin.plugin.timeline_worker import (
    About,
    Crop,
    EventQuestion,
    LanesQuestion,
    MarksQuestion,
    SliceQuestion,
    answer_to,
)
from tb_tidy_plugin.profile.timeline.timeline import Timeline, timeline_of
from tb_tidy_plugin.render.html import to_html
from tb_tidy_plugin.render.markdown import to_markdown
from tb_tidy_plugin.render.report import report_document
from tb_tidy_plugin.render.terminal import to_text
from tb_tidy_plugin.report.json import to_json
from tb_tidy_plugin.report.model import Report
from tb_tidy_plugin.report.sarif import to_sarif
from tb_tidy_plugin.rules import catalogue
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.words.errors import TraceError

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""What a terminal obeys, or an editor uses to show other text than there is."""

MOST_EVENTS = 20
NAME = "w.1.pt.trace.json"


class UnsoundError(AssertionError):
    """Something that may happen with no text whatever."""


def check(text: bytes, folder: Path) -> Report:
    """Reads `text` as a trace in `folder` and writes the report in every form.

    Raises:
        UnsoundError: as `check_file`.
    """
    path = folder / "run" / NAME
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text)
    return check_file(path)


def check_file(path: Path) -> Report:
    """Reads a trace with all that lies beside it and writes the report in every form.

    Raises:
        UnsoundError: a rule failed, or a form is not what it should be.
    """
    report = analyze_path(path, Job())
    for file in find_traces(path):
        with suppress(TraceError):  # it is among the report's problems
            analysis = read_file(file, Job())
            decode(msgspec.json.encode(result_of(analysis, first_findings(analysis))), AnalysisResult)
            _check_timeline(timeline_of(analysis.profile.table, analysis.profile.steps))
    _check_forms(report)
    failed = [
        f"{outcome.rule}: {outcome.reason}"
        for run in report.runs
        for profile in run.profiles
        for outcome in profile.outcomes
        if outcome.status == "failed"
    ]
    if failed:
        raise UnsoundError("; ".join(failed))
    return report


def written(report: Report) -> dict[str, str]:
    """The report in all forms that are meant to be looked at."""
    text = io.StringIO()
    Console(file=text, width=100, color_system=None).print(to_text(report_document(report, "text")))
    return {
        "text": text.getvalue(),
        "markdown": to_markdown(report_document(report, "markdown")),
        "sarif": to_sarif(report, catalogue()),
        "html": to_html(report_document(report, "html")),
    }


def _check_timeline(timeline: Timeline) -> None:
    """Asks for all that the page asks for, of a whole timeline and of its first half."""
    found = _answer(LanesQuestion(), timeline)
    none, ids = msgspec.Raw(b"[]"), list(range(len(found["lanes"])))
    for until_ns in (found["until_ns"], found["until_ns"] // 2):
        window = SliceQuestion(0, until_ns, 300, ids, msgspec.Raw(b"[0,1]"))
        shown = _answer(window, timeline)
        _answer(MarksQuestion(0, until_ns, 300, none), timeline)
        _answer(Crop(0, until_ns, until_ns // 2), timeline)
        for event in shown["bars"]["id"][:MOST_EVENTS]:
            _answer(EventQuestion(event), timeline)


def _answer(about: About, timeline: Timeline) -> Any:  # noqa: ANN401 - JSON of any form
    return json.loads(bytes(answer_to(about, timeline)))


def _check_forms(report: Report) -> None:
    if decode(to_json(report), Report) != report:
        raise UnsoundError("the report is another one after it was read back")
    forms = written(report)
    json.loads(forms["sarif"])
    for name, text in forms.items():
        text.encode()
        if found := OBEYED.search(text):
            raise UnsoundError(f"{name} holds {found[0]!r}: {text[max(0, found.start() - 60) : found.end() + 20]!r}")
