"""No command and no format names a file that `torch.compile` wrote as the place of anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.rulekit.testing.drawn import A100, draw_into
from tb_tidy_plugin.sources.inductor_cache import SETTING
from tb_tidy_plugin.trace.files import TraceFile
from tests.support.inductor_texts import entry, stack

KEY, OTHER_KEY = "fforward", "fother"
GENERATED = f"ab/cab{'a' * 49}.py"
SOURCES = {
    "model.py": "\n" * 6 + "def forward(x, w):\n    return gate(x @ w * 2)\n",
    "layers.py": "\ndef gate(x):\n    y = x.sin()\n    return y\n",
}


def step(number: int) -> str:
    """One step with a graph whose lines the cache knows, one of which nothing is known, and a value read in it."""
    at = 10_000 * number
    return "\n".join(
        line.replace("?", str(number)).format(*(at + each for each in times))
        for line, times in (
            ("ProfilerStep#? {0}-{1}", (0, 9_999)),
            ("  train.py(20): step {0}-{1}", (1, 9_998)),
            ("    Torch-Compiled Region: 0/0 {0}-{1}", (10, 4_000)),
            ("      model.py(7): forward {0}-{1}", (11, 3_999)),
            ("        CompiledFunction {0}-{1} seq=?7", (20, 3_990)),
            (f"          ## Call CompiledFxGraph {KEY} ## {{0}}-{{1}}", (30, 3_980)),
            (f"            /tmp/any/{GENERATED}(134): call {{0}}-{{1}}", (31, 3_979)),
            ("              aten::mm {0}-{1} kernel=gemm@{2}-{3}", (40, 100, 50, 1_900)),
            ("              cpp_fused_sin_0 {0}-{1} kernel=triton@{2}-{3}", (110, 200, 2_000, 3_000)),
            ("    Torch-Compiled Region: 1/0 {0}-{1}", (4_100, 9_000)),
            ("      model.py(30): evaluate {0}-{1}", (4_101, 8_999)),
            (f"        ## Call CompiledFxGraph {OTHER_KEY} ## {{0}}-{{1}}", (4_130, 8_980)),
            (f"          /tmp/torchinductor_me/{GENERATED}(9): call {{0}}-{{1}}", (4_131, 8_979)),
            ("            aten::mm {0}-{1} kernel=gemm@{2}-{3}", (4_140, 4_200, 4_150, 7_000)),
            ("            aten::item {0}-{1} wait={2}-{3} copy=DtoH@{4}-{1}:4", (4_220, 7_110, 4_225, 7_108, 7_100)),
        )
    )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache, folder = tmp_path / "cache", tmp_path / "run"
    monkeypatch.setenv(SETTING, str(cache))
    entry(cache, KEY)
    entry(cache, OTHER_KEY, stacks=stack((f"/tmp/any/{GENERATED}", 9, "call", "buf0 = buf1")))
    folder.mkdir()
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
    draw_into(folder, "\n".join(map(step, range(4))), A100)
    return folder


def output(*arguments: str | Path) -> str:
    result = CliRunner().invoke(commands, [*map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    "command",
    [
        *(("check", "--format", each) for each in ("text", "json", "markdown", "sarif", "html")),
        *(("summary", "--group", each) for each in ("name", "shape", "line", "module")),
        ("summary", "--format", "json"),
        ("annotate", "--format", "json"),
        ("annotate",),
    ],
    ids=" ".join,
)
def test_of_one_recording(run: Path, command: tuple[str, ...]) -> None:
    text = output(command[0], run, *command[1:])
    assert "model.py" in text or "--group" in command
    assert GENERATED not in text


@pytest.mark.parametrize("format_", ["text", "json", "markdown"])
def test_of_a_comparison(run: Path, format_: str) -> None:
    assert GENERATED not in output("compare", run, run, "--format", format_)


def test_of_all_events_with_what_called_them(run: Path) -> None:
    (trace,) = run.glob("*.json")
    analysis = read_file(TraceFile("run", "worker", "", trace), Job())
    for row in range(len(analysis.profile.table)):
        frames = [analysis.aligner.place_of(row), *analysis.aligner.stack_of(row)]
        assert not any(frame is not None and GENERATED in frame.file for frame in frames)


def test_lines_that_the_cache_tells_are_used(run: Path) -> None:
    operators = json.loads(output("annotate", run, "--format", "json"))["operators"]
    (found, *_) = (each for each in operators if each["name"] == "cpp_fused_sin_0")
    assert (found["file"], found["line"], found["precision"]) == ("layers.py", 3, "aligned")
    assert found["generated"] == {"of": "forward", "also": [{"file": "model.py", "line": 8}]}
