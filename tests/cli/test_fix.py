"""`tb-tidy fix`: diffs, and what is written into files."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from tb_tidy_plugin.analysis.fixing import Proposal, patches
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.named import ShownNames
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.fixes.change import Change, Splice
from tb_tidy_plugin.report.code_model import CodeFix
from tb_tidy_plugin.rules.python_loops.cat_in_loop import CatInLoop
from tb_tidy_plugin.sources.files import OwnFile
from tb_tidy_plugin.words.errors import TidyError
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


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose script lies in `code/src`, with its recording elsewhere, and the current folder in `code`."""
    top = tmp_path / "project"
    (top / "code" / "src").mkdir(parents=True)
    plain_trace(tmp_path / "runs")
    write_source(top / "code" / "src", PLAIN)
    git("init", "-q", str(top))
    monkeypatch.chdir(top / "code")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return top


def files_in(value: Any) -> set[str]:  # noqa: ANN401 - JSON
    """All values of `file` in JSON."""
    if isinstance(value, dict):
        own = {value["file"]} if isinstance(value.get("file"), str) else set()
        return own.union(*map(files_in, value.values()))
    return set().union(*map(files_in, value)) if isinstance(value, list) else set()


NAME = "code/src/train.py"


@pytest.mark.parametrize("cwd", [".", "src", "../.."])
def test_every_format_names_a_file_as_its_repository_does(
    cwd: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = str(project.parent / "runs")
    monkeypatch.chdir(cwd)
    options = ("--source-root", str(project / "code" / "src"))

    def said(*arguments: str) -> str:
        done = CliRunner().invoke(commands, [*arguments, *options])
        assert done.exit_code == 0, done.output
        return done.stdout

    for form in ("text", "markdown", "html"):
        text = said("check", runs, "--format", form)
        assert NAME in text
        if form != "html":  # its list of findings has last parts of paths
            assert not re.search(r"(?<!code/src/)train\.py", text)
    for arguments in (("check", runs), ("summary", runs), ("annotate", runs), ("fix", runs)):
        assert files_in(json.loads(said(*arguments, "--format", "json"))) <= {NAME, ""}
    assert said("annotate", runs, "train.py").startswith(f"{NAME}\n")
    assert said("annotate", runs, "src/train.py").startswith(f"{NAME}\n")
    assert f"--- a/{NAME}\n+++ b/{NAME}\n" in said("fix", runs)
    for arguments in (("check", runs), ("fix", runs)):
        (run,) = json.loads(said(*arguments, "--format", "sarif"))["runs"]
        places = [
            place["physicalLocation"]["artifactLocation"] for each in run["results"] for place in each["locations"]
        ]
        changed = [each["artifactLocation"] for result in run["results"] for fix in result.get("fixes", ())
                   for each in fix["artifactChanges"]]  # fmt: skip
        assert places
        assert changed
        assert {(each["uri"], each["uriBaseId"]) for each in places + changed} == {(NAME, "SRCROOT")}
    found = json.loads(said("ask", json.dumps({"question": "findings"}), "--path", runs))
    (row,) = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"] if "cat-in-loop" in row]
    assert row["place"] == f"«{NAME}:5 grow»"
    for name in ("finding", "propose_fix"):
        asked = json.dumps({"question": name, "finding": row["finding"]})
        assert NAME in said("ask", asked, "--path", runs)


def test_without_a_repository_names_are_relative_to_the_current_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(project / ".git")
    runs = project.parent / "runs"
    root = ("--source-root", str(project / "code" / "src"))
    assert "--- a/src/train.py\n" in fix(runs, *root).stdout
    monkeypatch.chdir(project)
    assert "--- a/code/src/train.py\n" in fix(runs, *root).stdout
    monkeypatch.chdir(runs)
    assert "--- a/train.py\n" in fix(runs, *root).stdout


LINES = {
    "LF": PLAIN,
    "CRLF": PLAIN.replace("\n", "\r\n"),
    "mixed": PLAIN.replace("    return rows\n", "    return rows\r\n"),
    "no final line end": PLAIN.removesuffix("\n"),
    "byte order mark": "\ufeff" + PLAIN,
    "form feeds and tabs": PLAIN.replace("    ", "\t").replace("rows\n\ndef log", "rows\n\f\ndef log"),
}


@pytest.mark.parametrize("kind", LINES)
def test_git_applies_the_patch_in_the_root_of_the_repository(
    kind: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = project / "code" / "src" / "train.py"
    text = LINES[kind]
    source.write_bytes(text.encode())
    os.utime(source, (RECORDED_S - 60, RECORDED_S - 60))
    runs, root = project.parent / "runs", ("--source-root", str(source.parent))
    printed = fix(runs, *root).stdout_bytes
    assert b"no fix" not in printed
    by_git = b""
    for patch in (printed, answer(runs, *root)["fixes"][0]["diff"].encode()):
        (project.parent / "a.patch").write_bytes(patch)
        monkeypatch.chdir(project)
        git("apply", "--whitespace=nowarn", str(project.parent / "a.patch"))
        by_git = source.read_bytes()
        git("apply", "-R", "--whitespace=nowarn", str(project.parent / "a.patch"))
        assert source.read_bytes() == text.encode()
        os.utime(source, (RECORDED_S - 60, RECORDED_S - 60))
    assert fix(runs, "--apply", *root).exit_code == 0
    assert source.read_bytes() == by_git != text.encode()


def proposal(path: Path, old: str, new: str) -> Proposal:
    """A change of the first `old` in a file."""
    text = path.read_text(encoding="utf-8")
    at = text.index(old)
    change = Change((Splice(at, at + len(old), new),), "same results")
    fix_of = CodeFix(f"{old} {new}", "rule", "train.py", 1, None, "same results", False, "", "", [])
    return Proposal(fix_of, OwnFile(path, text.encode(), text, "utf-8", 0.0), text, change)


def test_the_patches_of_one_file_apply_one_after_the_other(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = project / "code" / "src" / "train.py"
    source.write_text("".join(f"line {number}\n" for number in range(1, 13)), encoding="utf-8")
    asked = [
        ("line 5\n", "five\nsix\n"),
        ("line 6", "seven"),
        ("line 5\n", "other\n"),
        ("line 6", "seven"),
        ("line 4", "four"),
    ]
    found = patches([proposal(source, *each) for each in asked], ShownNames(Job()))
    assert [None if each is None else bool(each) for each in found] == [True, True, None, False, True]
    monkeypatch.chdir(project)
    Path("a.patch").write_text("".join(each or "" for each in found), encoding="utf-8")
    git("apply", "a.patch")
    lines = [
        "line 1",
        "line 2",
        "line 3",
        "four",
        "five",
        "six",
        "seven",
        *(f"line {number}" for number in range(7, 13)),
    ]
    assert source.read_text().splitlines() == lines


def test_the_time_of_a_copy_says_nothing(plain: Path, tmp_path: Path) -> None:
    """`tb-tidy verify --promise` reads the program before the change from a copy that is later than the recording."""
    os.utime(plain, (RECORDED_S + 1, RECORDED_S + 1))
    write_source(tmp_path, PLAIN, RECORDED_S + 9_000)
    for undated, count in (((), 0), ((tmp_path / "elsewhere",), 0), ((tmp_path,), 1)):
        report = analyze_path(plain, Job([CatInLoop()], source_roots=(tmp_path,), undated=undated))
        (finding,) = report.runs[0].profiles[0].findings
        assert finding.code_fixes is not None
        assert len(finding.code_fixes.changes) == count


def with_change(monkeypatch: pytest.MonkeyPatch, *changed: tuple[str, str]) -> None:
    """Lets the rule's fix have each of these safeties and checks, one after the other."""
    made = CatInLoop.fixer
    left = list(changed)

    def fixer(self: CatInLoop, *given: Any) -> Change:
        safety, check = left.pop(0) if len(left) > 1 else left[0]
        return replace(made(self, *given), safety=safety, check=check)

    monkeypatch.setattr(CatInLoop, "fixer", fixer)


BEHAVIOUR, REVIEW = "changes behaviour: all of it", "Look at it."


@pytest.mark.parametrize(
    ("safety", "check", "needed", "said"),
    [
        (BEHAVIOUR, "", ("--unsafe-fixes",), "your consent to a change of behaviour (`--unsafe-fixes`)."),
        ("same results", REVIEW, ("--reviewed",), "a review (`--reviewed`)."),
        (BEHAVIOUR, REVIEW, ("--reviewed", "--unsafe-fixes"),
         "a review (`--reviewed`) and your consent to a change of behaviour (`--unsafe-fixes`)."),
        ("same up to rounding", "", (), ""),
    ],
)  # fmt: skip
def test_what_needs_consent_is_written_with_it_only(
    safety: str, check: str, needed: tuple[str, ...], said: str, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_change(monkeypatch, (safety, check))
    subsets = [tuple(each for each, is_in in zip(needed, bits, strict=True) if is_in)
               for bits in itertools.product((False, True), repeat=len(needed))]  # fmt: skip
    for given in subsets:
        if given == needed:
            continue
        done = fix(run, "--apply", *given)
        assert (done.exit_code, (run / "train.py").read_text()) == (0, SOURCE)
        assert "1 fix was not written: 1 needs " in done.output
        assert answer(run, "--apply", *given)["left_out"] == 1
        if not given:
            assert done.output.endswith(f"1 fix was not written: 1 needs {said}\n")
    done = fix(run, "--apply", *needed)
    assert (done.exit_code, (run / "train.py").read_text()) == (0, FIXED)
    assert "not written" not in done.output


def test_fixes_that_safe_only_leaves_out_are_counted(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_change(monkeypatch, ("same up to rounding", ""))
    assert fix(run, "--safe-only").output == "1 fix is left out by `--safe-only`.\n"
    assert fix(run, "--safe-only", "--apply").output == "1 fix is left out by `--safe-only`.\n"
    found = answer(run, "--safe-only")
    assert (found["fixes"], found["left_out"]) == ([], 1)


@pytest.mark.parametrize("consent", [False, True])
def test_an_assistant_is_told_of_what_needs_consent(consent: bool, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_change(monkeypatch, (BEHAVIOUR, ""))
    (found,) = answer(run)["fixes"]
    asked = {"question": "apply_fix", "finding": found["finding"], "unsafe_fixes": consent}
    arguments = ["ask", json.dumps(asked), "--path", str(run), "--allow-apply"]
    said = json.loads(CliRunner().invoke(commands, arguments).stdout)
    assert (said["written"], said.get("left_out", 0)) == (int(consent), int(not consent))
    assert (run / "train.py").read_text() == (FIXED if consent else SOURCE)
    needs = "«train.py:5: It needs your consent to a change of behaviour (`unsafe_fixes`).»"
    assert said.get("unfixed", []) == [needs] * (not consent)


@pytest.mark.skipif(os.name == "nt", reason="permissions are others there")
def test_a_read_only_file_is_left_alone(run: Path) -> None:
    (run / "train.py").chmod(0o444)
    done = fix(run, "--apply")
    assert (done.exit_code, (run / "train.py").read_text()) == (1, SOURCE)
    assert "train.py` is read-only." in done.output
    assert stat.S_IMODE((run / "train.py").stat().st_mode) == 0o444


@pytest.mark.skipif(os.name == "nt", reason="links are others there")
def test_a_file_with_hard_links_is_left_alone(run: Path, tmp_path: Path) -> None:
    os.link(run / "train.py", tmp_path / "other.py")
    done = fix(run, "--apply")
    assert (done.exit_code, (run / "train.py").read_text()) == (1, SOURCE)
    assert "train.py` has 2 hard links" in done.output
    assert (run / "train.py").samefile(tmp_path / "other.py")


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="Python has no extended attributes there")
def test_extended_attributes_stay(run: Path) -> None:
    try:
        os.setxattr(run / "train.py", "user.note", b"mine")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    assert fix(run, "--apply").exit_code == 0
    assert (run / "train.py").read_text() == FIXED
    assert os.getxattr(run / "train.py", "user.note") == b"mine"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_stays_or_the_file_does(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(run / "train.py", 65534, 65533)
    (run / "train.py").chmod(0o4755)
    assert fix(run, "--apply").exit_code == 0
    about = (run / "train.py").stat()
    assert (about.st_uid, about.st_gid, stat.S_IMODE(about.st_mode)) == (65534, 65533, 0o4755)
    assert (run / "train.py").read_text() == FIXED

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    (run / "train.py").write_text(SOURCE)
    monkeypatch.setattr("os.chown", refused)
    done = fix(run, "--apply")
    assert (done.exit_code, (run / "train.py").read_text()) == (1, SOURCE)
    assert "belongs to another user or group" in done.output
    assert not [*run.glob(".tidy-draft*")]


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

    monkeypatch.setattr("tb_tidy_plugin.analysis.fixing.replace_whole", full)
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
