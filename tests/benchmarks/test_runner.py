"""Measurements in a process of their own: whatever statements do, there is a result and nothing is left running.

What the process answers is asked of one that has torch imported already; how it starts and ends, of the command itself.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from tb_tidy_plugin.benchmarks.measurement import Measurement, NotMeasured
from tb_tidy_plugin.benchmarks.process import MeasuringProgress, MeasuringRequest
from tb_tidy_plugin.benchmarks.runner import CANCELLED, PairMeasurement
from tb_tidy_plugin.rulekit import Benchmark
from tests.accuracy.processes import measured_in
from tests.support.waiting import until

pytestmark = [pytest.mark.torch, pytest.mark.slow]

READS = Benchmark(
    "result = [value.item() for value in x]", "result = x.tolist()", "import torch\nx = torch.ones(500, device=device)"
)
SETUP = "import time\nimport torch\nx = torch.ones(4, device=device)"


def request(pair: Benchmark, asked: str = "cpu") -> MeasuringRequest:
    return MeasuringRequest(rule="some-rule", pair=pair, budget_s=0.1, asked=asked)


def result(pair: Benchmark, limit_s: float = 60) -> Measurement | NotMeasured:
    return PairMeasurement(request(pair), limit_s).result()


def error_of(found: Measurement | NotMeasured) -> str:
    assert isinstance(found, NotMeasured), found
    assert found.advice
    return found.error


def test_a_pair_is_measured_as_it_stands() -> None:
    seen: list[MeasuringProgress] = []
    found = PairMeasurement(MeasuringRequest(rule="some-rule", pair=READS, asked="cpu", budget_s=2)).result(seen.append)
    assert isinstance(found, Measurement)
    assert found.is_of("some-rule", READS)
    assert found.is_sound()
    assert (found.on.kind, found.on.address, found.equal) == ("cpu", "cpu", True)
    assert found.ratio < 0.5, "500 calls against one"
    assert found.verdict == "faster"
    assert len(found.before_samples_ns) == len(found.after_samples_ns) == found.blocks
    assert [each.stage for each in seen[:3]] == ["Starting PyTorch", "Comparing results", "Measuring"]
    assert seen[-1].blocks == found.blocks
    assert seen[1].devices[-1] == "cpu", "it says what else it could be measured on"


def test_statements_that_compute_something_else_are_not_trusted(tmp_path: Path) -> None:
    found = measured_in(tmp_path, request(Benchmark("result = x + 1", "result = x + 2", SETUP)))
    assert isinstance(found, Measurement)
    assert (found.equal, found.trusted) == (False, False)
    assert found.doubts[0].startswith(
        "The statements produce different values of `result`: Tensor-likes are not close!"
    )


@pytest.mark.parametrize(("compare", "equal"), [((), None), (("x",), False)])
def test_what_is_changed_in_place_is_compared_where_the_rule_says_so(
    compare: tuple[str, ...], equal: bool | None, tmp_path: Path
) -> None:
    found = measured_in(tmp_path, request(Benchmark("x.add_(1)", "x.add_(2)", SETUP, compare=compare)))
    assert isinstance(found, Measurement)
    assert found.equal is equal


def test_settings_of_a_statement_end_with_its_process() -> None:
    import torch

    before = torch.get_float32_matmul_precision()
    other = "high" if before == "highest" else "highest"
    statement = f"torch.set_float32_matmul_precision({other!r})"
    assert isinstance(result(Benchmark(statement, "x", SETUP)), Measurement)
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("1 / 0", "The statements failed with ZeroDivisionError: division by zero"),
        ("x @ torch.ones(5)", "The statements failed with RuntimeError: "),
        ("torch.zeros(1 << 40)", "Memory ran out: "),
    ],
)
def test_what_fails_is_told(statement: str, error: str, tmp_path: Path) -> None:
    found = measured_in(tmp_path, request(Benchmark(statement, "x", SETUP)))
    assert error_of(found).startswith(error)


def test_statements_that_are_not_on_the_list_are_not_run() -> None:
    error = error_of(result(Benchmark("raise SystemExit(3)", "x", SETUP)))
    assert error.startswith("The statements are not run: they use `raise SystemExit(3)`, which is not on the list")


def test_more_memory_than_may_be_taken_is_told() -> None:
    taking = Benchmark("y = [torch.ones(1 << 24) for _ in range(640)]", "x", SETUP)
    found = PairMeasurement(
        MeasuringRequest(rule="some-rule", pair=taking, asked="cpu", budget_s=0.1, memory_bytes=256 << 20)
    ).result()
    assert isinstance(found, NotMeasured)
    assert found.error.startswith(("Memory ran out: ", "The statements need more than 256 MiB"))


def test_a_crash_is_told() -> None:
    crash = "nested = zip(x)\nfor _ in range(1000000):\n    nested = zip(nested)\nlist(nested)"
    assert error_of(result(Benchmark(crash, "x", SETUP))).startswith("The measurement ended with SIGSEGV.")


def test_what_takes_too_long_is_ended() -> None:
    error = error_of(result(Benchmark("while True:\n    pass", "x", SETUP), 8))
    assert error == "The measurement took more than 8.1 s."


@pytest.mark.parametrize(
    ("asked", "error"),
    [("xpu:7", "This PyTorch cannot use `xpu:7`."), ("tpu", "This PyTorch does not know the device `tpu`.")],
)
def test_a_device_that_is_not_there(asked: str, error: str, tmp_path: Path) -> None:
    assert error_of(measured_in(tmp_path, request(READS, asked))) == error


def test_a_pair_that_needs_another_device_gives_no_wrong_number(tmp_path: Path) -> None:
    error = error_of(measured_in(tmp_path, request(replace(READS, devices=("cuda",)))))
    assert error == "This needs a CUDA device: on another device the result would be meaningless."


def test_cancelled_before_it_starts() -> None:
    run = PairMeasurement(MeasuringRequest(rule="some-rule", pair=READS))
    run.cancel()
    assert run.result() == CANCELLED


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for the group in /proc")
def test_cancelled_while_it_runs_with_all_that_it_has_started() -> None:
    loading = (
        "class Slow(torch.utils.data.Dataset):\n    def __len__(self):\n        return 9\n"
        "    def __getitem__(self, index):\n        while True:\n            pass\n"
        "loader = torch.utils.data.DataLoader(Slow(), num_workers=2)"
    )
    setup = f"import torch.utils.data\n{SETUP}\n{loading}"
    run = PairMeasurement(
        MeasuringRequest(rule="some-rule", pair=Benchmark("for _ in loader:\n    pass", "x", setup), asked="cpu")
    )
    ended: list[Measurement | NotMeasured] = []
    thread = threading.Thread(target=lambda: ended.append(run.result()))
    thread.start()
    group = until(lambda: [pid for pid, held in _groups().items() if len(held) == 3 and pid in _children()])[0]
    run.cancel()
    thread.join(30)
    assert ended == [CANCELLED]
    until(lambda: group not in _groups())


def _stat(pid: str) -> list[str]:
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _groups() -> dict[int, list[str]]:
    """Living processes by their group."""
    found: dict[int, list[str]] = {}
    for pid in (each.name for each in Path("/proc").iterdir() if each.name.isdigit()):
        if (fields := _stat(pid)) and fields[0] != "Z":
            found.setdefault(int(fields[2]), []).append(pid)
    return found


def _children() -> set[int]:
    """Processes that this one has started."""
    pids = (each.name for each in Path("/proc").iterdir() if each.name.isdigit())
    return {int(pid) for pid in pids if (fields := _stat(pid)) and int(fields[1]) == os.getpid()}
