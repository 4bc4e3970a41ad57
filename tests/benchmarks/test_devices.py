"""Which devices a benchmark may be sent to."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.benchmarks import devices


@pytest.mark.torch
def test_devices_are_named_as_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "available", lambda: {"cuda": 2, "mps": 1, "cpu": 1})
    assert devices.addresses() == ("cuda:0", "cuda:1", "mps", "cpu")
    assert all(devices.ASKED.fullmatch(address) for address in devices.addresses())


def test_only_devices_on_which_the_statements_say_something() -> None:
    assert devices.of_kinds(("cuda:0", "cuda:1", "cpu"), ("cuda", "xpu")) == ["cuda:0", "cuda:1"]
    assert devices.of_kinds(("rocm", "cpu"), ("cuda", "cpu")) == ["rocm", "cpu"]
    assert devices.of_kinds((), ("cpu",)) == []
