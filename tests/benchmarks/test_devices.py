"""Which devices a benchmark may be sent to."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from tb_tidy_plugin.benchmarks import devices, process
from tb_tidy_plugin.rulekit import Benchmark


@pytest.mark.torch
def test_devices_are_named_as_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "available", lambda: {"cuda": 2, "mps": 1, "cpu": 1})
    assert devices.addresses() == ("cuda:0", "cuda:1", "mps", "cpu")
    assert all(devices.ASKED.fullmatch(address) for address in devices.addresses())


def test_only_devices_on_which_the_statements_say_something() -> None:
    assert devices.of_kinds(("cuda:0", "cuda:1", "cpu"), ("cuda", "xpu")) == ["cuda:0", "cuda:1"]
    assert devices.of_kinds(("rocm", "cpu"), ("cuda", "cpu")) == ["rocm", "cpu"]
    assert devices.of_kinds((), ("cpu",)) == []


@pytest.mark.torch
def test_the_memory_of_a_device_is_capped_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """`torch.cuda.set_per_process_memory_fraction` refuses `cuda`, which is what a measurement is asked for on."""
    import torch

    capped: list[tuple[float, int]] = []
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (80 << 30, 80 << 30))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *given: capped.append(given))
    monkeypatch.setattr(process, "_watch_memory", lambda *_: None)
    for address in ("cuda", "cuda:1"):
        process._cap_memory(torch.device(address), 8 << 30, lambda _: None)  # noqa: SLF001
    assert capped == [(0.1, 3), (0.1, 1)]


@pytest.mark.torch
def test_statements_have_a_module_that_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """`torch.compile` imports the module of the function that it compiles, by name; PyTorch 2.11 fails without it."""
    import torch

    monkeypatch.setitem(sys.modules, "statements", None)
    pair = Benchmark("double(x)", "x + x", "import torch\nx = torch.ones(4)\n\n\ndef double(x):\n    return x + x\n")
    names = process._set_up(pair, torch.device("cpu"))  # noqa: SLF001
    assert import_module(names["double"].__module__).double is names["double"]
