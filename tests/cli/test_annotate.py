"""`tb-tidy annotate`: a file with the cost of each line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.words.errors import NotFoundError
from tests.support.written import event, kineto_text, write

SOURCE = """\
import torch


def step(x, w):
    y = torch.relu(x)
    for row in range(2):
        y = y * w
    return y
"""


def frame(name: str, start: int, length: int, number: int) -> dict[str, object]:
    return event(name, start, length, cat="python_function", args={"Python id": number})


EVENTS = [
    frame("train.py(4): step", 1000, 1000, 1),
    frame("<built-in method relu of type object at 0x1>", 1100, 200, 2),
    event("aten::relu", 1110, 180, args={"External id": 1}),
    event("aten::mul", 1400, 100, args={"External id": 2}),
    event("aten::mul", 1600, 100, args={"External id": 3}),
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    write(tmp_path / "runs" / "w.7.pt.trace.json", kineto_text(EVENTS))
    return tmp_path / "runs"


def annotate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(commands, ["annotate", *map(str, arguments)])


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_each_line_with_its_time_share_passes_and_calls(run: Path) -> None:
    (run / "train.py").write_text(SOURCE)
    result = annotate(run)
    assert result.exit_code == 0
    name, heads, *shown = rows(result.output)
    assert name == ["train.py"]
    assert heads == ["line", "total", "share", "forward", "other", "calls", "source"]
    lines = {row[0]: row[1:] for row in shown if row and row[0].isdecimal()}
    assert lines["5"][:7] == ["180", "µs", "18", "%", "180", "µs", "1"]
    assert lines["7"][:7] == ["200", "µs", "20", "%", "200", "µs", "2"]
    assert lines["6"] == ["for", "row", "in", "range(2):"]
    assert ["?", "620", "µs", "62", "%", "620", "µs", "#", "in", "step,", "line", "not", "known"] in shown
    sums = [row for row in shown if row[-1:] in (["above"], ["step"])]
    assert [row[:8] for row in sums] == [["1", "ms", "100", "%", "380", "µs", "620", "µs"]] * 2


def test_steps_are_averaged_and_everything_adds_up_to_them(run: Path) -> None:
    """Two steps, a file whose source is not here, and time outside the user's own code."""
    (run / "train.py").write_text(SOURCE)
    steps = [event(f"ProfilerStep#{at}", 1000 + 5000 * at, 4000, cat="user_annotation") for at in range(2)]
    more = [{**each, "ts": each["ts"] + 5000} for each in EVENTS]
    other = [
        frame("other.py(4): helper", 3000, 1000, 9),
        event("aten::mul", 3100, 800),
        frame("site-packages/lib/a.py(4): run", 4100, 500, 10),
    ]
    write(run / "w.7.pt.trace.json", kineto_text([*steps, *EVENTS, *more, *other]))
    shown = rows(annotate(run).output)
    lines = {row[0]: row[1:] for row in shown if row and row[0].isdecimal()}
    assert lines["5"][:2] == ["180", "µs"]
    sums = {" ".join(row[-3:]): row[:2] for row in shown[-6:] if row}
    assert sums["your other files"] == ["500", "µs"]
    assert sums["steps, on average"] == ["4.5", "ms"]


def test_a_line_that_fits_as_well_is_named(run: Path) -> None:
    branches = "    if w.shape:\n        y = x * w\n    else:\n        y = w * x\n    return y\n"
    (run / "train.py").write_text(f"{SOURCE.partition('    y =')[0]}{branches}")
    write(run / "w.7.pt.trace.json", kineto_text([EVENTS[0], EVENTS[3]]))
    assert "y = x * w  # or line 8" in annotate(run).output


def test_long_lines_are_whole_in_a_pipe(run: Path) -> None:
    long = SOURCE.replace("torch.relu(x)", f"torch.relu(x)  # {'x' * 300} the end")
    (run / "train.py").write_text(long)
    assert "the end" in annotate(run).output


def test_a_share_that_would_read_as_nothing_is_bounded(run: Path) -> None:
    (run / "train.py").write_text(SOURCE)
    write(run / "w.7.pt.trace.json", kineto_text([*EVENTS, event("sleep", 3000, 9_000_000, cat="user_annotation")]))
    lines = {row[0]: row[1:5] for row in rows(annotate(run).output) if row and row[0].isdecimal()}
    assert lines["5"] == ["180", "µs", "<0.01", "%"]


def test_every_operator_as_json(run: Path) -> None:
    (run / "train.py").write_text(SOURCE)
    answer = json.loads(annotate(run, "--format", "json").output)
    assert answer["origin_ns"] == 1_000_000
    assert [(each["start_ns"], each["name"], each["line"]) for each in answer["operators"]] == [
        (110_000, "aten::relu", 5), (400_000, "aten::mul", 7), (600_000, "aten::mul", 7),
    ]  # fmt: skip
    assert answer["operators"][0] == {
        "start_ns": 110_000, "name": "aten::relu", "file": "train.py", "line": 5, "end_line": 5, "function": "step",
        "precision": "aligned", "tie": [], "generated": None,
    }  # fmt: skip


def test_the_costs_of_lines_as_json(run: Path) -> None:
    """The same as in the text, and the time of the calls over the whole recording."""
    (run / "train.py").write_text(SOURCE)
    answer = json.loads(annotate(run, "--format", "json").output)
    assert list(answer) == ["schema", "wall_ns", "step", "lines", "origin_ns", "operators"]
    assert (answer["schema"], answer["wall_ns"]) == (1, 1_000_000)
    none = {"backward_ns": 0, "optimizer_ns": 0, "loading_ns": 0}
    assert answer["lines"] == [
        {"file": "train.py", "line": line, "host_ns": 200_000, "device_ns": 0, "calls": calls, "shared": 1,
         "known_by": None, "total_ns": time_ns, "ties": [], "forward_ns": time_ns, "other_ns": 0, **none}
        for line, calls, time_ns in ((5, 1, 180_000), (7, 2, 200_000))
    ]  # fmt: skip
    assert answer["step"] == {
        "steps": 1, "ns": 1_000_000, "forward_ns": 380_000, "other_ns": 620_000, **none,
        "functions": [{"file": "train.py", "function": "step", "forward_ns": 0, "other_ns": 620_000, **none}],
        "elsewhere": {"forward_ns": 0, "other_ns": 0, **none},
    }  # fmt: skip


def test_one_file_as_json(run: Path) -> None:
    (run / "train.py").write_text(SOURCE)
    assert json.loads(annotate(run, "train.py", "--format", "json").output)["operators"]
    assert isinstance(annotate(run, "other.py", "--format", "json").exception, NotFoundError)


def test_without_the_source_the_function_is_all_that_is_known(run: Path) -> None:
    operators = json.loads(annotate(run, "--format", "json").output)["operators"]
    assert {(each["line"], each["precision"]) for each in operators} == {(4, "definition")}


def test_sources_elsewhere_are_named(run: Path, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "train.py").write_text(SOURCE)
    assert isinstance(annotate(run).exception, NotFoundError)
    assert "torch.relu(x)" in annotate(run, "--source-root", tmp_path / "job").output
    mistyped = annotate(run, "--source-root", tmp_path / "jbo")
    assert (mistyped.exit_code, "jbo' does not exist" in mistyped.output) == (2, True)


def test_one_file_of_several(run: Path) -> None:
    (run / "train.py").write_text(SOURCE)
    assert "torch.relu" in annotate(run, "train.py").output
    assert isinstance(annotate(run, "other.py").exception, NotFoundError)


def test_several_traces_are_too_many(run: Path) -> None:
    write(run / "w.8.pt.trace.json", kineto_text(EVENTS))
    assert isinstance(annotate(run).exception, NotFoundError)


def test_a_broken_trace_is_a_message(tmp_path: Path) -> None:
    (tmp_path / "w.7.pt.trace.json").write_text("{")
    result = annotate(tmp_path)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_no_letter_of_a_source_reaches_the_terminal_as_a_command(run: Path) -> None:
    (run / "train.py").write_text(SOURCE.replace("torch.relu(x)", "torch.relu(x)  # \x1b[31m"))
    assert "\x1b" not in annotate(run).output
