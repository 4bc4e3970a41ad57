"""`tb-tidy summary` as a user meets it: a process, its output and its exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import msgspec
import pytest

from tb_tidy_plugin import __version__
from tb_tidy_plugin.analysis.summary import Summary
from tb_tidy_plugin.dev.schemas import schema
from tb_tidy_plugin.render.summary import largest
from tb_tidy_plugin.report.figures import ModuleRow
from tb_tidy_plugin.system.decoders import decode
from tests.cli.test_annotate import EVENTS, SOURCE
from tests.support.commands import tidy
from tests.support.recordings import ROOT, shared, shared_names
from tests.support.written import event, kineto_text, write

SAMPLE = ROOT / "sample_runs" / "image_classifier_untidy"


def section(text: str, title: str) -> list[str]:
    """The lines below a heading, up to the next empty one."""
    lines = [line.strip() for line in text.splitlines()]
    (start,) = [at for at, line in enumerate(lines) if line.startswith(title)]
    return lines[start + 1 : lines.index("", start)]


def traced(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    step = event("ProfilerStep#1", 0, 1000, cat="user_annotation")
    calls = [event(name, 10 + 100 * at, 90) for at, name in enumerate(names)]
    return write(folder / "w.1.pt.trace.json", kineto_text([step, *calls]))


def test_text() -> None:
    done = tidy("summary", SAMPLE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("image_classifier_untidy · workstation")
    assert re.search(r"3 steps, median .* ms, .* ms to .* ms min–max \(marked by the profiler\)", done.stdout)
    assert any(
        line.startswith("CPU: convolutions: sample_runs/image_classifier_untidy/train.py:")
        for line in ledger_in(done.stdout)
    )
    assert len(section(done.stdout, "Operators by name: 10 of ")) == 11
    assert section(done.stdout, "Modules: ")[1].startswith("Sequential_0")
    assert section(done.stdout, "Memory") == [
        "not shown: The profile has no memory events; record with `profile_memory=True`."
    ]
    work = section(done.stdout + "\n", "CPU work")
    assert work[0] == "1 thread ran operators"
    assert any(line.startswith("sample_runs/image_classifier_untidy/train.py:41 __getitem__") for line in work)
    assert done.stderr == ""


def test_lines_are_those_of_annotate(tmp_path: Path) -> None:
    """Not those of the functions' definitions."""
    (tmp_path / "train.py").write_text(SOURCE)
    write(tmp_path / "w.1.pt.trace.json", kineto_text(EVENTS))
    lines = section(tidy("summary", tmp_path, "--group", "line").stdout, "Operators by source line")
    assert [line.split()[:5] for line in lines[1:]] == [
        ["train.py:7", "step", "2", "200", "µs"],
        ["train.py:5", "step", "1", "180", "µs"],
    ]


def test_parts_of_the_step_add_up() -> None:
    lines = ledger_in(tidy("summary", SAMPLE).stdout)
    shares = [re.search(r"([\d.]+) %  +[\d.]+ \w+$", line) for line in lines]
    assert sum(float(share[1]) for share in shares if share) == pytest.approx(100, abs=0.5)


def ledger_in(text: str) -> list[str]:
    """The lines of the ledger's table, without its head and its sum."""
    lines = [line.strip() for line in text.splitlines()]
    head = next(at for at, line in enumerate(lines) if line.startswith("where the step's time goes"))
    return lines[head + 1 : next(at for at, line in enumerate(lines) if line.startswith("sum "))]


@pytest.mark.parametrize(
    ("group", "title", "row"),
    [
        ("shape", "Operators by name and input shapes", "aten::convolution_backward 48×"),
        ("line", "Operators by source line", "sample_runs/image_classifier_untidy/train.py:"),
        ("module", "Operators by module", "Conv2d_"),
    ],
)
def test_groupings(group: str, title: str, row: str) -> None:
    lines = section(tidy("summary", SAMPLE, "--group", group, "--top", "20").stdout, title)
    assert any(line.startswith(row) for line in lines)


def test_top() -> None:
    text = tidy("summary", SAMPLE, "--top", "3").stdout
    assert len(section(text, "Operators by name: 3 of ")) == 4
    assert len(section(text, "Modules: 6 of ")) == 7


def test_odd_steps_are_named(tmp_path: Path) -> None:
    lengths = [9000, 1000, 1000, 1000, 5000, 1000]
    starts = [sum(lengths[:at]) for at in range(len(lengths))]
    steps = [
        event(f"ProfilerStep#{at}", start, length, cat="user_annotation")
        for at, (start, length) in enumerate(zip(starts, lengths, strict=True))
    ]
    work = [event("aten::mm", start + 10, 20) for start in starts]
    write(tmp_path / "w.1.pt.trace.json", kineto_text([*steps, *work]))
    text = tidy("summary", tmp_path).stdout
    assert "odd steps: ProfilerStep#0 9 ms (warm-up), ProfilerStep#4 5 ms (outlier)" in text


def test_memory_with_holders() -> None:
    text = tidy("summary", shared("traces/v100_memory_compile_216k"), "--top", "3").stdout
    lines = section(text, "Memory of cuda:1: peak 6.17 GiB at ")
    assert [line.split("  ")[0] for line in lines] == [
        "held at the peak by", "aten::mm", "aten::add", "aten::addmm", "others", "allocated before the recording",
    ]  # fmt: skip


def test_json_fits_its_model_and_its_schema() -> None:
    done = tidy("summary", ROOT / "sample_runs", "--format", "json")
    found = decode(done.stdout, Summary)
    jsonschema.validate(json.loads(done.stdout), json.loads(schema("Summary", Summary)))
    assert (found.schema, found.version, found.problems) == (1, __version__, [])
    assert [profile.run for profile in found.profiles] == [
        "decoder_training_gpu_tidy", "decoder_training_gpu_untidy", "image_classifier_tidy", "image_classifier_untidy",
        "text_generation_eval",
    ]  # fmt: skip
    for profile in found.profiles:
        assert set(profile.figures.operators) == {"name", "shape", "line", "module"}


def test_json_holds_the_report_that_check_prints() -> None:
    (profile,) = decode(tidy("summary", SAMPLE, "--format", "json").stdout, Summary).profiles
    checked = json.loads(tidy("check", SAMPLE, "--format", "json").stdout)["runs"][0]["profiles"][0]
    for finding in checked["findings"]:
        finding["code_fixes"] = None  # `check` alone makes them
    assert json.loads(msgspec.json.encode(profile.report)) == checked


def test_names_in_a_trace_cannot_drive_the_terminal(tmp_path: Path) -> None:
    path = traced(tmp_path / "run\x1b[31m", "aten::mm\x1b[2J", "[bold]not markup[/bold]", "a\nb")
    for group in ("name", "line"):
        done = tidy("summary", path.parent, "--group", group)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout
    assert "[bold]not markup[/bold]" in tidy("summary", path.parent).stdout


def test_a_broken_trace_leaves_the_others_unharmed(tmp_path: Path) -> None:
    traced(tmp_path / "good", "aten::mm")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "w.1.pt.trace.json").touch()
    done = tidy("summary", tmp_path)
    assert done.returncode == 2
    assert "good · w · 1" in done.stdout
    assert "\nproblem:" in done.stdout


def test_nothing_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "w.1.pt.trace.json").touch()
    done = tidy("summary", tmp_path)
    assert done.returncode == 2
    assert "problem: " in done.stdout
    missing = tidy("summary", tmp_path / "nowhere")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "does not exist" in missing.stderr


@pytest.mark.parametrize("option", [("--top", "0"), ("--group", "color"), ("--format", "xml")])
def test_options_that_make_no_sense(option: tuple[str, str]) -> None:
    assert tidy("summary", SAMPLE, *option).returncode == 2


@pytest.mark.sampled
@pytest.mark.parametrize("name", shared_names("traces"))
def test_real_traces_print_a_summary(name: str) -> None:
    done = tidy("summary", shared(f"traces/{name}"), "--group", "line")
    assert done.returncode == 0, done.stderr
    assert "problem" not in done.stdout
    assert done.stderr == ""


def test_the_largest_modules_come_with_those_around_them() -> None:
    def module(name: str, parent: int | None, depth: int, last: int, time_ns: int) -> ModuleRow:
        return ModuleRow(
            name=name, class_name="", parent=parent, last=last, depth=depth, calls=1, places=1, file="", line=None,
            forward_ns=time_ns, forward_self_ns=0, backward_ns=0, backward_self_ns=0, device_forward_ns=None,
            device_backward_ns=None, allocated_bytes=None, step_ns=time_ns // 3,
        )  # fmt: skip

    rows = [module("a", None, 0, 2, 5), module("b", 0, 1, 1, 1), module("c", 0, 1, 2, 4), module("d", None, 0, 3, 2)]
    assert [row.name for row in largest(rows, 3)] == ["a", "c", "d"]
    assert largest(rows, 9) == rows
