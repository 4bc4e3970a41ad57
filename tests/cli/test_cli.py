"""The command line as a user meets it: a process, its output and its exit code."""

from __future__ import annotations

import gzip
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click
import jsonschema
import pytest
from click.testing import CliRunner

from tb_tidy_plugin import __version__, cli
from tb_tidy_plugin.cli import main
from tb_tidy_plugin.cli.main import COMMANDS
from tb_tidy_plugin.report.model import Report
from tb_tidy_plugin.rulekit.page import page_of
from tb_tidy_plugin.rules import all_rules, catalogue
from tb_tidy_plugin.system.decoders import decode
from tests.support import commands
from tests.support.environments import same_imports
from tests.support.recordings import ROOT, shared, shared_names
from tests.support.written import event, kineto_text, write

SAMPLES = ROOT / "sample_runs"


def tidy(*arguments: str | Path, width: int = 100) -> subprocess.CompletedProcess[str]:
    return commands.tidy(*arguments, environment={"COLUMNS": str(width)})


def traced(folder: Path, name: str = "w.1.pt.trace.json", op: str = "aten::mm") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    step = event("ProfilerStep#1", 0, 1000, cat="user_annotation")
    return write(folder / name, kineto_text([step, event(op, 10, 100)]))


class TestCheck:
    def test_text(self) -> None:
        done = tidy("check", SAMPLES / "image_classifier_untidy")
        assert done.returncode == 0, done.stderr
        assert "image_classifier_untidy · workstation" in done.stdout
        assert "3 steps, median" in done.stdout
        assert done.stderr == "", "no progress bar where stderr is not a terminal"
        assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == [], (
            "no line is filled with spaces"
        )

    @pytest.mark.parametrize("form", ["json", "sarif"])
    def test_no_printer_is_imported_for_what_needs_none(self, tmp_path: Path, form: str) -> None:
        told = "import atexit, sys; atexit.register(lambda: sys.stderr.write(' '.join(sys.modules)))"
        code = f"{told}; from tb_tidy_plugin.cli.main import script; script()"
        done = subprocess.run(
            [sys.executable, "-c", code, "check", str(traced(tmp_path)), "--isolated", "--format", form],
            cwd=ROOT, capture_output=True, text=True, timeout=600, check=True,
        )  # fmt: skip
        modules = set(done.stderr.split())
        assert "tb_tidy_plugin.cli.check" in modules
        assert not {"rich", "jinja2", "tb_tidy_plugin.render.report", "tb_tidy_plugin.render.terminal"} & modules

    @pytest.mark.parametrize("packed", [bytes, gzip.compress])
    def test_a_dash_is_stdin_and_stdout(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: Callable[[bytes], bytes]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        text = packed(traced(tmp_path / "runs").read_bytes())
        asked = ["check", "-", "--isolated", "--no-cache", "--format", "json", "-o", "-"]
        done = CliRunner().invoke(main.commands, asked, input=text)
        report = decode(done.stdout, Report)
        assert (done.exit_code, len(report.runs), report.problems) == (0, 1, [])
        assert [path.name for path in tmp_path.iterdir()] == ["runs"]

    def test_several_formats_from_one_reading(self, tmp_path: Path) -> None:
        files = {form: tmp_path / form for form in ("json", "sarif", "html")}
        also = [f"--also={form}={file}" for form, file in files.items()]
        done = tidy("check", SAMPLES / "image_classifier_untidy", "--format", "markdown", *also)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("#")
        for form, file in files.items():
            alone = tidy("check", SAMPLES / "image_classifier_untidy", "--format", form)
            assert file.read_text("utf-8") == alone.stdout, form

    @pytest.mark.parametrize("given", ["sarif", "sarif=", "pdf=x", "=x"])
    def test_what_is_no_format_and_file_is_refused(self, tmp_path: Path, given: str) -> None:
        done = tidy("check", traced(tmp_path), "--also", given)
        assert (done.returncode, "Give FORMAT=FILE, with one of text, json" in done.stderr) == (2, True)

    def test_a_device_is_written_not_replaced(self, tmp_path: Path) -> None:
        code = "from tb_tidy_plugin.cli.main import script; script()"
        command = [sys.executable, "-c", code, "check", str(traced(tmp_path)), "--isolated", "--format", "json"]
        done = subprocess.run(
            [*command, "-o", "/dev/stdout"], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr
        assert decode(done.stdout, Report).problems == []

    def test_json_fits_its_schema_and_its_model(self) -> None:
        done = tidy("check", SAMPLES, "--format", "json")
        report = decode(done.stdout, Report)
        schema = json.loads((ROOT / "docs/report.schema.json").read_text())
        jsonschema.validate(json.loads(done.stdout), schema)
        assert (report.schema, report.version, report.problems) == (1, __version__, [])
        assert [run.run for run in report.runs] == sorted(
            path.name for path in SAMPLES.iterdir() if list(path.glob("*.pt.trace.json*"))
        )

    def test_every_rule_gives_an_outcome(self) -> None:
        done = tidy("check", SAMPLES / "image_classifier_untidy", "--format", "json")
        (profile,) = decode(done.stdout, Report).runs[0].profiles
        assert [outcome.rule for outcome in profile.outcomes] == [rule.name() for rule in all_rules()]
        assert {finding.rule for finding in profile.findings} == {
            outcome.rule for outcome in profile.outcomes if outcome.status == "found"
        }

    def test_one_rule(self) -> None:
        done = tidy("check", SAMPLES / "image_classifier_untidy", "--format", "json", "--rule", "zero-grad-memset")
        (profile,) = decode(done.stdout, Report).runs[0].profiles
        assert [outcome.rule for outcome in profile.outcomes] == ["zero-grad-memset"]

    def test_an_unknown_rule_and_the_one_that_was_meant(self) -> None:
        done = tidy("check", SAMPLES, "--rule", "zero-grad-memsett")
        assert done.returncode == 2
        assert done.stderr == "tb-tidy: There is no rule `zero-grad-memsett`.\nDid you mean `zero-grad-memset`?\n"

    @pytest.mark.parametrize(("run", "code"), [("image_classifier_untidy", 1), ("image_classifier_tidy", 0)])
    def test_fail_on(self, run: str, code: int) -> None:
        assert tidy("check", SAMPLES / run, "--fail-on", "high").returncode == code

    def test_a_file_a_run_and_a_logdir(self, tmp_path: Path) -> None:
        path = traced(tmp_path / "logs" / "run1")
        for given in (path, path.parent, path.parent.parent):
            done = tidy("check", given, "--format", "json")
            (run,) = decode(done.stdout, Report).runs
            assert (run.run, run.profiles[0].worker, run.profiles[0].span) == ("run1", "w", "1")

    def test_names_in_a_trace_cannot_drive_the_terminal(self, tmp_path: Path) -> None:
        folder = tmp_path / "run\x1b[31m[bold]"
        done = tidy("check", traced(folder).parent)
        assert done.returncode == 0
        assert "\x1b" not in done.stdout
        assert "[bold]" in done.stdout


class TestMistyped:
    """A name that is almost right is suggested."""

    @pytest.mark.parametrize(
        ("typed", "meant"),
        [
            (("chekc", SAMPLES), "Did you mean `check`?"),
            (("Check", SAMPLES), "Did you mean `check`?"),
            (("merge_device_events",), "Did you mean `merge-device-events`?"),
            (("xyzzy",), "`tb-tidy --help` lists all commands."),
            (("explain", "zero-grad-mem"), "Did you mean `zero-grad-memset`?"),
        ],
    )
    def test_a_name(self, typed: tuple[str, ...], meant: str) -> None:
        done = tidy(*typed)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines()[-1] == meant

    @pytest.mark.parametrize("limit", ["high", "HIGH", "High"])
    def test_severities_in_any_case(self, limit: str) -> None:
        assert tidy("check", SAMPLES / "image_classifier_untidy", "--fail-on", limit).returncode == 1


class TestSeveralPaths:
    """They are analysed together, named as in the folder around them."""

    def test_named_as_in_the_folder_around_them(self, tmp_path: Path) -> None:
        for name in ("a/run", "b/run", "c"):
            traced(tmp_path / name)
        paths = [tmp_path / "a" / "run", tmp_path / "b" / "run" / "w.1.pt.trace.json"]
        done = tidy("check", *paths, "--format", "json")
        assert [run.run for run in decode(done.stdout, Report).runs] == ["a/run", "b/run"]

    @pytest.mark.parametrize("command", ["check", "summary", "fix"])
    def test_one_that_is_not_there_does_not_hide_the_others(self, tmp_path: Path, command: str) -> None:
        traced(tmp_path / "a")
        done = tidy(command, tmp_path / "a", tmp_path / "nowhere", "--format", "json")
        (problem,) = json.loads(done.stdout)["problems"]
        assert (done.returncode, problem["path"]) == (2, str(tmp_path / "nowhere"))
        assert "does not exist" in problem["error"]

    def test_none_of_them_is_there(self, tmp_path: Path) -> None:
        done = tidy("check", tmp_path / "x", tmp_path / "y")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"tb-tidy: `{tmp_path / 'x'}` does not exist.")

    def test_configurations_in_none_of_them_are_trusted(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            traced(tmp_path / name)
        (tmp_path / "b" / "tb-tidy.toml").write_text('rules = ["own.py"]\n')
        (tmp_path / "b" / "own.py").write_text("print('run')\n")
        done = commands.tidy("check", "../a", ".", cwd=tmp_path / "b")
        assert "is not used" in done.stderr
        assert done.returncode == 0


COMPLETED = {
    "che": {"check"},
    "explain zero-g": {"zero-grad-memset"},
    "explain TT30": {rule.code for rule in catalogue() if rule.code.startswith("TT30")},
    "check --rule zero-g": {"zero-grad-memset"},
    "check --select memory,zero-g": {"memory,zero-grad-memset"},
    "check --ignore optim": {"optimizer", "optimizer-single-tensor"},
    "check --fail-on h": {"high"},
}


@pytest.mark.parametrize("typed", COMPLETED)
def test_a_shell_completes(typed: str) -> None:
    environment = {
        "_TB_TIDY_COMPLETE": "bash_complete",
        "COMP_WORDS": f"tb-tidy {typed}",
        "COMP_CWORD": str(len(typed.split())),
    }
    start = "import sys; sys.argv[0] = 'tb-tidy'; from tb_tidy_plugin.cli.main import script; script()"
    done = subprocess.run(
        [sys.executable, "-c", start], cwd=ROOT, env=same_imports() | environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    offered = {line.removeprefix("plain,") for line in done.stdout.splitlines()}
    assert COMPLETED[typed] <= offered
    assert all(each.startswith(typed.rsplit(maxsplit=1)[-1]) for each in offered)


class TestBadInput:
    def test_nothing_there(self, tmp_path: Path) -> None:
        done = tidy("check", tmp_path / "nowhere")
        assert (done.returncode, done.stdout) == (2, "")
        assert "does not exist" in done.stderr

    def test_a_folder_without_traces(self, tmp_path: Path) -> None:
        done = tidy("check", tmp_path)
        assert done.returncode == 2
        assert "tensorboard_trace_handler" in done.stderr

    @pytest.mark.parametrize(
        "data", [b"", b"not json", b'{"a": 1}', b'{"traceEvents": []}', gzip.compress(b"x", mtime=0)[:9]]
    )
    def test_a_broken_trace_alone(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "w.1.pt.trace.json").write_bytes(data)
        done = tidy("check", tmp_path)
        assert done.returncode == 2
        assert "problem: " in done.stdout
        assert "Traceback" not in done.stdout + done.stderr

    def test_a_broken_trace_leaves_the_others_unharmed(self, tmp_path: Path) -> None:
        traced(tmp_path / "good")
        (tmp_path / "bad").mkdir()
        (tmp_path / "bad" / "w.1.pt.trace.json").write_bytes(b"")
        done = tidy("check", tmp_path, "--format", "json")
        report = decode(done.stdout, Report)
        assert done.returncode == 2
        assert [run.run for run in report.runs] == ["good"]
        (problem,) = report.problems
        assert (problem.error, problem.recovered_events) == ("The file is empty.", 0)
        assert problem.path.endswith("bad/w.1.pt.trace.json")

    def test_a_truncated_trace_is_used_and_said_so(self, tmp_path: Path) -> None:
        path = traced(tmp_path / "run")
        text = path.read_text()
        path.write_text(text[: text.index("aten::mm")])
        done = tidy("check", tmp_path, "--format", "json")
        report = decode(done.stdout, Report)
        assert done.returncode == 0
        assert report.runs[0].profiles[0].quality.partial
        assert report.problems[0].recovered_events == 1


class TestRules:
    def test_list(self) -> None:
        done = tidy("rules", width=200)
        assert done.returncode == 0
        for rule in catalogue():
            assert f"{rule.code}" in done.stdout
            assert rule.name() in done.stdout

    @pytest.mark.parametrize("name", ["zero-grad-memset", "TT302", "tt302"])
    def test_explain(self, name: str) -> None:
        done = tidy("explain", name)
        assert done.returncode == 0, done.stderr
        for heading in ("What it finds", "Why it is slow", "Example", "When it stays quiet"):
            assert heading in done.stdout

    def test_a_pipe_gets_whole_lines(self) -> None:
        """However long, since rows may not be cut or wrapped; columns are apart by two spaces or more."""
        done = tidy("rules", width=40)
        heading, *rows = [re.split(r"\s{2,}", line) for line in done.stdout.splitlines()]
        assert heading == ["Code", "Rule", "Category", "Needs", "Finds"]
        assert [(code, name, category) for code, name, category, *_ in rows] == [
            (rule.code, rule.name(), rule.category()) for rule in catalogue()
        ]
        assert [finds for *_, finds in rows] == [page_of(rule).title for rule in catalogue()]
        assert {len(row) for row in rows} == {5}

    def test_as_json(self) -> None:
        listed = json.loads(tidy("rules", "--format", "json").stdout)
        assert listed["schema"] == 1
        assert [(row["code"], row["rule"]) for row in listed["rules"]] == [
            (rule.code, rule.name()) for rule in catalogue()
        ]
        explained = json.loads(tidy("explain", "tt302", "--format", "json").stdout)
        assert list(explained.pop("sections")) == [
            "What it finds", "Why it is slow", "Example", "How the saving is estimated", "When it stays quiet",
        ]  # fmt: skip
        assert explained.pop("schema") == 1
        assert explained in listed["rules"]

    def test_a_page_as_markdown(self) -> None:
        page = tidy("explain", "TT302", "--format", "markdown").stdout
        assert page.startswith("# Gradients filled with zeros")
        assert "```python" in page

    def test_explain_what_is_not_there(self) -> None:
        done = tidy("explain", "no-such-rule")
        assert done.returncode == 2
        assert "`tb-tidy rules` lists all rules." in done.stderr


@pytest.mark.sampled
@pytest.mark.parametrize("name", shared_names("traces"))
def test_real_traces_print_a_report(name: str) -> None:
    done = tidy("check", shared(f"traces/{name}"))
    assert done.returncode == 0, done.stderr
    assert "problem" not in done.stdout
    assert "failed:" not in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("arguments", [("rules",), ("rules", "--format", "no such form"), ("--version",)])
@pytest.mark.parametrize("has_thread", [False, True])
def test_the_script_ends_as_python_would(arguments: tuple[str, ...], has_thread: bool) -> None:
    """After all that Python does before it frees its objects: other threads, `atexit`, buffered output."""
    thread = "threading.Thread(target=lambda: (threading.main_thread().join(), sys.stdout.write('thread '))).start(); "
    before = f"import atexit, sys, threading; {thread if has_thread else ''}"
    before += "atexit.register(sys.stdout.write, 'exit '); sys.argv[0] = 'tb-tidy'; "
    ways = [
        subprocess.run(
            [sys.executable, "-c", f"{before}from tb_tidy_plugin.cli.main import {way}; {way}()", *arguments],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )
        for way in ("main", "script")
    ]  # fmt: skip
    usual, own = ((done.returncode, done.stdout, done.stderr) for done in ways)
    assert own == usual
    assert own[1].endswith("thread exit " if has_thread else "exit ")


def test_the_script_frees_no_object() -> None:
    code = "class Freed:\n    def __del__(self): print('freed')\n"
    code += (
        "import sys; kept = Freed(); from tb_tidy_plugin.cli.main import script; sys.argv[1:] = ['--version']; script()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"tb-tidy, version {__version__}\n"


def without_numpy(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.modules['numpy'] = None; from tb_tidy_plugin.cli.main import script; script()"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_package_that_is_missing_is_named() -> None:
    done = without_numpy("check", "--no-cache", "sample_runs")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tb-tidy: The package numpy, which TorchTidy needs, is not installed.\n")


def test_the_doctor_needs_no_numpy_to_say_that_it_is_missing() -> None:
    done = without_numpy("doctor")
    assert (done.returncode, done.stderr) == (1, "")
    assert "WRONG: numpy is not installed.\n  pip install 'numpy>=" in done.stdout


def test_every_command_is_in_the_list_of_commands() -> None:
    modules = (import_module(f"{cli.__name__}.{found.name}") for found in pkgutil.iter_modules(cli.__path__))
    here = {module.__name__.rpartition(".")[2]: module for module in modules}
    commands = [name for name, module in here.items() if isinstance(getattr(module, name, None), click.Command)]
    assert sorted(name.replace("_", "-") for name in commands) == sorted(COMMANDS)
