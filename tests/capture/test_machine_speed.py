"""The speed of this machine: measured shortly, without a trace in the job, kept, and never in the job's way."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.capture import machine_speed, tidy_profile
from tb_tidy_plugin.profile.machine import host_machine
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.system.machine_file import files_of_this_machine, machine_file
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.measured_machine import MeasuredMachine
from tests.support.captured_job import document_of, traces_in

pytestmark = pytest.mark.torch
MOST_S = 0.3
TRIES = 20


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the machine had been measured: other tests use its cores."""

    def figures(_budget_s: float) -> dict[str, Any]:
        import torch

        threads = torch.get_num_threads()
        product = {"dtype": "float32", "threads": threads, "flops_per_second": 1e9}
        copy = {"bytes": 1 << 20, "threads": threads, "bytes_per_second": 1e9}
        host = {"threads": threads, "operator_ns": 300.0, "page_fault_ns": 200.0}
        return {"torch": torch.__version__, "times": 1, "host": {**host, "products": [product], "copies": [copy]}}

    monkeypatch.setattr(machine_speed, "measured_apart", figures)


def recorded(folder: Path) -> Mapping[str, Any]:
    """The side file of a job of eight small steps."""
    import torch

    with tidy_profile(str(folder), steps=8) as profiler:
        for _ in range(8):
            torch.ones(8, 8).add(1)
            profiler.step()
    (trace,) = traces_in(folder)
    return document_of(trace)


def measured() -> dict[str, Any]:
    """The figures; skips, visibly, if other programs use the cores again and again."""
    for _ in range(TRIES):
        if (found := machine_speed.measured_apart(machine_speed.JOB_S)) is not None:
            return found
    pytest.skip("other programs use the cores")


class TestFigures:
    def test_they_are_complete_and_as_a_plain_loop_counts(self) -> None:
        import torch

        host = measured()["host"]
        threads = torch.get_num_threads()
        assert {(each["dtype"], each["threads"]) for each in host["products"]} == {
            (dtype, count) for dtype in machine_speed.DTYPES for count in {1, threads}
        }
        (rate,) = (
            each["flops_per_second"]
            for each in host["products"]
            if (each["dtype"], each["threads"]) == ("float32", threads)
        )
        factor = torch.ones(256, 256)
        best_s = float("inf")
        for _ in range(300):
            began_s = time.perf_counter()
            factor @ factor
            best_s = min(best_s, time.perf_counter() - began_s)
        assert 0.4 < rate / (2 * 256**3 / best_s) < 2.5
        sizes = {each["bytes"] for each in host["copies"]}
        assert set(machine_speed.SETS) < sizes
        assert 50 < host["operator_ns"] < 50_000
        decode(json.dumps({"torch": "", "host": host}), MeasuredMachine)

    def test_they_take_a_third_of_a_second_at_most(self) -> None:
        took_s = []
        measured()
        for _ in range(5):  # the machine may be busy during some
            began_s = time.perf_counter()
            machine_speed.measured_apart(machine_speed.JOB_S)
            took_s.append(time.perf_counter() - began_s)
        assert min(took_s) <= MOST_S

    def test_a_job_s_modes_do_not_reach_them_and_stay_as_they_are(self) -> None:
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode

        class Refusing(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch is partly typed
            def __torch_dispatch__(self, *_arguments: object, **_named: object) -> object:
                raise AssertionError("an operator of the capture ran in the job's mode")

        def state() -> tuple[object, ...]:
            return (
                torch.get_num_threads(), torch.get_num_interop_threads(), torch.get_default_dtype(),
                torch.get_default_device(), torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
                torch.is_autocast_enabled("cpu"), torch.are_deterministic_algorithms_enabled(),
                torch.is_anomaly_enabled(), torch.get_float32_matmul_precision(), torch.get_rng_state().tolist(),
                threading.active_count(),
            )  # fmt: skip

        threads = torch.get_num_threads()
        try:
            torch.set_default_dtype(torch.float64)
            torch.set_default_device("meta")
            torch.use_deterministic_algorithms(True)
            torch.manual_seed(3)
            torch.set_num_threads(1)
            before = state()
            with warnings.catch_warnings(), torch.autocast("cpu"), torch.autograd.set_detect_anomaly(True, False):
                warnings.simplefilter("error")
                inside = state()
                with Refusing():  # type: ignore[no-untyped-call] # as above
                    machine_speed.measured_apart(machine_speed.JOB_S)
                assert state() == inside
            assert state() == before
        finally:
            torch.set_default_dtype(torch.float32)
            torch.set_default_device(None)
            torch.use_deterministic_algorithms(False)
            torch.set_num_threads(threads)

    @pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not tell a process's memory")
    def test_its_memory_is_free_afterwards(self) -> None:
        def resident() -> int:
            return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        machine_speed.measured_apart(machine_speed.JOB_S)
        before = resident()
        machine_speed.measured_apart(machine_speed.JOB_S)
        assert resident() - before < 24 << 20, "the working set in memory takes 32 MiB or more"


@pytest.mark.usefixtures("_known")
class TestKept:
    def test_the_side_file_carries_them_and_they_are_read(self, tmp_path: Path) -> None:
        import torch

        machine = recorded(tmp_path / "run")["machine"]
        assert machine["torch"] == torch.__version__
        (trace,) = traces_in(tmp_path / "run")
        found = host_machine(Profile(read_with_side_files(trace)))
        assert found is not None
        assert found.source == "measured"
        (best,) = (
            max(each["flops_per_second"] for each in machine["host"]["products"] if each["dtype"] == name)
            for name in ("float32",)
        )
        assert found.flops_per_second("float") == best
        assert os.uname().nodename not in json.dumps(machine), "a side file names no host"

    def test_three_recordings_measure_and_the_best_of_each_figure_counts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[float] = []
        rates = iter([1e9, 3e9, 2e9, 9e9])

        def one(budget_s: float) -> dict[str, Any]:
            asked.append(budget_s)
            rate = next(rates)
            product = {"dtype": "float32", "threads": 1, "flops_per_second": rate}
            copy = {"bytes": 64, "threads": 1, "bytes_per_second": 1e18 / rate}
            host = {"threads": 1, "operator_ns": 1e9 / rate, "page_fault_ns": rate / 1e9}
            return {"torch": "x", "times": 1, "host": {**host, "products": [product], "copies": [copy]}}

        monkeypatch.setattr(machine_speed, "measured_apart", one)
        found = [recorded(tmp_path / f"run{number}")["machine"]["host"] for number in range(5)]
        assert len(asked) == 3
        assert [each["products"][0]["flops_per_second"] for each in found] == [1e9, 3e9, 3e9, 3e9, 3e9]
        assert [each["copies"][0]["bytes_per_second"] for each in found] == [1e9] * 5
        assert [each["operator_ns"] for each in found] == [1.0, *[pytest.approx(1 / 3)] * 4]
        assert [each["page_fault_ns"] for each in found] == [1.0] * 5

    def test_another_number_of_threads_is_another_machine(self) -> None:
        import torch

        threads = torch.get_num_threads()
        first = machine_speed.machine_speed()
        try:
            torch.set_num_threads(threads + 1)
            second = machine_speed.machine_speed()
        finally:
            torch.set_num_threads(threads)
        assert first is not None
        assert second is not None
        assert second["host"]["threads"] == threads + 1  # type: ignore[index] # a table

    @pytest.mark.parametrize("content", [b"", b"[1]", b"{", b'{"times": "3"}', b'{"times": 1}', b"\xff", b"x" * 70_000])
    def test_a_damaged_file_is_measured_again(self, content: bytes) -> None:
        import torch

        file = machine_file(str(torch.__version__))
        file.parent.mkdir(parents=True, mode=0o700)
        file.write_bytes(content)
        found = machine_speed.machine_speed()
        assert found is not None
        assert found["host"]["products"]  # type: ignore[index] # a table

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no permissions of this kind")
    def test_a_folder_that_others_may_write_to_is_not_used(self, caplog: pytest.LogCaptureFixture) -> None:
        import torch

        file = machine_file(str(torch.__version__))
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"times": 9, "host": "theirs"}))
        file.parent.chmod(0o777)
        found = machine_speed.machine_speed()
        assert found is not None
        assert found["host"] != "theirs"
        assert "theirs" in file.read_text(), "nothing is written there"
        assert "others may write there" in caplog.text

    def test_processes_that_share_the_cores_do_not_measure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert machine_speed.machine_speed() is None
        monkeypatch.setenv("WORLD_SIZE", "1")
        known = machine_speed.machine_speed()
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert machine_speed.machine_speed() == known
        assert len(files_of_this_machine()) == 1


class TestNothingBreaksTheJob:
    @pytest.mark.parametrize("error", [MemoryError("no memory"), RuntimeError("no kernel"), OSError(28, "No space")])
    def test_a_failure_costs_the_figures_alone_and_is_said_once(
        self, error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(*_arguments: object) -> None:
            raise error

        monkeypatch.setattr(machine_speed, "_measured", fail)
        for number in range(2):
            document = recorded(tmp_path / f"run{number}")
            assert document["machine"] is None
            assert document["settings"]
        assert len([each for each in caplog.messages if "the speed of this machine" in each]) == 1

    def test_a_machine_that_does_not_answer_is_not_waited_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        release = threading.Event()
        monkeypatch.setattr(machine_speed, "_measured", lambda *_arguments: release.wait(60))
        monkeypatch.setattr(machine_speed, "ANSWER_S", 0.05)
        began_s = time.perf_counter()
        document = recorded(tmp_path)
        release.set()
        assert time.perf_counter() - began_s < 30
        assert document["machine"] is None
        assert "takes longer than 0.3 s" in caplog.text

    def test_a_busy_machine_has_no_figures(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "tb_tidy_plugin.capture")
        monkeypatch.setattr(machine_speed, "OWN_CORES", 1e9)
        assert machine_speed.machine_speed() is None
        assert "Run `tb-tidy bench --machine` when it is idle." in caplog.text
        assert files_of_this_machine() == []

    def test_threads_are_set_back_after_a_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        def fail(*_arguments: object) -> None:
            torch.set_num_threads(7)
            raise RuntimeError("on purpose")

        before = torch.get_num_threads()
        monkeypatch.setattr(machine_speed, "OWN_CORES", 0.0)
        monkeypatch.setattr(machine_speed, "_run_all", fail)
        assert machine_speed.machine_speed() is None
        assert torch.get_num_threads() == before

    @pytest.mark.usefixtures("_known")
    def test_a_cache_that_cannot_be_written(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "cache").write_text("a file")
        assert machine_speed.machine_speed() is not None
        assert "it is measured again next time" in caplog.text

    @pytest.mark.usefixtures("_known")
    def test_without_the_package_that_knows_the_cache(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """As under `tb-tidy record`, in a program's own environment."""
        monkeypatch.setitem(__import__("sys").modules, "platformdirs", None)
        assert machine_speed.machine_speed() is not None
        assert caplog.text == "", "that is usual there"


@pytest.mark.torch
def test_a_job_that_ends_during_a_late_measurement_ends_well() -> None:
    code = """
from tb_tidy_plugin.capture import machine_speed
machine_speed.ANSWER_S = -0.2
machine_speed._check_that_cores_are_free = lambda *_: None
try:
    machine_speed.measured_apart(0.25)
except TimeoutError:
    print("late")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "late\n"), done.stderr
