"""SARIF: valid whatever the report holds, and with all that a code host shows.

No package that we could depend on ships the official schema, and no test asks the network. `SARIF` below is the part of
it that we write: the official required properties, types and enumerations, and no other property.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.report.generated import CodeLine, Generated
from tb_tidy_plugin.report.model import Outcome, Place, Problem, ProfileReport, Report, RunReport
from tb_tidy_plugin.report.sarif import to_sarif
from tb_tidy_plugin.rules import all_rules
from tests.support.logdirs import trace
from tests.support.made_up_rule import SlowMultiplication
from tests.support.recordings import ROOT, SHARED


def _object(required: Sequence[str] = (), **properties: object) -> dict[str, object]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


def _list(items: object, **more: object) -> dict[str, object]:
    return {"type": "array", "items": items} | more


STRING: dict[str, object] = {"type": "string"}
INTEGER = {"type": "integer"}
BAG = {"type": "object", "properties": {"tags": _list(STRING, uniqueItems=True)}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = _object(["text"], text=STRING)
FORMATTED = _object(["text"], text=STRING, markdown=STRING)
ARTIFACT = _object(uri={"type": "string", "format": "uri-reference", "pattern": "^[!-~]+$"}, uriBaseId=STRING,
                   description=MESSAGE)  # fmt: skip
REGION = _object(["startLine"], startLine={"type": "integer", "minimum": 1}, endLine={"type": "integer", "minimum": 1})
LOCATION = _object(
    physicalLocation=_object(["artifactLocation"], artifactLocation=ARTIFACT, region=REGION),
    logicalLocations=_list(_object(name=STRING, kind=STRING), uniqueItems=True),
    message=MESSAGE,
)
REFERENCE = _object(["id"], id=STRING, index={"type": "integer", "minimum": 0})
NOTIFICATION = _object(
    ["message"], level=LEVEL, message=MESSAGE, descriptor=REFERENCE, associatedRule=REFERENCE,
    locations=_list(LOCATION, uniqueItems=True),
)  # fmt: skip
RULE = _object(
    ["id", "shortDescription", "fullDescription", "help"],  # all but the first by GitHub's rules
    id=STRING, name=STRING, shortDescription=FORMATTED, fullDescription=FORMATTED, help=FORMATTED,
    defaultConfiguration=_object(level=LEVEL), properties=BAG,
)  # fmt: skip
RESULT = _object(
    ["message", "ruleId", "ruleIndex", "partialFingerprints"],
    ruleId=STRING, ruleIndex=INTEGER, level=LEVEL, message=MESSAGE, locations=_list(LOCATION), properties=BAG,
    partialFingerprints={"type": "object", "additionalProperties": STRING},
    occurrenceCount={"type": "integer", "minimum": 1},
)  # fmt: skip
RUN = _object(
    ["tool", "results"],
    tool=_object(
        ["driver"], driver=_object(["name"], name=STRING, semanticVersion=STRING, rules=_list(RULE, uniqueItems=True))
    ),
    properties=BAG,
    originalUriBaseIds={"type": "object", "additionalProperties": ARTIFACT},
    invocations=_list(
        _object(
            ["executionSuccessful"],
            executionSuccessful={"type": "boolean"},
            toolExecutionNotifications=_list(NOTIFICATION),
        )
    ),
    results=_list(RESULT),
)
SARIF = _object(["version", "runs"], **{"$schema": {"type": "string", "format": "uri"}}, version={"const": "2.1.0"},
                runs=_list(RUN))  # fmt: skip


def sarif(report: Report, made_up: bool = True) -> Any:  # noqa: ANN401 - any JSON
    document = json.loads(to_sarif(report, [SlowMultiplication] if made_up else all_rules()))
    jsonschema.validate(document, SARIF)
    (run,) = document["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return run


def made_up_report(folder: Path) -> Report:
    trace(folder / "run" / "rank0.7.pt.trace.json", operators=9)
    return analyze_path(folder, Job([SlowMultiplication()]))


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return made_up_report(tmp_path)


def changed(report: Report, **changes: object) -> Report:
    """With its only finding changed."""
    finding = msgspec.structs.replace(report.runs[0].profiles[0].findings[0], **changes)
    return with_profiles(report, msgspec.structs.replace(report.runs[0].profiles[0], findings=[finding]))


def with_profiles(report: Report, *profiles: ProfileReport) -> Report:
    runs = [RunReport(run=report.runs[0].run, profiles=list(profiles))]
    return msgspec.structs.replace(report, runs=runs)


def at(file: str, line: int = 5) -> Place:
    return Place(file=file, line=line, end_line=line, function="f", precision="exact", own_code=True, matches=1,
                 duration_ns=1)  # fmt: skip


class TestResults:
    def test_one(self, report: Report) -> None:
        (result,) = sarif(report)["results"]
        finding = report.runs[0].profiles[0].findings[0]
        assert (result["ruleId"], result["level"], result["occurrenceCount"]) == ("TT999", "note", 1)
        assert result["message"]["text"] == (
            "`aten::mm` multiplies 16 B. Costs 8.06 µs per step (0.81 %). "
            "Could save about 8.06 µs per step (at least 5.36 µs; computed from the timeline). Add instead."
        )
        assert result["partialFingerprints"] == {"torchTidyFinding/v1": finding.id}
        assert result["properties"] | {"saving": 0} == {
            "run": "run", "worker": "rank0", "span": "7", "severity": "low", "confidence": "high", "matches": 9,
            "cost_ns": finding.cost_ns, "share": finding.share, "saving": 0,
        }  # fmt: skip
        assert result["properties"]["saving"]["expected_ns"] == finding.cost_ns

    def test_its_place(self, report: Report) -> None:
        (location,) = sarif(report)["results"][0]["locations"]
        assert location["physicalLocation"] == {
            "artifactLocation": {"uri": "../../outside.py", "uriBaseId": "SRCROOT"},
            "region": {"startLine": 1, "endLine": 1},
        }
        assert location["logicalLocations"] == [{"name": "helper", "kind": "function"}]
        assert location["message"]["text"].startswith("The function is defined here")

    @pytest.mark.parametrize(
        ("precision", "text"),
        [
            ("exact", "torch.compile generated the code for backward of a.py:5 (+7)."),
            ("definition", "torch.compile compiled this function; the recording does not hold its lines."),
        ],
    )
    def test_a_place_of_compiled_code_says_so(self, report: Report, precision: str, text: str) -> None:
        generated = Generated(of="backward", also=[CodeLine(file="a.py", line=7)])
        place = msgspec.structs.replace(at("a.py"), precision=precision, generated=generated)
        (location,) = sarif(changed(report, places=[place]))["results"][0]["locations"]
        assert location["message"]["text"] == text

    def test_a_line_that_is_exact_needs_no_words(self, report: Report) -> None:
        (location,) = sarif(changed(report, places=[at("a.py")]))["results"][0]["locations"]
        assert "message" not in location

    @pytest.mark.parametrize(
        ("severity", "level"), [("high", "error"), ("medium", "warning"), ("low", "note"), ("info", "note")]
    )
    def test_levels(self, report: Report, severity: str, level: str) -> None:
        assert sarif(changed(report, severity=severity))["results"][0]["level"] == level

    def test_no_place(self, report: Report) -> None:
        assert sarif(changed(report, places=[]))["results"][0]["locations"] == []

    def test_the_action_comes_first(self, report: Report) -> None:
        text = sarif(changed(report, action="Add both", share=None))["results"][0]["message"]["text"]
        assert text == "Add both. `aten::mm` multiplies 16 B. Add instead."

    def test_no_steps_no_amounts(self, report: Report) -> None:
        result = sarif(changed(report, share=None))["results"][0]
        assert result["message"]["text"] == "`aten::mm` multiplies 16 B. Add instead."

    def test_ranks_of_a_run_are_one_result_told_by_the_worst(self, report: Report) -> None:
        (profile,) = report.runs[0].profiles
        (finding,) = profile.findings
        assert finding.saving is not None
        worse = msgspec.structs.replace(
            finding, message="worse", saving=msgspec.structs.replace(finding.saving, expected_ns=finding.cost_ns + 1)
        )
        other = msgspec.structs.replace(profile, worker="rank1", findings=[worse])
        (result,) = sarif(with_profiles(report, profile, other, profile))["results"]
        assert result["occurrenceCount"] == 3
        assert (result["message"]["text"][:6], result["properties"]["worker"]) == ("worse.", "rank1")

    def test_two_runs_are_two_results(self, report: Report) -> None:
        twice = msgspec.structs.replace(report, runs=[*report.runs, msgspec.structs.replace(report.runs[0], run="b")])
        assert [result["properties"]["run"] for result in sarif(twice)["results"]] == ["run", "b"]

    def test_nothing_in_a_message_is_a_placeholder_or_a_link(self, report: Report) -> None:
        text = sarif(changed(report, message="{0} [a](http://b)"))["results"][0]["message"]["text"]
        assert text.startswith("{{0}} [a] (http://b).")


class TestFiles:
    @pytest.mark.parametrize(
        ("file", "uri"),
        [
            ("pkg/my model.py", "pkg/my%20model.py"),
            ("./a.py", "a.py"),
            ("../a.py", "../a.py"),
            ("pkg\\mod.py", "pkg/mod.py"),
            ("a#b?c%.py", "a%23b%3Fc%25.py"),
            ("a:b.py", "a%3Ab.py"),
            ("modèle.py", "mod%C3%A8le.py"),
            ("\ud800.py", "%3F.py"),
            ("a\nb\x1b.py", "a%0Ab%1B.py"),
        ],
    )
    def test_relative(self, report: Report, file: str, uri: str) -> None:
        (location,) = sarif(changed(report, places=[at(file)]))["results"][0]["locations"]
        assert location["physicalLocation"]["artifactLocation"] == {"uri": uri, "uriBaseId": "SRCROOT"}

    @pytest.mark.parametrize(
        ("file", "uri"),
        [
            ("/home/me/a b.py", "file:///home/me/a%20b.py"),
            ("C:\\job\\a b.py", "file:///C:/job/a%20b.py"),
            ("c:/job/a.py", "file:///c:/job/a.py"),
            ("\\\\server\\share\\a.py", "file://server/share/a.py"),
        ],
    )
    def test_absolute(self, report: Report, file: str, uri: str) -> None:
        (location,) = sarif(changed(report, places=[at(file)]))["results"][0]["locations"]
        assert location["physicalLocation"]["artifactLocation"] == {"uri": uri}

    def test_a_line_that_is_none_is_left_out(self, report: Report) -> None:
        (location,) = sarif(changed(report, places=[at("a.py", 0)]))["results"][0]["locations"]
        assert "region" not in location["physicalLocation"]


class TestRules:
    def test_all_with_their_pages_in_githubs_limits(self) -> None:
        empty = Report(schema=1, version="0.1.0", runs=[], problems=[])
        driver = sarif(empty, made_up=False)["tool"]["driver"]
        assert (driver["name"], driver["semanticVersion"]) == ("TorchTidy", "0.1.0")
        assert [rule["id"] for rule in driver["rules"]] == [rule.code for rule in all_rules()]
        for rule, kind in zip(driver["rules"], all_rules(), strict=True):
            assert (rule["name"], rule["properties"]["category"]) == (kind.name(), kind.category())
            assert 0 < len(rule["shortDescription"]["text"]) <= 255
            assert 0 < len(rule["fullDescription"]["text"]) <= 1024
            assert "## Why it is slow" in rule["help"]["markdown"]


class TestNotifications:
    def notes(self, report: Report) -> tuple[bool, list[Any]]:
        (invocation,) = sarif(report)["invocations"]
        return invocation["executionSuccessful"], invocation["toolExecutionNotifications"]

    def test_nothing_to_say(self, report: Report) -> None:
        assert self.notes(report) == (True, [])

    def test_rules_that_were_not_checked_or_failed_are_said_once(self, report: Report) -> None:
        name = SlowMultiplication.name()
        outcomes = [
            Outcome(rule=name, status="not_checked", reason="No {shapes}."),
            Outcome(rule=name, status="failed", reason="KeyError: 1"),
            Outcome(rule=name, status="clean", reason="left out"),
        ]
        profile = msgspec.structs.replace(report.runs[0].profiles[0], outcomes=outcomes)
        _, (not_checked, failed) = self.notes(with_profiles(report, profile, profile))
        assert not_checked == {
            "level": "note",
            "message": {"text": f"`{name}` was not checked: No {{{{shapes}}}}."},
            "descriptor": {"id": "rule-not-checked"},
            "associatedRule": {"id": "TT999", "index": 0},
        }
        assert (failed["level"], failed["descriptor"]["id"]) == ("error", "rule-failed")

    @pytest.mark.parametrize(("recovered", "level"), [(0, "error"), (7, "warning")])
    def test_problems(self, report: Report, recovered: int, level: str) -> None:
        problem = Problem(path="/logs/a b.json", error="It ended.", advice="Record again.", recovered_events=recovered)
        _, (note,) = self.notes(msgspec.structs.replace(report, problems=[problem]))
        assert (note["level"], note["message"]["text"]) == (level, "It ended. Record again.")
        (location,) = note["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"] == "file:///logs/a%20b.json"

    def test_nothing_read_is_no_success(self, report: Report) -> None:
        assert self.notes(msgspec.structs.replace(report, runs=[]))[0] is False


@pytest.mark.sampled
@pytest.mark.parametrize(
    "path",
    [ROOT / "sample_runs", *sorted(SHARED.glob("traces/*/"))],
    ids=lambda path: str(path.name),
)
def test_real_reports_are_valid(path: Path) -> None:
    report = analyze_path(path, Job())
    found = {(run.run, finding.id) for run in report.runs for profile in run.profiles for finding in profile.findings}
    assert len(sarif(report, made_up=False)["results"]) == len(found)
