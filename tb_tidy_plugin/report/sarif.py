"""The report as SARIF 2.1.0, which code hosts and editors show beside the lines.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; GitHub's reading of it, and its limits, are in
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning.
Code hosts show only results with a location: findings of recordings without stacks appear only in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias
from urllib.parse import quote

import msgspec

from tb_tidy_plugin.report.code_model import CodeFix, Replacement
from tb_tidy_plugin.report.generated import place_text
from tb_tidy_plugin.report.model import Finding, Place, Problem, ProfileReport, Report
from tb_tidy_plugin.report.savings import basis_text, expected_text, has_two_clocks, likelihood_text
from tb_tidy_plugin.report.value import Severity
from tb_tidy_plugin.rulekit import AnyRule
from tb_tidy_plugin.rulekit.page import page_of
from tb_tidy_plugin.words.units import Nanoseconds, Share
from tb_tidy_plugin.words.visible import visible

_Level: TypeAlias = Literal["error", "warning", "note"]
_Json: TypeAlias = dict[str, object]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS: Mapping[Severity, _Level] = {"high": "error", "medium": "warning", "low": "note", "info": "note"}
_SOURCES = "SRCROOT"
_BASE = "The root of the repository with the sources, else the folder of the command, else that of the recorded script."
FINGERPRINT = "torchTidyFinding/v1"
LONGEST_DESCRIPTION = 1024  # GitHub's limit
DRIVE = re.compile(r"[A-Za-z]:/")
DEFINITION = "The function is defined here; the recording does not hold the calling line."
_COMPILED = "torch.compile compiled this function; the recording does not hold its lines."


def to_sarif(report: Report, rules: Sequence[type[AnyRule]], fixes: Sequence[CodeFix] | None = None) -> str:
    """One SARIF file with one run; `rules` are the checked ones, `fixes` those to show, all by default.

    A finding that several profiles of a run share (its ranks) is one result, represented by the one that loses most.
    """
    index = {rule.name(): at for at, rule in enumerate(rules)}
    codes = {rule.name(): rule.code for rule in rules}
    results = [_result(found, codes, index) | _fixes(found.finding, fixes) for found in _merged(report)]
    run: _Json = {
        "tool": {"driver": {"name": "TorchTidy", "semanticVersion": report.version, "rules": [*map(_rule, rules)]}},
        "originalUriBaseIds": {_SOURCES: {"description": {"text": _BASE}}},
        "invocations": [
            {
                "executionSuccessful": bool(report.runs),
                "toolExecutionNotifications": list(_notifications(report, codes, index)),
            }
        ],
        "results": results,
        "properties": {"ledgers": [*_ledgers(report)]},
    }
    if any("fixes" in result for result in results):
        run["columnKind"] = "unicodeCodePoints"
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _ledgers(report: Report) -> Iterator[_Json]:
    """Entries of each profile's ledger, in ns per step."""
    for run in report.runs:
        for profile in run.profiles:
            ledger = profile.ledger
            names = {"run": visible(run.run), "worker": visible(profile.worker), "span": visible(profile.span)}
            times = {entry.id: entry.ns_per_step for entry in ledger.entries}
            yield {**names, "recording": ledger.recording, "step_ns": ledger.step_ns, "ns_per_step": times}


def _rule(rule: type[AnyRule]) -> _Json:
    page = page_of(rule)
    help_text = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in page.sections.items())
    return {
        "id": rule.code,
        "name": rule.name(),
        "shortDescription": {"text": f"{page.title}."},
        "fullDescription": {"text": _cut(page.sections["What it finds"], LONGEST_DESCRIPTION)},
        "help": {"text": help_text, "markdown": help_text},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"category": rule.category(), "tags": ["performance", rule.category()]},
    }


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


class _Found(msgspec.Struct, frozen=True):
    """One result: a finding, its profile, and the number of profiles of the run that have it.

    A finding about several ranks together has no profile.
    """

    run: str
    profile: ProfileReport | None
    finding: Finding
    count: int


def _merged(report: Report) -> Iterator[_Found]:
    for run in report.runs:
        yield from (_Found(run.run, None, finding, 1) for finding in run.findings)
        by_id: dict[str, list[tuple[ProfileReport, Finding]]] = {}
        for profile in run.profiles:
            for finding in profile.findings:
                by_id.setdefault(finding.id, []).append((profile, finding))
        for found in by_id.values():
            profile, finding = max(found, key=lambda each: (_saved_ns(each[1]), each[1].cost_ns))
            yield _Found(run.run, profile, finding, len(found))


def _saved_ns(finding: Finding) -> int:
    return finding.saving.expected_ns if finding.saving else 0


def _result(found: _Found, codes: Mapping[str, str], index: Mapping[str, int]) -> _Json:
    finding, profile = found.finding, found.profile
    properties: _Json = {
        "run": visible(found.run),
        "severity": finding.severity,
        "confidence": finding.confidence,
        "matches": finding.matches,
        "cost_ns": finding.cost_ns,
        "share": finding.share,
        "saving": finding.saving,
    }
    where = {"ranks": finding.ranks} if profile is None else {"worker": visible(profile.worker), "span": profile.span}
    return {
        "ruleId": codes[finding.rule],
        "ruleIndex": index[finding.rule],
        "level": LEVELS[finding.severity],
        "message": _message(_sentences(finding, two_clocks=has_two_clocks(profile))),
        "locations": [_location(place) for place in finding.places],
        "partialFingerprints": {FINGERPRINT: finding.id},
        "occurrenceCount": found.count,
        "properties": properties | where,
    }


def _fixes(finding: Finding, fixes: Sequence[CodeFix] | None) -> _Json:
    """The fixes of a finding, each a change of one file (section 3.55)."""
    if fixes is None:
        fixes = finding.code_fixes.changes if finding.code_fixes else ()
    of_finding = [
        {
            "description": _message(f"{finding.fix}. Safety: {fix.safety}. {fix.check}".rstrip()),
            "artifactChanges": [
                {
                    "artifactLocation": _artifact(fix.file),
                    "replacements": [_replacement(each) for each in fix.replacements],
                }
            ],
        }
        for fix in fixes
        if fix.finding == finding.id
    ]
    return {"fixes": of_finding} if of_finding else {}


def _replacement(replacement: Replacement) -> _Json:
    region = {
        "startLine": replacement.start_line,
        "startColumn": replacement.start_column,
        "endLine": replacement.end_line,
        "endColumn": replacement.end_column,
    }
    return {"deletedRegion": region, "insertedContent": {"text": replacement.text}}


def _sentences(finding: Finding, *, two_clocks: bool) -> str:
    parts = [*([f"{finding.action}."] if finding.action not in ("", finding.fix) else []), f"{finding.message}."]
    if finding.share is not None:
        step = "recorded step" if two_clocks else "step"
        parts.append(f"Costs {Nanoseconds(finding.cost_ns)} per {step} ({Share(finding.share)}).")
    if finding.share is not None and (saving := finding.saving):
        known = "; ".join(filter(None, (likelihood_text(saving), basis_text(saving.basis))))
        step = "step without the profiler" if two_clocks else "step"
        parts.append(f"Could save {expected_text(saving)} per {step} ({known}).")
    return " ".join([*parts, f"{finding.fix}."])


def _message(text: str) -> _Json:
    """Text from a trace, without placeholders (section 3.11.5) and links (3.11.6)."""
    return {"text": visible(text).replace("{", "{{").replace("}", "}}").replace("](", "] (")}


def _location(place: Place) -> _Json:
    physical: _Json = {"artifactLocation": _artifact(place.file)}
    if place.line > 0:
        physical["region"] = {"startLine": place.line, "endLine": max(place.line, place.end_line)}
    location: _Json = {
        "physicalLocation": physical,
        "logicalLocations": [{"name": visible(place.function), "kind": "function"}],
    }
    said = _said(place)
    return location | ({"message": {"text": said}} if said else {})


def _said(place: Place) -> str:
    if place.generated is None:
        return DEFINITION if place.precision == "definition" else ""
    if place.precision == "definition":
        return _COMPILED
    return visible(f"torch.compile generated the code for {place_text(place.file, place.line, place.generated)}.")


def _artifact(file: str) -> _Json:
    """A recorded path of any operating system as a URI, relative to the sources if the path is relative."""
    path = file.replace("\\", "/")
    quoted = quote(path, errors="replace")
    if DRIVE.match(path):
        return {"uri": f"file:///{path[:2]}{quote(path[2:], errors='replace')}"}
    if path.startswith("//"):  # a share on a Windows network
        return {"uri": f"file:{quoted}"}
    if path.startswith("/"):
        return {"uri": f"file://{quoted}"}
    return {"uri": quoted.removeprefix("./"), "uriBaseId": _SOURCES}


def _notifications(report: Report, codes: Mapping[str, str], index: Mapping[str, int]) -> Iterator[_Json]:
    """Notes on what could not be read or checked; equal notes of several profiles appear once."""
    yield from (_of_problem(problem) for problem in report.problems)
    said = dict.fromkeys(
        (outcome.rule, outcome.status, outcome.reason or "")
        for run in report.runs
        for profile in run.profiles
        for outcome in profile.outcomes
        if outcome.status in {"not_checked", "failed"}
    )
    for rule, status, reason in said:
        failed = status == "failed"
        yield {
            "level": "error" if failed else "note",
            "message": _message(f"`{rule}` {'failed' if failed else 'was not checked'}: {reason}"),
            "descriptor": {"id": "rule-failed" if failed else "rule-not-checked"},
            "associatedRule": {"id": codes[rule], "index": index[rule]},
        }


def _of_problem(problem: Problem) -> _Json:
    return {
        "level": "warning" if problem.recovered_events else "error",
        "message": _message(f"{problem.error} {problem.advice}"),
        "descriptor": {"id": "trace-partly-read" if problem.recovered_events else "trace-unreadable"},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(problem.path)}}],
    }
