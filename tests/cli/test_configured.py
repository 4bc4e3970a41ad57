"""The configuration as the command line finds it, and the files that it writes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tb_tidy_plugin.report.model import ProfileReport, Report
from tb_tidy_plugin.rules import all_rules
from tb_tidy_plugin.system.decoders import decode
from tests.support import commands
from tests.support.logdirs import trace
from tests.support.recordings import ROOT
from tests.support.user_rule import write_rule

UNTIDY = ROOT / "sample_runs" / "image_classifier_untidy"
EVERYTHING = {rule.name() for rule in all_rules()}


def tidy(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return commands.tidy(*arguments, cwd=folder, environment={"COLUMNS": "200", "PYTHONPATH": str(ROOT)})


def checked(folder: Path, *arguments: str | Path) -> ProfileReport:
    done = tidy(folder, "check", "--format", "json", *arguments)
    assert done.returncode == 0, done.stderr
    (profile,) = decode(done.stdout, Report).runs[0].profiles
    return profile


def rules_of(profile: ProfileReport) -> set[str]:
    return {outcome.rule for outcome in profile.outcomes}


def findings_of(profile: ProfileReport) -> set[str]:
    return {finding.rule for finding in profile.findings}


def wrong(done: subprocess.CompletedProcess[str]) -> str:
    """The two lines of an error that a user can mend."""
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("tb-tidy: ")
    assert len(done.stderr.splitlines()) == 2
    return done.stderr


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace that is read quickly, for tests that ask which rules were checked."""
    return trace(tmp_path_factory.mktemp("small") / "run" / "w.1.pt.trace.json")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tb-tidy.toml").write_text('select = ["TT301", "TT302"]\nignore = ["zero-grad-memset"]\n')
    (tmp_path / "src").mkdir()
    (tmp_path / ".git").mkdir()
    return tmp_path


class TestWhichRules:
    def test_the_files_from_a_folder_below_it(self, small: Path, project: Path) -> None:
        assert rules_of(checked(project / "src", small)) == {"optimizer-single-tensor"}

    def test_isolated(self, small: Path, project: Path) -> None:
        assert rules_of(checked(project, small, "--isolated")) == EVERYTHING

    def test_another_file(self, small: Path, project: Path) -> None:
        (project / "src" / "other.toml").write_text('select = ["TT401"]\n')
        assert rules_of(checked(project, small, "--config", "src/other.toml")) == {"fp32-matmul-no-tf32"}

    def test_a_folder_without_a_file(self, small: Path, tmp_path: Path) -> None:
        assert rules_of(checked(tmp_path, small)) == EVERYTHING

    def test_select_and_ignore_win_over_the_file(self, small: Path, project: Path) -> None:
        assert rules_of(checked(project, small, "--select", "TT302,TT401")) == {
            "zero-grad-memset",
            "fp32-matmul-no-tf32",
        }
        assert rules_of(
            checked(project, small, "--select", "TT301,TT302", "--select", "TT401", "--ignore", "TT301, TT401")
        ) == {"zero-grad-memset"}
        assert rules_of(checked(project, small, "--isolated", "--ignore", "TT3")) == {
            rule.name() for rule in all_rules() if not rule.code.startswith("TT3")
        }

    def test_rule_wins_over_all(self, small: Path, project: Path) -> None:
        assert rules_of(checked(project, small, "--rule", "TT302")) == {"zero-grad-memset"}

    @pytest.mark.parametrize(
        "arguments", [("--rule", "TT302", "--select", "TT3"), ("--isolated", "--config", "tb-tidy.toml")]
    )
    def test_what_contradicts_itself_is_refused(self, small: Path, project: Path, arguments: tuple[str, ...]) -> None:
        done = tidy(project, "check", small, *arguments)
        assert done.returncode == 2
        assert "Give either" in done.stderr


class TestSettings:
    def test_a_threshold(self, project: Path) -> None:
        assert findings_of(checked(project, UNTIDY)) == {"optimizer-single-tensor"}
        with (project / "tb-tidy.toml").open("a") as file:
            file.write("[thresholds.optimizer-single-tensor]\nmin-share = 0.9\n")
        profile = checked(project, UNTIDY)
        assert findings_of(profile) == set()
        (outcome,) = profile.outcomes
        assert outcome.reason == "Left out: 1 finding below 90 % of a step (`min-share`)."
        assert "optimizer-single-tensor: Left out: 1 finding below" in tidy(project, "check", UNTIDY).stdout
        assert "passed: " not in tidy(project, "check", UNTIDY).stdout

    def test_files_to_ignore(self, project: Path) -> None:
        (project / "tb-tidy.toml").write_text('[per-path-ignores]\n"train.py" = ["python_loops"]\n')
        before, after = checked(project, UNTIDY, "--isolated"), checked(project, UNTIDY)
        assert findings_of(before) - findings_of(after) == {"python-loop-tensor-indexing"}
        (outcome,) = [each for each in after.outcomes if each.rule == "python-loop-tensor-indexing"]
        assert (outcome.status, outcome.reason) == ("clean", "Left out: 2 findings in files of `per-path-ignores`.")

    def test_summary_uses_them_too(self, project: Path) -> None:
        done = tidy(project, "summary", UNTIDY, "--format", "json")
        (profile,) = json.loads(done.stdout)["profiles"]
        assert [outcome["rule"] for outcome in profile["report"]["outcomes"]] == ["optimizer-single-tensor"]
        done = tidy(project, "summary", UNTIDY, "--format", "json", "--isolated")
        assert len(json.loads(done.stdout)["profiles"][0]["report"]["outcomes"]) == len(EVERYTHING)


class TestUserRules:
    @pytest.fixture
    def project(self, tmp_path: Path) -> Path:
        write_rule(tmp_path / "checks")
        (tmp_path / "tb-tidy.toml").write_text('rules = ["checks/slow_multiplication.py"]\n')
        trace(tmp_path / "run" / "w.1.pt.trace.json", operators=20)
        (tmp_path / "deep" / "down").mkdir(parents=True)
        (tmp_path / ".git").mkdir()
        return tmp_path

    def test_its_findings(self, project: Path) -> None:
        profile = checked(project / "deep" / "down", project / "run")
        assert findings_of(profile) == {"slow-multiplication"}
        assert profile.findings[0].category == "user"

    def test_sarif_has_it(self, project: Path) -> None:
        (run,) = json.loads(tidy(project, "check", "run", "--format", "sarif").stdout)["runs"]
        assert [result["ruleId"] for result in run["results"]] == ["TT999"]

    def test_one_that_crashes_leaves_the_others_unharmed(self, project: Path) -> None:
        write_rule(
            project / "checks", "slow_multiplication.py", ("yield Match(row, (row,), ", "yield Match(1 // 0, (row,), ")
        )
        done = tidy(project, "check", "run")
        assert done.returncode == 0
        assert "failed: slow-multiplication: ZeroDivisionError" in done.stdout
        assert "passed: " in done.stdout

    def test_one_that_crashes_when_its_finding_is_made(self, project: Path) -> None:
        remedy = "    def remedy(self, profile, match):\n        raise KeyError('nothing')\n\n    def evidence_of"
        write_rule(project / "checks", "slow_multiplication.py", ("    def evidence_of", remedy))
        done = tidy(project, "check", "run")
        assert done.returncode == 0
        assert "failed: slow-multiplication: KeyError: 'nothing'" in done.stdout

    def test_one_that_cannot_be_imported(self, project: Path) -> None:
        (project / "checks" / "slow_multiplication.py").write_text("import no_such_module\n")
        for command in (("check", "run"), ("rules",), ("explain", "TT302"), ("summary", "run")):
            said = wrong(tidy(project, *command))
            assert "line 1 of" in said
            assert "ModuleNotFoundError: No module named 'no_such_module'" in said


class TestOneThatIsNotTrusted:
    """`tests/cli/test_strange_configurations.py` has the others; here is what a user sees."""

    @pytest.fixture
    def download(self, tmp_path: Path) -> Path:
        folder = tmp_path / "down load"
        write_rule(folder / "checks")
        trace(folder / "w.1.pt.trace.json", operators=20)
        text = 'rules = ["checks/slow_multiplication.py"]\nselect = ["TT999", "TT3"]\n[limits]\nmax-inflation = 1000\n'
        (folder / "tb-tidy.toml").write_text(text)
        return folder

    def test_one_line_says_what_to_do_and_that_works(self, download: Path) -> None:
        done = tidy(download, "check", ".", "--format", "json")
        (profile,) = decode(done.stdout, Report).runs[0].profiles
        assert findings_of(profile) == set()
        assert done.stderr == (
            f"tb-tidy: `rules` and `limits` in `{download / 'tb-tidy.toml'}` are not used: `tb-tidy.toml` is in "
            f"`{download}`, which this command analyses. If you trust the file, give `--config tb-tidy.toml`.\n"
        )
        named = tidy(download, "check", ".", "--config", "tb-tidy.toml", "--format", "json")
        assert named.stderr == ""
        (profile,) = decode(named.stdout, Report).runs[0].profiles
        assert findings_of(profile) == {"slow-multiplication"}

    def test_from_another_folder_its_whole_path_is_given(self, download: Path) -> None:
        (download / ".git").mkdir()
        done = tidy(download / "checks", "check", "..")
        assert f"give `--config '{download / 'tb-tidy.toml'}'`." in done.stderr

    def test_who_asks_for_its_rule_is_told_both(self, download: Path) -> None:
        done = tidy(download, "check", ".", "--rule", "TT999")
        first, second, _ = done.stderr.splitlines()
        assert "`rules` and `limits` in" in first
        assert second == "tb-tidy: There is no rule `TT999`."

    def test_names_cannot_steer_the_terminal(self, tmp_path: Path) -> None:
        folder = tmp_path / "\x1b]0;title\x07\n"
        write_rule(folder)
        trace(folder / "w.1.pt.trace.json")
        (folder / "tb-tidy.toml").write_text('rules = ["slow_multiplication.py"]\n')
        done = tidy(folder, "check", ".")
        assert "not used" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert "\x1b" not in done.stderr


class TestWhatIsWrong:
    def test_an_unknown_key(self, small: Path, project: Path) -> None:
        (project / "tb-tidy.toml").write_text("selct = []\n")
        said = wrong(tidy(project / "src", "check", small))
        assert f"`{project / 'tb-tidy.toml'}` has an unknown key `selct`.\nDid you mean `select`?" in said

    def test_a_file_that_is_not_there(self, small: Path, project: Path) -> None:
        assert "`no.toml` cannot be read" in wrong(tidy(project, "check", small, "--config", "no.toml"))

    def test_isolated_does_not_even_look(self, project: Path) -> None:
        (project / "tb-tidy.toml").write_text("=")
        assert tidy(project, "rules", "--isolated").returncode == 0

    def test_an_unknown_selector(self, small: Path, project: Path) -> None:
        said = wrong(tidy(project, "check", small, "--select", "optimiser"))
        assert "`optimiser` in `--select` names no rule.\nDid you mean `optimizer`?" in said


class TestOutput:
    @pytest.mark.parametrize("form", ["text", "json", "markdown", "sarif", "html"])
    def test_a_file_holds_what_the_terminal_would_show(self, small: Path, tmp_path: Path, form: str) -> None:
        shown = tidy(tmp_path, "check", small, "--format", form)
        done = tidy(tmp_path, "check", small, "--format", form, "-o", "report.txt")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (tmp_path / "report.txt").read_text(encoding="utf-8") == shown.stdout
        assert [path.name for path in tmp_path.iterdir()] == ["report.txt"]

    def test_fail_on_counts_as_ever_and_the_file_is_written(self, tmp_path: Path) -> None:
        done = tidy(tmp_path, "check", UNTIDY, "--format", "sarif", "-o", "a.sarif", "--fail-on", "high")
        assert done.returncode == 1
        assert json.loads((tmp_path / "a.sarif").read_text())["version"] == "2.1.0"

    def test_what_was_there_is_replaced_and_a_link_stays_one(self, small: Path, tmp_path: Path) -> None:
        (tmp_path / "old.json").write_text("x" * 1_000_000)
        (tmp_path / "link.json").symlink_to("old.json")
        assert tidy(tmp_path, "check", small, "--format", "json", "-o", "link.json").returncode == 0
        assert (tmp_path / "link.json").is_symlink()
        assert json.loads((tmp_path / "old.json").read_text())["schema"] == 1

    def test_what_is_no_file_is_written_into(self, small: Path, tmp_path: Path) -> None:
        assert tidy(tmp_path, "check", small, "--format", "json", "-o", os.devnull).returncode == 0
        assert not Path(os.devnull).is_file()

    @pytest.mark.parametrize("name", [".", "nowhere/report.json", "x" * 300])
    def test_a_place_that_cannot_be_written(self, small: Path, tmp_path: Path, name: str) -> None:
        said = wrong(tidy(tmp_path, "check", small, "--format", "json", "-o", name))
        assert f"`{name}` could not be written" in said
        assert list(tmp_path.iterdir()) == []

    def test_nothing_read_writes_why(self, tmp_path: Path) -> None:
        (tmp_path / "w.1.pt.trace.json").write_bytes(b"")
        done = tidy(tmp_path, "check", ".", "--format", "sarif", "-o", "a.sarif")
        assert done.returncode == 2
        (run,) = json.loads((tmp_path / "a.sarif").read_text())["runs"]
        assert run["invocations"][0]["executionSuccessful"] is False
        assert "The file is empty." in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
