"""Plain recordings have the speed of this machine only if this machine made them."""

from __future__ import annotations

import gzip
import json
import os
import platform
from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.profile.machine import Machine, host_machine
from tb_tidy_plugin.system.machine_file import keep_machine, machine_file
from tb_tidy_plugin.trace.cache import Cache
from tb_tidy_plugin.trace.files import find_traces
from tests.support.written import event, kineto_text, write

HOST = platform.node()


def figures(rate: float, torch: str = "2.13.0+cpu") -> bytes:
    product = {"dtype": "float32", "threads": 1, "flops_per_second": rate}
    return json.dumps({"torch": torch, "times": 3, "host": {"threads": 1, "products": [product]}}).encode()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def machine_of(folder: Path, worker: str) -> Machine | None:
    folder.mkdir(exist_ok=True)
    write(folder / f"{worker}.1790000000000000000.pt.trace.json", kineto_text([event("aten::mm", 0, 3)]))
    (file,) = find_traces(folder)
    return host_machine(read_file(file, Job()).profile)


def test_a_recording_of_this_host_has_the_latest_figures(tmp_path: Path) -> None:
    for at, (torch, rate) in enumerate((("2.12.0", 1e9), ("2.13.0+cpu", 2e9))):
        keep_machine(machine_file(torch), figures(rate, torch))
        os.utime(machine_file(torch), (at, at))
    machine = machine_of(tmp_path / "run", f"{HOST}_4242")
    assert machine is not None
    assert (machine.source, machine.flops_per_second("float")) == ("measured", 2e9)


@pytest.mark.parametrize(
    "worker", ["elsewhere_4242", f"{HOST}x_4242", f"x{HOST}_4242", HOST, f"{HOST}_", f"{HOST}_rank0", "rank0", "w"]
)
def test_a_recording_of_another_host_has_none(worker: str, tmp_path: Path) -> None:
    keep_machine(machine_file("2.13.0"), figures(1e9))
    assert machine_of(tmp_path / "run", worker) is None


def test_a_name_that_many_hosts_have_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "localhost")
    keep_machine(machine_file("2.13.0"), figures(1e9))
    assert machine_of(tmp_path / "run", "localhost_4242") is None


def test_figures_of_another_machine_in_a_shared_home_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(platform, "node", lambda: "elsewhere")
        keep_machine(machine_file("2.13.0"), figures(1e9))
    assert machine_of(tmp_path / "run", f"{HOST}_4242") is None


def test_what_the_recording_itself_carries_counts(tmp_path: Path) -> None:
    keep_machine(machine_file("2.13.0"), figures(1e9))
    folder = tmp_path / "run"
    folder.mkdir()
    side = folder / f"{HOST}_4242.1790000000000000000.pt.trace.json.tidy.json.gz"
    side.write_bytes(gzip.compress(json.dumps({"version": 1, "machine": json.loads(figures(7e9))}).encode()))
    machine = machine_of(folder, f"{HOST}_4242")
    assert machine is not None
    assert machine.flops_per_second("float") == 7e9


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", figures(-1), figures(1e30), b'{"torch": 3}', b"x" * 100_000])
def test_a_damaged_file_is_passed_over(damage: bytes, tmp_path: Path) -> None:
    keep_machine(machine_file("2.12.0"), figures(1e9, "2.12.0"))
    os.utime(machine_file("2.12.0"), (1, 1))
    keep_machine(machine_file("2.13.0"), damage)
    machine = machine_of(tmp_path / "run", f"{HOST}_4242")
    assert machine is not None
    assert machine.flops_per_second("float") == 1e9


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permissions of this kind")
def test_a_file_that_others_may_have_written_is_not_used(tmp_path: Path) -> None:
    keep_machine(machine_file("2.13.0"), figures(1e9))
    machine_file("2.13.0").chmod(0o666)
    assert machine_of(tmp_path / "run", f"{HOST}_4242") is None


def test_stored_answers_depend_on_it(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write(tmp_path / "run" / f"{HOST}_4242.1.pt.trace.json", kineto_text([event("aten::mm", 0, 3)]))
    job = Job(cache=Cache(tmp_path / "answers"))
    kept = []
    for rate in (None, 1e9, None, 2e9):
        if rate is not None:
            keep_machine(machine_file("2.13.0"), figures(rate))
        analyze_path(tmp_path / "run", job)
        kept.append(len(list((tmp_path / "answers").iterdir())))
    assert kept[0] < kept[1] == kept[2] < kept[3]
