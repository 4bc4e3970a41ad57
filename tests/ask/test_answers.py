"""What questions answer, against the trace itself and against what other commands say."""

from __future__ import annotations

import gzip
import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.analysis.summary import summary_of
from tb_tidy_plugin.ask.folder import Folder
from tb_tidy_plugin.ask.questions import QUESTION_KINDS, QuestionError, answer, error, schema_of
from tb_tidy_plugin.ask.quoted import quoted
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.words.errors import NotFoundError, TidyError
from tests.ask.assistant import SAMPLES, folder_at, rows_of
from tests.support.whole_run import SOURCE, write_run

UNTIDY, TIDY = "image_classifier_untidy", "image_classifier_tidy"


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    (cache := tmp_path_factory.mktemp("cached")).chmod(0o700)
    return folder_at(SAMPLES, cache)


@pytest.fixture(scope="module")
def report(samples: Folder) -> ProfileReport:
    (run,) = analyze_path(SAMPLES / UNTIDY, samples.job).runs
    return run.profiles[0]


def ask(folder: Folder, question: str, **arguments: object) -> Any:  # noqa: ANN401 - JSON
    """The whole answer, whatever its pages."""
    asked = {"question": question, "tokens": 20_000, **arguments}
    found = json.loads(answer(json.dumps(asked), folder))
    page = found
    while "next" in page:
        page = json.loads(answer(json.dumps(asked | {"cursor": page["next"]}), folder))
        found["rows"] += page["rows"]
    return found


def test_runs_lists_every_trace(samples: Folder) -> None:
    found = ask(samples, "runs")
    files = sorted(path.relative_to(SAMPLES).as_posix() for path in SAMPLES.glob("*/*.pt.trace.json.gz"))
    assert [row["file"].strip("«»") for row in rows_of(found)] == files
    assert found["traces"] == len(files) == 5


class TestLedger:
    def test_rows_add_up_to_the_mean_step(self, samples: Folder) -> None:
        found = ask(samples, "ledger", path=UNTIDY)
        rows = rows_of(found)
        assert sum(row["us_per_step"] for row in rows) == pytest.approx(found["step_us"], abs=1e-6)
        findings = ask(samples, "findings", path=UNTIDY)
        assert findings["recorded_us"] == found["median_us"], "the same recorded step"
        steps = [each["dur"] for each in events_of(UNTIDY) if str(each.get("name")).startswith("ProfilerStep#")]
        assert sum(row["us_per_step"] for row in rows) == pytest.approx(sum(steps) / len(steps), rel=0.02)
        assert sum(row["share"] for row in rows) == pytest.approx(1, abs=0.001)
        assert [row["share"] for row in rows] == sorted((row["share"] for row in rows), reverse=True)

    def test_names_the_owners_of_the_report(self, samples: Folder, report: ProfileReport) -> None:
        owners = {row["entry"]: row["owner"] for row in rows_of(ask(samples, "ledger", path=UNTIDY))}
        names = {entry.id: entry.owner.name for entry in report.ledger.entries}
        in_repository = {
            each: re.sub(r"^(?=train\.py:)", f"sample_runs/{UNTIDY}/", name) for each, name in names.items()
        }
        assert owners == {each: quoted(name) for each, name in in_repository.items()}

    @pytest.mark.parametrize("step", ["3", "ProfilerStep#3", "«ProfilerStep#3»"])
    def test_of_one_step(self, step: str, samples: Folder) -> None:
        found = ask(samples, "ledger", path=UNTIDY, step=step)
        assert found["step"] == "«ProfilerStep#3»"
        assert sum(row["us_per_step"] for row in rows_of(found)) == pytest.approx(found["step_us"], abs=1e-6)

    def test_a_step_that_was_not_recorded(self, samples: Folder) -> None:
        with pytest.raises(NotFoundError, match="This step does not exist"):
            ask(samples, "ledger", path=UNTIDY, step="99")


class TestFindings:
    def test_are_those_of_the_report(self, samples: Folder, report: ProfileReport) -> None:
        rows = rows_of(ask(samples, "findings", path=UNTIDY))
        assert [row["finding"] for row in rows] == [each.id for each in report.findings]
        savings = [each.saving.expected_ns if each.saving else None for each in report.findings]
        assert [row["saving_us"] for row in rows] == [None if ns is None else round(ns / 1000, 1) for ns in savings]

    def test_of_one_rule(self, samples: Folder) -> None:
        rows = rows_of(ask(samples, "findings", path=UNTIDY, rule="python-loop-tensor-indexing"))
        assert [row["rule"] for row in rows] == ["python-loop-tensor-indexing"] * 2

    def test_count_outcomes(self, samples: Folder, report: ProfileReport) -> None:
        rules = ask(samples, "findings", path=UNTIDY)["rules"]
        assert sum(rules.values()) == len(report.outcomes)
        assert rules["found"] == len({each.rule for each in report.findings})

    def test_of_several_ranks_stand_once(self, tmp_path: Path) -> None:
        for worker in "ab":
            write_run(tmp_path / "run", f"{worker}.1.pt.trace.json")
        rows = rows_of(ask(Folder(tmp_path, Job()), "findings", rule="cat-in-loop"))
        assert [row["traces"] for row in rows] == [2]

    def test_a_trace_that_cannot_be_read_is_named(self, tmp_path: Path) -> None:
        write_run(tmp_path / "run")
        (tmp_path / "run" / "b.1.pt.trace.json").write_text("{")
        (problem,) = ask(Folder(tmp_path, Job()), "findings")["problems"]
        assert problem.startswith("«t-")


class TestFinding:
    def test_has_evidence_and_source(self, samples: Folder, report: ProfileReport) -> None:
        (finding,) = (each for each in report.findings if each.rule == "optimizer-single-tensor")
        found = ask(samples, "finding", finding=finding.id, path=UNTIDY)
        parts = [part for part, _ in found["rows"]]
        assert parts == ["message", "fix", *["evidence"] * len(found["rows"][2:-2]), "place", "source"]
        line = (SAMPLES / UNTIDY / "train.py").read_text().splitlines()[finding.places[0].line - 1]
        assert f">{finding.places[0].line} {line}" in found["rows"][-1][1]

    def test_that_does_not_exist(self, samples: Folder) -> None:
        with pytest.raises(NotFoundError, match="This finding does not exist"):
            ask(samples, "finding", finding="none", path=UNTIDY)


class TestTables:
    @pytest.mark.parametrize("by", ["name", "shape", "line", "module"])
    def test_operators_are_those_of_the_summary(self, by: str, samples: Folder) -> None:
        (profile,) = summary_of(SAMPLES / UNTIDY, samples.job).profiles
        rows = rows_of(ask(samples, "operators", path=UNTIDY, by=by))
        wanted = profile.figures.operators[by]  # type: ignore[index]
        assert sum(row["calls"] for row in rows) == sum(row.calls for row in wanted)
        assert sum(row["host_self_us"] for row in rows) == pytest.approx(
            sum(row.host_self_ns for row in wanted) / 1000, rel=1e-4
        )

    def test_calls_are_those_in_the_trace(self, samples: Folder) -> None:
        (row,) = rows_of(ask(samples, "operators", path=UNTIDY, text="aten::mkldnn_convolution"))
        assert row["calls"] == sum(each.get("name") == "aten::mkldnn_convolution" for each in events_of(UNTIDY))

    def test_orders(self, samples: Folder) -> None:
        found = ask(samples, "operators", path=UNTIDY, order="calls", descending=False)
        calls = [row["calls"] for row in rows_of(found)]
        assert calls == sorted(calls)
        with pytest.raises(NotFoundError, match="This column does not exist"):
            ask(samples, "operators", path=UNTIDY, order="key")

    def test_kernels_say_what_is_missing(self, samples: Folder) -> None:
        found = ask(samples, "kernels", path=UNTIDY)
        assert (found["total"], "no device activity" in found["missing"]) == (0, True)


class TestTimeline:
    @pytest.mark.parametrize("python", [False, True])
    def test_each_event_of_the_window_counts_once(self, python: bool, samples: Folder) -> None:
        found = ask(samples, "timeline", path=UNTIDY, lane="Thread", python=python, parts=1_000)
        start = min(each["ts"] for each in timed_in(UNTIDY))
        kinds = {"cpu_op", "user_annotation", *(["python_function"] if python else [])}
        inside = [
            each
            for each in timed_in(UNTIDY)
            if each["cat"] in kinds
            and each["ts"] - start < found["to_us"]
            and each["ts"] + each["dur"] - start > found["from_us"]
        ]
        assert sum(row["events"] for row in rows_of(found)) == pytest.approx(len(inside), rel=0.001)

    def test_without_a_window_shows_a_step_of_median_length(self, samples: Folder, report: ProfileReport) -> None:
        found = ask(samples, "timeline", path=UNTIDY)
        assert (found["to_us"] - found["from_us"]) * 1000 == pytest.approx(report.steps.median_ns, abs=200)

    def test_rows_are_in_order_and_inside(self, samples: Folder) -> None:
        found = ask(samples, "timeline", path=UNTIDY, from_us=1_000, to_us=2_000)
        starts = [row["start_us"] for row in rows_of(found)]
        assert starts == sorted(starts)
        assert max(starts) < 2_000

    @pytest.mark.parametrize("window", [{"from_us": 5, "to_us": 5}, {"from_us": 1e12}, {"lane": "no such"}])
    def test_an_empty_window_is_said(self, window: dict[str, object], samples: Folder) -> None:
        with pytest.raises(NotFoundError):
            ask(samples, "timeline", path=UNTIDY, **window)


class TestCompare:
    def test_says_what_changed(self, samples: Folder) -> None:
        found = ask(samples, "compare", base=UNTIDY, candidate=TIDY)
        gone = [row for row in rows_of(found) if row["kind"] == "finding" and row["state"] == "«gone»"]
        assert found["verdict"] == "faster"
        assert found["low"] < found["ratio"] < found["high"] < 1
        assert len(gone) >= 4
        causes = [row for row in rows_of(found) if row["kind"] == "cause"]
        saved = sum(row["base_us"] - row["candidate_us"] for row in causes)
        assert saved == pytest.approx(found["realised_us"], rel=0.15)  # of means against medians

    def test_steps_of_one(self, samples: Folder) -> None:
        found = ask(samples, "compare", base=UNTIDY, candidate=UNTIDY, base_steps="2", candidate_steps="3-4")
        assert (found["base_steps"], found["candidate_steps"]) == (1, 2)

    def test_outside_is_refused(self, samples: Folder) -> None:
        with pytest.raises(NotFoundError, match="leads out"):
            ask(samples, "compare", base=UNTIDY, candidate="../docs")


class TestFixes:
    @pytest.fixture
    def run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
        folder = write_run(tmp_path / "run").parent
        monkeypatch.chdir(folder)
        return Folder(folder, Job(source_roots=(folder,)))

    def found_in(self, run: Folder) -> str:
        return str(rows_of(ask(run, "findings", rule="cat-in-loop"))[0]["finding"])

    def test_are_proposed_as_diffs(self, run: Folder) -> None:
        (row,) = rows_of(ask(run, "propose_fix", finding=self.found_in(run)))
        assert "\n-    rows = torch.zeros(4, 8)\n+    rows = [torch.zeros(4, 8)]\n" in row["diff"]
        assert (row["safety"], row["check"]) == ("«same results»", "«»")
        assert (run.root / "train.py").read_text() == SOURCE

    def test_are_applied_where_that_is_allowed_only(self, run: Folder) -> None:
        finding = self.found_in(run)
        with pytest.raises(QuestionError) as problem:
            ask(run, "apply_fix", finding=finding)
        assert "--allow-apply" in problem.value.advice
        assert (run.root / "train.py").read_text() == SOURCE
        found = ask(Folder(run.root, run.job, allows_apply=True), "apply_fix", finding=finding)
        assert found["written"] == 1
        assert "rows = [torch.zeros(4, 8)]" in (run.root / "train.py").read_text()

    def test_of_no_finding(self, run: Folder) -> None:
        with pytest.raises(NotFoundError, match="No trace has this finding"):
            ask(run, "propose_fix", finding="none")

    def test_that_cannot_be_made_say_why(self, run: Folder) -> None:
        finding = self.found_in(run)
        (run.root / "train.py").write_text("# another file\n")
        found = ask(run, "propose_fix", finding=finding)
        assert found["changes"] == 0
        assert "the file does not match the recording" in found["unfixed"][0]


class TestVerify:
    COMMAND: ClassVar[dict[str, object]] = {"before": ".", "command": ["no-such-program"]}

    def test_is_refused_unless_it_is_allowed(self, tmp_path: Path) -> None:
        with pytest.raises(QuestionError, match="runs programs"):
            ask(Folder(tmp_path, Job()), "verify", **self.COMMAND)

    @pytest.mark.skipif(os.name == "nt", reason="it does not run on Windows")
    def test_runs_the_program_where_it_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(TidyError, match="`no-such-program` cannot be started"):
            ask(Folder(tmp_path, Job(), allows_apply=True), "verify", **self.COMMAND)

    @pytest.mark.skipif(os.name == "nt", reason="it does not run on Windows")
    def test_runs_nothing_in_another_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        with pytest.raises(NotFoundError, match="leads out"):
            ask(Folder(tmp_path / "here", Job(), allows_apply=True), "verify", **self.COMMAND | {"before": ".."})


class TestExplain:
    @pytest.mark.parametrize("name", ["cat-in-loop", "CAT-in-loop"])
    def test_a_rule_by_name(self, name: str, samples: Folder) -> None:
        found = ask(samples, "explain", rule=name)
        assert found["rule"] == "cat-in-loop"
        assert found["rows"][0][0] == "What it finds"
        assert ask(samples, "explain", rule=found["code"]) == found

    def test_a_rule_that_does_not_exist(self, samples: Folder) -> None:
        with pytest.raises(NotFoundError, match="No such rule"):
            ask(samples, "explain", rule="none")


class TestQuestions:
    @pytest.mark.parametrize(
        "text",
        [
            "", "{", "[]", "null", "1", '{"question": "none"}', '{"path": ""}', '{"question": "runs", "paths": ""}',
            '{"question": "runs", "path": 1}', '{"question": "runs", "tokens": 1}', '{"question": "finding"}',
            '{"question": "runs", "tokens": 1e9}', '{"question": "timeline", "from_us": -1}', "[" * 10_000, b"\xff",
            '{"question": "verify", "before": "a\\u0000", "command": ["true"]}',
            '{"question": "operators", "by": "none"}', '{"question": "runs"}' + " " * (1 << 16),
        ],
    )  # fmt: skip
    def test_that_cannot_be_used_say_so(self, text: bytes | str, samples: Folder) -> None:
        with pytest.raises(QuestionError):
            answer(text, samples)

    @pytest.mark.parametrize("name", QUESTION_KINDS)
    def test_have_schemas_that_say_what_they_take(self, name: str) -> None:
        schema = schema_of(name)
        assert {"tokens", "cursor"} < set(schema["properties"])
        assert "question" not in schema["properties"]
        assert "$ref" not in json.dumps(schema)
        assert set(schema["required"]) <= set(schema["properties"])

    def test_errors_are_answers(self) -> None:
        problem = json.loads(error(TidyError("`a»\x1b` broke.", "Try again.", ["Traceback", "  x"])))
        assert problem == {"error": "«`a\ufffd\ufffd` broke.»", "advice": "Try again.", "said": "«Traceback\n  x»"}


@lru_cache(maxsize=1)
def events_of(run: str) -> list[dict[str, Any]]:
    (trace,) = (SAMPLES / run).glob("*.pt.trace.json.gz")
    events: list[dict[str, Any]] = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    return events


def timed_in(run: str) -> list[dict[str, Any]]:
    return [each for each in events_of(run) if each.get("ph") == "X" and each.get("cat") != "Trace"]
