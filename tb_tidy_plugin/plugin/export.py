"""A profile's report as a file: one page of HTML with the content of the tab."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from tb_tidy_plugin import __version__
from tb_tidy_plugin.plugin.models import ExportAnswer
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.report.model import SCHEMA_VERSION, Finding, Report


def exported(profiles: Profiles, key: Key, muted: Collection[str], patience_s: float) -> ExportAnswer:
    """The page of a finished analysis, without the findings whose ids are `muted`.

    Raises:
        NotFoundError: there is no such trace.
        TraceError: it could not be read.
        StillAnalysingError: its analysis takes longer than `patience_s`.
    """
    from tb_tidy_plugin.render.html import to_html  # TensorBoard's start does not wait for them
    from tb_tidy_plugin.render.report import report_document

    profiles.kept(key, patience_s)
    run = profiles.report(*key).report
    listed = [msgspec.structs.replace(each, findings=_without(each.findings, muted)) for each in run.profiles]
    shown = msgspec.structs.replace(run, findings=_without(run.findings, muted), profiles=listed)
    all_findings = [*run.findings, *(finding for each in run.profiles for finding in each.findings)]
    report = Report(schema=SCHEMA_VERSION, version=__version__, runs=[shown], problems=[])
    left_out = sum(finding.id in muted for finding in all_findings)
    return ExportAnswer(html=to_html(report_document(report, "html", muted=left_out)))


def _without(findings: Sequence[Finding], muted: Collection[str]) -> list[Finding]:
    return [finding for finding in findings if finding.id not in muted]
