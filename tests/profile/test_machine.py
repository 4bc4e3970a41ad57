"""A machine as floors ask for it: limits by threads and working set, and how they are known."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tb_tidy_plugin.profile.machine import device_machine, host_machine
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import A100, Gpu, draw
from tb_tidy_plugin.trace.beside import read_with_side_files
from tests.support.written import event, kineto_text, write

MEASURED = {
    "torch": "2.13.0+cpu",
    "host": {
        "threads": 8,
        "products": [
            {"dtype": "float32", "threads": 1, "flops_per_second": 100e9},
            {"dtype": "float32", "threads": 8, "flops_per_second": 500e9},
            {"dtype": "bfloat16", "threads": 8, "flops_per_second": 900e9},
        ],
        "copies": [
            {"bytes": 1 << 28, "threads": 8, "bytes_per_second": 40e9},
            {"bytes": 1 << 28, "threads": 1, "bytes_per_second": 15e9},
            {"bytes": 1 << 18, "threads": 1, "bytes_per_second": 60e9},
        ],
        "operator_ns": 400.5,
        "page_fault_ns": 250,
    },
    "devices": [
        {
            "name": "NVIDIA Tomorrow 1",
            "products": [{"dtype": "float16", "threads": 1, "flops_per_second": 100e12}],
            "copies": [{"bytes": 1 << 30, "threads": 1, "bytes_per_second": 900e9}],
            "launch_ns": 4000,
        }
    ],
}


def measured(folder: Path, device: str = "", machine: object = MEASURED) -> Profile:
    events = [event("aten::mm", 0, 3)]
    listed = ""
    if device:
        events += [
            event("cudaLaunchKernel", 1, 1, cat="cuda_runtime", args={"correlation": 1}),
            event("k", 5, 4, cat="kernel", pid=0, tid=7, args={"device": 0, "correlation": 1}),
        ]
        listed = f'"deviceProperties": {json.dumps([{"id": 0, "name": device}])}'
    path = write(folder / "t.pt.trace.json", kineto_text(events, listed))
    side = path.with_name(path.name + ".tidy.json.gz")
    side.write_bytes(gzip.compress(json.dumps({"version": 1, "machine": machine}).encode()))
    return Profile(read_with_side_files(path))


@pytest.mark.parametrize(
    ("dtype", "threads", "expected"),
    [
        ("float", None, 500e9), ("float", 8, 500e9), ("float", 16, 500e9), ("float", 1, 100e9),
        ("float", 3, 300e9), ("float", 6, 500e9),  # never more than all together
        ("c10::BFloat16", 1, 900e9),  # one thread was not measured: at most what all reach
        ("double", None, None),
    ],
)  # fmt: skip
def test_products_of_a_processor(dtype: str, threads: int | None, expected: float | None, tmp_path: Path) -> None:
    machine = host_machine(measured(tmp_path))
    assert machine is not None
    assert machine.source == "measured"
    assert machine.flops_per_second(dtype, threads) == expected
    assert (machine.operator_ns, machine.page_fault_ns) == (400.5, 250)


@pytest.mark.parametrize(
    ("working_set", "threads", "expected"),
    [
        (1 << 40, None, 40e9), (1 << 28, 1, 15e9), (1 << 28, 2, 30e9), (1 << 28, 4, 40e9),
        ((1 << 28) - 1, 1, 60e9),  # may fit into the cache
        (1 << 18, None, 60e9), (64, 1, 60e9),
    ],
)  # fmt: skip
def test_bandwidth_of_a_processor(working_set: int, threads: int | None, expected: float, tmp_path: Path) -> None:
    machine = host_machine(measured(tmp_path))
    assert machine is not None
    assert machine.bytes_per_second(working_set, threads) == expected


def test_a_processor_that_was_not_measured_has_no_limits() -> None:
    assert host_machine(draw("aten::mm 0-10  dims=8x8,8x8  types=float,float")) is None


def test_a_known_device_has_the_rates_of_its_datasheet() -> None:
    machine = device_machine(draw("aten::mm 0-10 kernel=k@5-20", A100))
    assert machine is not None
    assert (machine.name, machine.source) == (A100.name, "datasheet")
    assert machine.bytes_per_second(1 << 40) == pytest.approx(2039e9, rel=1e-3)
    assert machine.flops_per_second("float", matrix_units=False) == 19.5e12
    assert machine.flops_per_second("float") == machine.flops_per_second("float", matrix_units=True) == 156e12
    assert machine.flops_per_second("c10::Half", matrix_units=False) == 312e12, "the device's limit"
    assert machine.flops_per_second("c10::complex<float>") is None


def test_a_device_without_a_datasheet_has_the_rates_that_were_measured(tmp_path: Path) -> None:
    machine = device_machine(measured(tmp_path, "NVIDIA Tomorrow 1"))
    assert machine is not None
    assert (machine.source, machine.launch_ns) == ("measured", 4000)
    assert machine.flops_per_second("c10::Half") == 100e12
    assert machine.bytes_per_second(1 << 31) == 900e9


def test_figures_of_another_device_are_not_used(tmp_path: Path) -> None:
    assert device_machine(measured(tmp_path, "NVIDIA Tomorrow 2")) is None


@pytest.mark.parametrize(
    "damage",
    [
        {"threads": 0}, {"threads": 8, "operator_ns": -1}, {"threads": 8, "products": [{"dtype": "float8"}]},
        {"threads": 8, "copies": [{"bytes": 1, "threads": 1, "bytes_per_second": 0}]},
        {"threads": 8, "copies": [{"bytes": 1, "threads": 1, "bytes_per_second": 1e300}]},
    ],
)  # fmt: skip
def test_figures_that_cannot_be_cost_the_side_file_alone(damage: object, tmp_path: Path) -> None:
    profile = measured(tmp_path, machine={"torch": "2.13.0", "host": damage})
    assert host_machine(profile) is None
    assert len(profile.table) == 1
    assert "does not match the format" in " ".join(profile.metadata.notes)


@pytest.mark.parametrize("moved", [1 << 10, 12_582_912, 40 << 20, 60 << 20, 1 << 30, 1 << 34])
def test_what_the_last_cache_holds_need_not_pass_the_memory(moved: int) -> None:
    """An A100 has 40 MiB: 12.6 MB were added up in 6 µs, which its memory alone would need 8.1 µs for."""
    machine = device_machine(draw("aten::mm 0-10 kernel=k@5-20", Gpu("NVIDIA A100-PG509-200", 8, 0)))
    assert machine is not None
    rate = machine.bytes_per_second(moved)
    assert rate is not None
    least_s = moved / rate
    beyond = max(moved - (40 << 20), 0)
    assert beyond / 1555e9 <= least_s <= moved / 1555e9
    if moved == 12_582_912:
        assert least_s < 6e-6
    if moved == 1 << 34:
        assert least_s == pytest.approx(moved / 1555e9, rel=0.01)
