"""Strings of a trace in everything that is written: none steers a terminal, turns the text, or gives a secret away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.words.visible import visible
from tests.fuzz.pipeline import OBEYED, check
from tests.support.written import event, kineto_text, write

STEERING = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202egnp.exe\u2066\u200f\u2028\ufeff\t\x00"
SECRET = "ghp_0123456789abcdef"
FORMS = ["text", "markdown", "sarif", "html"]


def steering_trace(folder: Path) -> Path:
    """A step that reads back to the host all the time, in functions whose names steer terminals."""
    inside = {"Python id": 2, "Python parent id": 1}
    events = [
        event("ProfilerStep#1", 0, 900, cat="user_annotation"),
        event(f"tr{STEERING}ain.py(9): step{STEERING}", 1, 898, cat="python_function", args={"Python id": 1}),
        event(f"nn.Module: Net{STEERING}", 2, 890, cat="python_function", args=inside),
        *[event("aten::ones", 10 + 20 * at, 15, args={"Input Dims": [[], []]}) for at in range(40)],
    ]
    secrets = {
        "metadata": {"GITHUB_TOKEN": SECRET, "argv": ["--password", SECRET]},
        "env": {"AWS_SECRET_ACCESS_KEY": SECRET},
        "host_name": SECRET,
        "deviceProperties": [{"id": 0, "name": STEERING, "token": SECRET}],
        "distributedInfo": {"rank": 0, "world_size": 1, "backend": STEERING, "password": SECRET},
        SECRET: SECRET,
    }
    return write(folder / f"w{STEERING[1:9]}.1.pt.trace.json", kineto_text(events, json.dumps(secrets)[1:-1]))


@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_the_report_holds_what_a_terminal_obeys(tmp_path: Path, form: str) -> None:
    steering_trace(tmp_path)
    done = CliRunner().invoke(commands, ["check", str(tmp_path), "--isolated", "--format", form])
    assert done.exit_code == 0, done.output
    assert "step" in done.output
    assert not OBEYED.findall(done.output)


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("command", ["check", "summary"])
def test_no_secret_of_the_metadata_is_written(tmp_path: Path, command: str, form: str) -> None:
    steering_trace(tmp_path)
    done = CliRunner().invoke(commands, [command, str(tmp_path), "--isolated", "--format", form])
    assert done.exit_code == 0, done.output
    assert SECRET not in done.output


def test_a_damaged_file_is_not_quoted_in_its_error(tmp_path: Path) -> None:
    write(tmp_path / "a.pt.trace.json", f'{{"token": "{SECRET}", "traceEvents": [{{"name": "{SECRET}')
    write(tmp_path / "b.pt.trace.json", f"{SECRET} = 1")
    done = CliRunner().invoke(commands, ["check", str(tmp_path), "--isolated", "--format", "json"])
    assert len(json.loads(done.output)["problems"]) == 2
    assert SECRET not in done.output


def test_letters_of_all_scripts_stay(tmp_path: Path) -> None:
    assert visible("größe 模型 שלום 🙂 a b") == "größe 模型 שלום 🙂 a b"
    assert visible("a\x1b[2Jb\u202ec\ud800") == "a\ufffd[2Jb\ufffdc\ufffd"


def test_kernels_on_several_streams_without_a_launch_are_analysed(tmp_path: Path) -> None:
    """Of a recording of device activity only; found by breaking recordings at random."""
    kernels = [event("k", at, 1, cat="kernel", args={"device": 0, "stream": at % 2}) for at in range(4)]
    assert check(kineto_text(kernels).encode(), tmp_path).runs


@pytest.mark.parametrize("sequence", [(1 << 63) - 1, 1 << 41, -(1 << 63)])
def test_no_rule_fails_on_autograds_numbers_at_the_edge(tmp_path: Path, sequence: int) -> None:
    """Found by Hypothesis: numbers times threads left int64."""
    events = [event("aten::mm", at, 1, tid=at, args={"Sequence number": sequence}) for at in range(4)]
    assert check(kineto_text(events).encode(), tmp_path).runs


# Whatever a trace holds

NAMES = st.one_of(
    st.sampled_from(["aten::mm", "aten::item", "aten::to", "aten::copy_", "ProfilerStep#1", "ProfilerStep#2",
                     "[memory]", "train.py(9): step", "nn.Module: Linear_0", "cudaLaunchKernel",
                     "Memcpy HtoD (Pageable -> Device)", "Optimizer.step#Adam.step", "record_param_comms",
                     "nccl:all_reduce"]),
    st.text(max_size=12),
)  # fmt: skip
CATEGORIES = st.sampled_from(["cpu_op", "python_function", "user_annotation", "cuda_runtime", "kernel", "gpu_memcpy",
                              "cpu_instant_event", "ac2g", "Trace", ""])  # fmt: skip
EDGES = st.sampled_from([-(2**63), -1, 0, 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**70])
IDS = st.one_of(st.integers(-2, 6), EDGES)
TIMES = st.one_of(st.floats(-5, 2000), EDGES, st.floats(allow_nan=False, allow_infinity=False))
SHAPES = st.lists(st.lists(IDS, max_size=4), max_size=3)
ARGS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(["External id", "correlation", "Ev Idx", "Sequence number", "Fwd thread id", "Python id",
                         "Python parent id", "device", "stream", "bytes", "Bytes", "Addr", "Device Type", "Device Id",
                         "Total Allocated", "Rank", "Group size", "In msg nelems"], IDS),
        "Input Dims": SHAPES,
        "Input Strides": SHAPES,
        "Input type": st.lists(st.sampled_from(["float", "double", "", "c10::Half", "long int"]), max_size=3),
        "Concrete Inputs": st.lists(st.text(max_size=5), max_size=3),
        "Call stack": st.text(max_size=30),
        "grid": st.lists(IDS, max_size=3),
    },
)  # fmt: skip
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"ph": st.sampled_from(["X", "X", "X", "i", "s", "f", "M"]), "cat": CATEGORIES, "name": NAMES, "ts": TIMES},
        optional={"dur": TIMES, "pid": st.integers(0, 2), "tid": st.integers(0, 2), "id": IDS, "args": ARGS},
    ),
    max_size=14,
)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(events=EVENTS)
def test_whatever_a_trace_holds_is_written_in_every_form(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, object]]
) -> None:
    check(json.dumps({"traceEvents": events}).encode("utf-8", "surrogatepass"), tmp_path_factory.mktemp("any"))
