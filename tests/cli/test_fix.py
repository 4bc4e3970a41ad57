"""`tb-tidy fix`: diffs, and what is written into files."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.errors import TidyError
from tests.support.whole_run import SOURCE, keep_source, write_run
from tests.support.written import event, kineto_text, write

FIXED = """\
import torch
def main():
    rows = [torch.zeros(4, 8)]
    for _ in range(6):
        rows.append(torch.zeros(4, 8))
    rows = torch.cat(rows)
    return rows
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose sources lie in the current folder, as the capture kept them."""
    folder = write_run(tmp_path / "run").parent
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def fix(run: Path, *options: str) -> Result:
    return CliRunner().invoke(commands, ["fix", str(run), *options])


def answer(run: Path, *options: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads(fix(run, "--format", "json", *options).stdout)


def test_the_diff_is_printed_with_rule_saving_and_safety(run: Path) -> None:
    done = fix(run)
    assert done.exit_code == 0
    assert re.match(r"# cat-in-loop: saves \d+ µs per step, same results\n--- a/train.py\n", done.output)
    assert "-    rows = torch.zeros(4, 8)\n+    rows = [torch.zeros(4, 8)]\n" in done.output
    assert (run / "train.py").read_text() == SOURCE


def test_apply_writes_the_file_and_a_second_time_changes_nothing(run: Path) -> None:
    source = run / "train.py"
    source.chmod(0o640)
    first = fix(run, "--apply")
    assert (first.exit_code, source.read_text()) == (0, FIXED)
    assert f"written: {source}" in first.output
    if os.name != "nt":
        assert stat.S_IMODE(source.stat().st_mode) == 0o640
    second = fix(run, "--apply")
    assert (second.exit_code, source.read_text()) == (0, FIXED)
    assert "no fix." in second.output


@pytest.mark.parametrize("options", [("--rule", "zero-grad-memset"), ("--ignore", "cat-in-loop")], ids=" ".join)
def test_rules_are_chosen(run: Path, options: tuple[str, ...]) -> None:
    assert fix(run, "--apply", *options).output == "No finding has a fix.\n"
    assert (run / "train.py").read_text() == SOURCE


def test_safe_only_keeps_what_has_the_same_results(run: Path) -> None:
    assert [each["safety"] for each in answer(run, "--safe-only")["fixes"]] == ["same results"]


@pytest.mark.parametrize(
    ("before", "named"),
    [
        (lambda text: b"\xef\xbb\xbf" + text.encode(), "UTF-8 with a byte order mark"),
        (lambda text: text.replace("\n", "\r\n").encode(), "CRLF"),
        (lambda text: ("# coding: latin-1" + text[12:] + "import torch  # \xe9\n").encode("latin-1"), "Latin-1"),
        (lambda text: text.replace("    ", "\t").encode(), "tabs"),
    ],
)
def test_marks_line_ends_encoding_and_tabs_stay(run: Path, before: Callable[[str], bytes], named: str) -> None:
    content = before(SOURCE)
    (run / "train.py").write_bytes(content)
    keep_source(run, content.removeprefix(b"\xef\xbb\xbf").decode("latin-1" if named == "Latin-1" else "utf-8"))
    done = fix(run, "--apply", "--no-cache")
    assert done.exit_code == 0, done.output
    assert (run / "train.py").read_bytes() == before(FIXED)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (SOURCE.replace("6", "7").encode(), "changed since the recording"),
        (b"# coding: punycode\n" + SOURCE.encode(), "only UTF-8, Latin-1 and ASCII"),
        (SOURCE.encode() + b"# \xff", "not encoded in the encoding that it declares"),
        (SOURCE.encode() + b"#" * (600 << 10), "larger than"),
    ],
    ids=["changed", "encoding", "not UTF-8", "huge"],
)
def test_a_file_that_is_not_as_recorded_stays_as_it_is(run: Path, content: bytes, reason: str) -> None:
    keep_source(run, SOURCE)
    (run / "train.py").write_bytes(content)
    done = fix(run, "--apply", "--no-cache")
    assert reason in done.output
    assert (run / "train.py").read_bytes() == content


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_out_of_the_folder_is_not_followed(run: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    (run / "train.py").rename(outside)
    (run / "train.py").symlink_to(outside)
    done = fix(run, "--apply", "--no-cache")
    assert "neither in the current folder nor under" in done.output
    assert outside.read_text() == SOURCE


def test_a_file_outside_of_the_current_folder_needs_a_source_root(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert "neither in the current folder nor under" in fix(run, "--apply").output
    assert (run / "train.py").read_text() == SOURCE
    assert fix(run, "--apply", "--source-root", str(run)).exit_code == 0
    assert (run / "train.py").read_text() == FIXED


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything may be written here")
def test_a_folder_that_cannot_be_written_ends_with_1(run: Path) -> None:
    run.chmod(0o555)
    try:
        done = fix(run, "--apply")
    finally:
        run.chmod(0o755)
    assert (done.exit_code, (run / "train.py").read_text()) == (1, SOURCE)
    assert "could not be written" in done.output


PLAIN = """\
import torch
def grow():
    rows = torch.zeros(4, 8)
    for _ in range(6):
        rows = torch.cat([rows, torch.zeros(4, 8)])
    return rows

def log(rows):
    return rows.shape

def step():
    log(grow())

def main():
    for _ in range(3):
        with profiled():
            step()

main()
"""
RECORDED_S = 1_790_000_000


def plain_trace(folder: Path, recorded_s: int = RECORDED_S) -> Path:
    """A recording of `PLAIN` with stacks and without a capture; it began on line 16 of `main`."""

    def python(name: str, start: float, duration: float) -> dict[str, Any]:
        return event(name, start, duration, cat="python_function")

    kinds = ["TensorList", "Scalar"]
    calls = [python("<built-in method zeros of type object at 0x1>", 8, 1), event("aten::zeros", 8.2, 0.5)]
    for at in range(6):
        start = 10 + 100 * at
        sizes = [[[4 + 4 * at, 8], [4, 8]], []]
        calls += [
            python("<built-in method zeros of type object at 0x1>", start, 3),
            event("aten::zeros", start + 1, 1),
            python("<built-in method cat of type object at 0x1>", start + 5, 90),
            event("aten::cat", start + 6, 88, args={
                "External id": at + 1, "Input Dims": sizes, "Input type": kinds, "Concrete Inputs": ["", "0"]}),
        ]  # fmt: skip
    frames = [
        python("train.py(19): <module>", 0, 800),
        python("train.py(16): main", 1, 798),
        event("ProfilerStep#1", 2, 700, cat="user_annotation"),
        python("train.py(11): step", 3, 697),
        python("train.py(2): grow", 4, 640),
        *calls,
        python("train.py(8): log", 660, 5),
    ]
    folder.mkdir(exist_ok=True)
    trace = write(folder / "plain.pt.trace.json", kineto_text(frames, f'"baseTimeNanoseconds": {recorded_s}000000000'))
    os.utime(trace, (recorded_s + 1, recorded_s + 1))
    return trace


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    trace = plain_trace(tmp_path / "runs")
    write_source(tmp_path, PLAIN)
    return trace


def write_source(folder: Path, text: str, changed_s: float = RECORDED_S - 60) -> None:
    (folder / "train.py").write_text(text, encoding="utf-8")
    os.utime(folder / "train.py", (changed_s, changed_s))


def test_a_file_that_fits_a_plain_recording_is_written(plain: Path, tmp_path: Path) -> None:
    assert fix(plain, "--apply").exit_code == 0
    assert "    rows = torch.cat(rows)\n    return rows\n" in (tmp_path / "train.py").read_text()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("import torch\n", "import torch\nimport os\n", ""),
        ("def grow", "# new\ndef grow", ""),
        ("    return rows\n\n", "    rows = rows\n    return rows\n\n", "`log` began on line 8"),
        ("def log(rows):\n", "\ndef log(rows):\n", "`log` began on line 8"),
        ("def log", "def tell", "`log` began on line 8"),
        ("def step():", "def evaluate():", "`step` made a call on line 11"),
        ("def log(rows):\n    return rows.shape\n\ndef step():\n    log(grow())\n",
         "def step():\n    log(grow())\n\ndef log(rows):\n    return rows.shape\n", "`log` began on line 8"),
        ("def main():\n", "def main():\n    count = 3\n", "`<module>` made a call on line 19"),
        ("    for _ in range(3):\n        with profiled():\n            step()\n",
         "    step()\n    count = 3\n    return count\n", "`main` made a call on line 16"),
        ("\nmain()\n", "\n\nmain()\n", "`<module>` made a call on line 19"),
        ("\nmain()\n", "\nif True:\n    main()\n", "`<module>` made a call on line 19"),
        ("    return rows\n\n", "    return rows\n\nif False:\n", "no fix"),
        (PLAIN, "print(1)\n", ""),
    ],
)  # fmt: skip
def test_a_file_that_has_shifted_since_a_plain_recording_is_left_alone(
    old: str, new: str, reason: str, plain: Path, tmp_path: Path
) -> None:
    assert old in PLAIN
    text = PLAIN.replace(old, new, 1)
    write_source(tmp_path, text)
    done = fix(plain, "--apply")
    assert (tmp_path / "train.py").read_text() == text
    assert "+++" not in done.output
    assert "no fix." in done.output
    assert reason in done.output


@pytest.mark.parametrize(
    ("changed_s", "trace_s", "is_refused"),
    [
        (RECORDED_S + 1.5, RECORDED_S + 1.25, True),
        (RECORDED_S + 1.0, RECORDED_S + 1.25, False),
        (RECORDED_S + 2, RECORDED_S + 1, False),  # the file system may know times to 2 s only
        (RECORDED_S + 4, RECORDED_S + 1, True),
        (RECORDED_S + 90_010, RECORDED_S + 90_000.5, False),  # both were copied
        (RECORDED_S + 99_000, RECORDED_S + 90_000.5, True),
    ],
)
def test_a_file_that_is_later_than_a_plain_recording_is_left_alone(
    changed_s: float, trace_s: float, is_refused: bool, plain: Path, tmp_path: Path
) -> None:
    os.utime(plain, (trace_s, trace_s))
    text = PLAIN + "# a note\n"
    write_source(tmp_path, text, changed_s)
    done = fix(plain, "--apply")
    assert ((tmp_path / "train.py").read_text() == text) is is_refused
    assert ("The file was written after the recording" in done.output) is is_refused
    if not is_refused:
        return
    write_source(tmp_path, text)
    assert fix(plain, "--apply").exit_code == 0
    assert (tmp_path / "train.py").read_text() != text  # the time is part of what an answer depends on


def test_a_report_has_no_change_of_a_file_that_has_shifted(plain: Path, tmp_path: Path) -> None:
    write_source(tmp_path, PLAIN.replace("def log", "def tell"))
    said = CliRunner().invoke(commands, ["check", str(plain), "--format", "json"]).stdout
    (finding,) = [
        each for each in json.loads(said)["runs"][0]["profiles"][0]["findings"] if each["rule"] == "cat-in-loop"
    ]
    assert finding["code_fixes"]["changes"] == []
    assert "`log` began on line 8" in finding["code_fixes"]["reason"]


def test_a_rule_that_crashes_is_named_and_nothing_else_happens(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise TypeError("no such thing")

    monkeypatch.setattr("tb_tidy_plugin.fixes.growing.collected", broken)
    done = fix(run, "--apply")
    assert (done.exit_code, (run / "train.py").read_text()) == (0, SOURCE)
    assert re.search("no fix. The rule failed: .*no such thing", done.output)


def test_a_full_disk_ends_with_1(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tb_tidy_plugin.analysis.fixing.write_whole", full)
    done = fix(run, "--apply")
    assert (done.exit_code, (run / "train.py").read_text()) == (1, SOURCE)
    assert "could not be written: No space left on device" in done.output


def test_json_and_sarif_hold_the_regions_of_the_change(run: Path) -> None:
    (found,) = answer(run)["fixes"]
    assert (found["rule"], found["file"], found["safety"], found["check"]) == (
        "cat-in-loop", "train.py", "same results", "",
    )  # fmt: skip
    assert found["replacements"][0] == {
        "start_line": 3, "start_column": 12, "end_line": 3, "end_column": 12, "text": "[",
    }  # fmt: skip
    sarif = json.loads(fix(run, "--format", "sarif").stdout)
    (result,) = [each for each in sarif["runs"][0]["results"] if "fixes" in each]
    (change,) = result["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "train.py"
    assert len(change["replacements"]) == len(found["replacements"]) == 4


def test_without_libcst_the_extra_is_named(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libcst", None)
    monkeypatch.setattr("tb_tidy_plugin.cli.fix.has_libcst", lambda: False)
    error = fix(run).exception
    assert isinstance(error, TidyError)
    assert "tb-tidy-plugin[fix]" in error.advice


def test_the_catalogue_needs_no_libcst() -> None:
    import subprocess

    program = "import sys; sys.modules['libcst'] = None; from tb_tidy_plugin.rules import catalogue; len(catalogue())"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
