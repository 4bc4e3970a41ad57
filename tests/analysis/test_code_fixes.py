"""Findings of a report with the changes of the user's own code that fix them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tb_tidy_plugin.analysis import code_fixes, paths
from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.fixing import NOT_AS_RECORDED, Fixer
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.plugin.analysis_worker import first_findings, result_of
from tb_tidy_plugin.report.code_model import NEEDS_EXTRA, CodeFixes
from tb_tidy_plugin.report.model import Finding, Report
from tb_tidy_plugin.rules.python_loops.cat_in_loop import CatInLoop
from tb_tidy_plugin.trace.cache import Cache, state_of
from tb_tidy_plugin.trace.files import find_traces
from tests.support.whole_run import SOURCE, keep_source, write_run

ADDED = ["+    rows = [torch.zeros(4, 8)]", "+        rows.append(torch.zeros(4, 8))", "+    rows = torch.cat(rows)"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose one finding has a fix in `train.py` of the current folder."""
    folder = write_run(tmp_path / "run").parent
    (folder / "tb-tidy.toml").write_text('select = ["cat-in-loop"]\n', encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def job_on(run: Path) -> Job:
    return Job([CatInLoop()], source_roots=(run,))


def findings_in(report: Report) -> list[Finding]:
    return [finding for run in report.runs for profile in run.profiles for finding in profile.findings]


def fixes_in(run: Path) -> CodeFixes:
    [finding] = findings_in(analyze_path(run, job_on(run)))
    assert finding.code_fixes is not None
    return finding.code_fixes


def added(fixes: CodeFixes) -> list[str]:
    [change] = fixes.changes
    return [line for line in change.diff.splitlines() if line.startswith("+") and not line.startswith("+++")]


def printed(*arguments: str) -> str:
    return CliRunner().invoke(commands, [*arguments]).stdout


def test_a_finding_has_the_change_that_the_command_makes(run: Path) -> None:
    fixes = fixes_in(run)
    assert (added(fixes), fixes.reason) == (ADDED, None)
    assert (fixes.changes[0].safety, fixes.changes[0].needs_review) == ("same results", False)
    assert [msgspec.to_builtins(each) for each in fixes.changes] == json.loads(
        printed("fix", str(run), "--format", "json")
    )["fixes"]


def test_sarif_of_check_has_the_change(run: Path) -> None:
    [result] = json.loads(printed("check", str(run), "--format", "sarif"))["runs"][0]["results"]
    [fix] = result["fixes"]
    assert fix["artifactChanges"][0]["artifactLocation"]["uri"] == "train.py"


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_the_hint_names_the_command(run: Path, form: str) -> None:
    assert "Run `tb-tidy fix` for this change in your own code." in printed("check", str(run), "--format", form)


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_what_shows_no_change_makes_none(run: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_fixes, "with_code_fixes", None)
    monkeypatch.setattr(paths, "with_code_fixes", None)
    assert "cat-in-loop" in printed("check", str(run), "--format", form)


def test_the_page_names_the_command_that_makes_the_change(run: Path) -> None:
    assert "<code>tb-tidy fix</code> can make this change." in printed("check", str(run), "--format", "html")


def test_a_finding_whose_line_is_not_at_hand_names_no_command(run: Path) -> None:
    (run / "train.py").unlink()
    assert "tb-tidy fix" not in printed("check", str(run))


def test_the_page_shows_the_change_in_place_of_the_example(run: Path) -> None:
    page = printed("check", str(run), "--format", "html")
    assert all(line in page for line in ADDED)
    assert "The pattern in general, not your code:" not in page


def test_without_libcst_each_finding_says_so_and_the_text_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(run, run / "again")
    monkeypatch.setattr(code_fixes, "has_libcst", lambda: False)
    report = analyze_path(run, job_on(run))
    assert [each.code_fixes for each in findings_in(report)] == [CodeFixes([], NEEDS_EXTRA)] * 2
    for form in ("text", "markdown", "html"):
        assert " ".join(printed("check", str(run / "again"), "--format", form).split()).count("fix]") == 1


def test_a_file_that_was_changed_has_a_reason_and_keeps_the_example(run: Path) -> None:
    (run / "train.py").write_text(SOURCE.replace("6", "7"), encoding="utf-8")
    keep_source(run, SOURCE)
    assert fixes_in(run) == CodeFixes([], NOT_AS_RECORDED)
    page = printed("check", str(run), "--format", "html")
    assert "The pattern in general, not your code:" in page
    assert NOT_AS_RECORDED in page


def test_a_report_holds_no_fix_of_a_large_file(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_fixes, "MOST_SYNTAX_NODES", 10)
    fixes = fixes_in(run)
    assert (fixes.changes, fixes.reason) == (
        [],
        "The file is too large for a report to include its fixes. Run `tb-tidy fix`.",
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Grows with each change that is made."""
    proposal, found = Fixer.proposal, list[object]()

    def counted(*arguments: object) -> object:
        found.append(arguments)
        return proposal(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Fixer, "proposal", counted)
    return found


def test_the_change_of_one_place_is_made_once_for_all_ranks(run: Path, asked: list[object]) -> None:
    for rank in range(2, 5):
        write_run(run, f"w{rank}.1.pt.trace.json")
    findings = findings_in(analyze_path(run, job_on(run)))
    assert [added(each.code_fixes) for each in findings if each.code_fixes] == [ADDED] * 4
    assert len(asked) == 1


def test_the_worker_of_the_tab_makes_them_and_names_the_files(run: Path) -> None:
    """The file's state counts even where no line was looked up in it: a change of it makes the kept result stale."""
    [file] = find_traces(run)
    analysis = read_file(file, job_on(run))
    early = first_findings(analysis)
    assert [each.code_fixes for each in early.report.findings] == [None]
    result = result_of(analysis, early)
    [fixes] = [each.code_fixes for each in result.report.findings]
    assert fixes is not None
    assert added(fixes) == ADDED
    assert result.looked_at["train.py"] == state_of((run / "train.py").resolve())


def changes_kept_in(run: Path, folder: Path) -> CodeFixes | None:
    job = Job([CatInLoop()], source_roots=(run,), cache=Cache(folder))
    return findings_in(analyze_path(run, job))[0].code_fixes


def test_changes_are_kept_for_as_long_as_the_file_is_as_it_was(run: Path, tmp_path: Path, asked: list[object]) -> None:
    first = changes_kept_in(run, tmp_path / "kept")
    assert changes_kept_in(run, tmp_path / "kept") == first
    assert len(asked) == 1
    (run / "train.py").write_text(SOURCE.replace("6", "7"), encoding="utf-8")
    assert changes_kept_in(run, tmp_path / "kept") != first
    assert len(asked) == 2
    (run / "train.py").unlink()
    changes_kept_in(run, tmp_path / "kept")
    assert len(asked) == 3


def test_changes_of_a_rule_of_the_user_s_own_are_not_kept(
    run: Path, tmp_path: Path, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_fixes, "OWN_RULES", "another_package.")
    for _ in range(2):
        changes_kept_in(run, tmp_path / "kept")
    assert len(asked) == 2


def test_a_damaged_entry_is_passed_over(run: Path, tmp_path: Path, asked: list[object]) -> None:
    first = changes_kept_in(run, tmp_path / "kept")
    (entry,) = (tmp_path / "kept").glob(f"{code_fixes.CODE_CHANGES}-*")
    cache, key = Cache(tmp_path / "kept"), entry.stem.partition("-")[2]
    cache.keep(code_fixes.CODE_CHANGES, key, [b'[{"change": 1}]'])
    assert changes_kept_in(run, tmp_path / "kept") == first
    assert len(asked) == 2
