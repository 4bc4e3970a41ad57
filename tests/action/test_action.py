"""The steps of the GitHub Action, run as the runner runs them, with a `gh` that answers from files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # types are not worth a package

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github" / "actions" / "tidy"
STEPS = {step["name"]: step for step in yaml.safe_load((ACTION / "action.yml").read_text())["runs"]["steps"]}
UNTIDY, TIDY = (ROOT / "sample_runs" / f"image_classifier_{kind}" for kind in ("untidy", "tidy"))

TB_TIDY = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT)!r})
from tb_tidy_plugin.cli.main import main
main()
"""

GH = f"""#!{sys.executable}
import json, os, pathlib, shutil, sys
folder = pathlib.Path(os.environ["GH_FOLDER"])
arguments = sys.argv[1:]
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
if arguments[:2] == ["run", "list"]:
    print("77" if (folder / "kept").exists() else "")
elif arguments[:2] == ["run", "download"]:
    [to] = [each.removeprefix("--dir=") for each in arguments if each.startswith("--dir=")]
    shutil.copytree(folder / "kept", to)
elif "--paginate" in arguments:
    print((folder / "comments").read_text() if (folder / "comments").exists() else "", end="")
elif (folder / "refuses").exists():
    sys.exit(1)
else:
    [body] = [each.removeprefix("--field=body=@") for each in arguments if each.startswith("--field=body=@")]
    shutil.copy(body, folder / "body")
"""


@dataclass(frozen=True)
class Runner:
    """A job: its folder, and what its steps said so far."""

    folder: Path

    def step(self, name: str, values: Mapping[str, str], **variables: str) -> tuple[int, str, dict[str, str]]:
        """Exit code, standard output and outputs of a step, for `values` of its expressions; others are empty."""
        step = STEPS[name]
        expressions = {key: re.fullmatch(r"\$\{\{ (.*) \}\}", value) for key, value in step["env"].items()}
        given = {key: values.get(match[1], "") for key, match in expressions.items() if match}
        output, summary = self.folder / "output", self.folder / "summary"
        output.write_text("")
        environment = os.environ | given | variables | {
            "PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}", "GITHUB_ACTION_PATH": str(ACTION),
            "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary), "RUNNER_TEMP": str(self.folder),
            "GITHUB_REPOSITORY": "me/mine", "GITHUB_WORKFLOW": "Speed & more", "GH_FOLDER": str(self.folder),
        }  # fmt: skip
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, env=environment, cwd=self.folder, stdout=subprocess.PIPE, text=True, check=False)
        said = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return done.returncode, done.stdout, said

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of each call of `gh`."""
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    for name, program in (("tb-tidy", TB_TIDY), ("gh", GH)):
        (tmp_path / name).write_text(program)
        (tmp_path / name).chmod(0o755)
    return Runner(tmp_path)


def test_no_input_is_part_of_a_command() -> None:
    commands = [step["run"] for step in STEPS.values() if "run" in step]
    assert len(commands) == 5
    assert not [command for command in commands if "${{" in command]


def test_the_check_writes_report_and_findings_and_says_what_was_reached(runner: Runner) -> None:
    code, _, said = runner.step("Check", {"inputs.traces": str(UNTIDY), "inputs.fail-on": "high"})
    assert (code, said["reached"]) == (0, "1")
    report = Path(said["report"]).read_text()
    assert "dataloader-num-workers-zero" in report
    assert (runner.folder / "summary").read_text() == report
    assert json.loads(Path(said["sarif"]).read_text())["version"] == "2.1.0"


@pytest.mark.parametrize("code", [0, 1, 70])
def test_a_check_that_ends_without_a_report_is_said_whatever_its_code(runner: Runner, code: int) -> None:
    """A crash exits with 1, as a check that reaches a limit does: it ended the job without a word."""
    (runner.folder / "tb-tidy").write_text(f"#!/bin/sh\nexit {code}\n")
    ended, said, outputs = runner.step("Check", {"inputs.traces": str(UNTIDY), "inputs.fail-on": "high"})
    assert (ended, outputs) == (code or 1, {})
    assert f"::error::TorchTidy: `tb-tidy check` ended with code {code} and without a report" in said


def test_traces_of_which_none_can_be_read_fail_with_their_reasons_in_the_summary(runner: Runner) -> None:
    (runner.folder / "w.pt.trace.json").write_text("{")
    code, said, _ = runner.step("Check", {"inputs.traces": "w.pt.trace.json"})
    assert (code, "::error::TorchTidy: no trace could be read" in said) == (2, True)
    assert "w.pt.trace.json" in (runner.folder / "summary").read_text()


def test_recordings_are_read_once(runner: Runner) -> None:
    """Answers of rules from outside of the package are not cached: a second run would read everything again."""
    real = (runner.folder / "tb-tidy").rename(runner.folder / "real")
    (runner.folder / "tb-tidy").write_text(f'#!/bin/sh\necho run >> calls-of-tidy\nexec {real} "$@"\n')
    (runner.folder / "tb-tidy").chmod(0o755)
    assert runner.step("Check", {"inputs.traces": str(UNTIDY)})[0] == 0
    assert (runner.folder / "calls-of-tidy").read_text() == "run\n"


def test_known_findings_do_not_count(runner: Runner) -> None:
    subprocess.run(["./tb-tidy", "check", UNTIDY, "--write-baseline", "known"], cwd=runner.folder, check=True)
    inputs = {"inputs.traces": str(UNTIDY), "inputs.fail-on": "high", "inputs.baseline": "known"}
    assert runner.step("Check", inputs)[2]["reached"] == "0"


@pytest.mark.parametrize("traces", ["nothing-here", "--help", "$(touch made)"])
def test_a_check_of_nothing_fails(runner: Runner, traces: str) -> None:
    code, said, _ = runner.step("Check", {"inputs.traces": traces})
    assert code == 2
    assert "::error::TorchTidy: `tb-tidy check` ended with code 2 and without a report" in said
    assert not (runner.folder / "made").exists()


def test_the_recordings_of_the_base_branch_are_compared_with(runner: Runner) -> None:
    (runner.folder / "kept").symlink_to(TIDY)
    inputs = {"inputs.traces": str(UNTIDY), "inputs.artifact": "speed", "inputs.fail-on-regression": "5%"}
    code, _, said = runner.step("Compare with the base branch", inputs, GITHUB_BASE_REF="main")
    assert (code, said["slower"]) == (0, "1")
    assert Path(said["comparison"]).read_text().startswith("### Slower")
    listed, downloaded = runner.calls
    assert {"--branch=main", "--event=push", "--workflow=Speed & more", "--status=success"} <= {*listed}
    assert downloaded[2:5] == ["77", "--repo=me/mine", "--name=speed"]


@pytest.mark.parametrize(("base", "said"), [("main", "has kept no recordings yet"), ("", "Not a pull request")])
def test_nothing_to_compare_with_is_said(runner: Runner, base: str, said: str) -> None:
    code, text, outputs = runner.step(
        "Compare with the base branch", {"inputs.traces": str(UNTIDY)}, GITHUB_BASE_REF=base
    )
    assert (code, outputs) == (0, {})
    assert said in text


@pytest.mark.parametrize(
    ("comments", "target"),
    [
        ("", ["--method=POST", "repos/me/mine/issues/5/comments"]),
        ("12\n13\n", ["--method=PATCH", "repos/me/mine/issues/comments/12"]),
    ],
)
def test_one_comment_is_written_and_then_updated(runner: Runner, comments: str, target: list[str]) -> None:
    report, comparison = runner.folder / "report.md", runner.folder / "comparison.md"
    report.write_text("the report\n" + "wörds and words\n" * 6_000)
    comparison.write_text("the comparison\n")
    (runner.folder / "comments").write_text(comments)
    values = {
        "inputs.artifact": "my $(speed)", "github.event.pull_request.number": "5",
        "steps.check.outputs.report": str(report), "steps.compare.outputs.comparison": str(comparison),
    }  # fmt: skip
    assert runner.step("Comment", values)[0] == 0
    asked, written = runner.calls
    assert 'startswith("<!-- torchtidy: my---speed- -->")' in asked[-1]
    assert '.user.type == "Bot"' in asked[-1]
    assert written[1:3] == target
    body = (runner.folder / "body").read_text()
    assert body.startswith("<!-- torchtidy: my---speed- -->\nthe comparison\n\nthe report\nwörds")
    assert body.endswith("\nwörds and words\n\nThe rest is in the summary of the job.\n")
    assert 59_000 < len(body.encode()) < 61_000


def test_a_comment_that_may_not_be_written_is_a_warning(runner: Runner) -> None:
    (runner.folder / "refuses").touch()
    (runner.folder / "report.md").write_text("the report\n")
    values = {"steps.check.outputs.report": str(runner.folder / "report.md"), "inputs.artifact": "speed"}
    code, said, _ = runner.step("Comment", values)
    assert code == 0
    assert "::warning::TorchTidy: the comment cannot be written" in said


@pytest.mark.parametrize(("reached", "slower", "code"), [("0", "", 0), ("1", "0", 1), ("0", "1", 1)])
def test_the_result_comes_last(runner: Runner, reached: str, slower: str, code: int) -> None:
    values = {"steps.check.outputs.reached": reached, "steps.compare.outputs.slower": slower}
    assert runner.step("Result", values)[0] == code
    assert [*STEPS][-1] == "Result"


def _examples() -> list[dict[str, Any]]:
    """The YAML in docs/ci.md."""
    text = (ROOT / "docs" / "ci.md").read_text()
    return [yaml.load(block, yaml.BaseLoader) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


def test_what_the_page_says_to_write_is_there_and_needs_nothing_filled_in() -> None:
    job, hooks = _examples()
    [used] = [step["uses"] for step in job["jobs"]["speed"]["steps"] if "tidy" in step.get("uses", "")]
    assert (ROOT / used / "action.yml").is_file()
    [repository], [known] = hooks["repos"], yaml.load((ROOT / ".pre-commit-hooks.yaml").read_text(), yaml.BaseLoader)
    [hook] = repository["hooks"]
    same = ("id", "entry", "files", "pass_filenames", "require_serial")
    assert (repository["repo"], {key: hook[key] for key in same}) == ("local", {key: known[key] for key in same})


def test_programs_of_others_are_named_by_the_hash_of_a_commit() -> None:
    """A tag can be moved to other code, which would run with the job's token."""
    used = [step["uses"] for step in STEPS.values() if "uses" in step]
    assert len(used) == 2
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each)] == []


def test_the_hook_of_pre_commit_checks_when_a_recording_changes(runner: Runner) -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    command = [str(runner.folder / hook["entry"].split()[0]), *hook["entry"].split()[1:], *hook["args"]]
    assert subprocess.run(command, cwd=UNTIDY, stdout=subprocess.DEVNULL, check=False).returncode == 1
    assert re.search(hook["files"], "runs/host.1.pt.trace.json.gz")
    assert not re.search(hook["files"], "config.json")
