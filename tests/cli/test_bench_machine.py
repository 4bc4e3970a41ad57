"""`tb-tidy bench --machine`: what this machine can do, measured in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.measured_machine import MeasuredMachine
from tests.support.commands import tidy


@pytest.mark.torch
def test_figures_are_printed_kept_and_found_by_the_next_job(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    done = tidy("bench", "--machine", "--budget", "0.5", "--format", "json", environment=environment)
    if "This machine is busy" in done.stderr:
        pytest.skip("other programs use the cores")
    assert done.returncode == 0, done.stderr
    machine = decode(done.stdout, MeasuredMachine)
    assert {rate.dtype for rate in machine.host.products} == {"float64", "float32", "bfloat16", "float16"}
    (file,) = (tmp_path / "tb-tidy" / "machines").iterdir()
    assert decode(file.read_bytes(), MeasuredMachine) == machine


@pytest.mark.parametrize("arguments", [("bench",), ("bench", "--machine", ".")])
def test_it_takes_no_path(arguments: tuple[str, ...]) -> None:
    done = tidy(*arguments)
    assert done.returncode == 2
    assert "Give either one or several PATHs or --machine." in done.stderr
