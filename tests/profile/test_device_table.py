"""Models of devices: names as drivers report them, and rates as their makers state them."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from tb_tidy_plugin.profile.device_models import DeviceModel, device_name, device_names, known_device, plain_name
from tb_tidy_plugin.profile.device_table import FAMILIES
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.columns import DeviceProperties
from tests.profile.driver_names import DRIVER_NAMES, STATED, UNLISTED
from tests.support.recordings import shared

GIB = 2**30


def rates(model: DeviceModel | None) -> tuple[float, float, float]:
    """TFLOP/s in float32 on ordinary cores and in float16, and GB/s; 0 for unknown ones."""
    if model is None:
        return 0.0, 0.0, 0.0
    half = model.peaks.get("c10::Half")
    return (
        (model.peaks["float"].cores or 0) / 1e12,
        0.0 if half is None else (half.of(True) or 0) / 1e12,
        model.bytes_per_second / 1e9,
    )


@pytest.mark.parametrize("name", DRIVER_NAMES)
def test_a_name_of_a_driver_is_known(name: str) -> None:
    assert known_device(name) is not None


@pytest.mark.parametrize("name", UNLISTED)
def test_a_device_without_published_rates_is_not_guessed(name: str) -> None:
    assert known_device(name) is None


@pytest.mark.parametrize(("name", "float32", "float16", "bandwidth"), STATED)
def test_rates_are_those_of_the_makers(name: str, float32: float, float16: float | None, bandwidth: float) -> None:
    single, half, moved = rates(known_device(name))
    assert single == pytest.approx(float32, rel=0.015)
    assert moved == pytest.approx(bandwidth, rel=0.015)
    if float16 is not None:
        assert half == pytest.approx(float16, rel=0.015)


def test_each_row_is_reached_by_a_name_of_a_driver() -> None:
    reached = {plain_name(name) for name in DRIVER_NAMES}
    assert [name for name in device_names() if plain_name(name) not in reached] == []


def test_no_two_models_of_different_names_share_one() -> None:
    rows = [model for family in FAMILIES for model in family.models()]
    spelled: dict[str, set[str]] = {}
    for model in rows:
        spelled.setdefault(plain_name(model.name), set()).add(model.name)
    assert [names for names in spelled.values() if len(names) > 1] == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("NVIDIA GeForce RTX 4080", "NVIDIA GeForce RTX 4080 SUPER"), ("NVIDIA A10", "NVIDIA A10G"),
        ("NVIDIA A10", "NVIDIA A100-SXM4-40GB"), ("NVIDIA L4", "NVIDIA L40"), ("NVIDIA L40", "NVIDIA L40S"),
        ("NVIDIA A2", "NVIDIA RTX A2000"), ("NVIDIA A40", "NVIDIA RTX A4000"), ("NVIDIA T400", "Quadro RTX 4000"),
        ("NVIDIA RTX A4000", "NVIDIA RTX 4000 Ada Generation"), ("Quadro RTX 6000", "NVIDIA RTX 6000 Ada Generation"),
        ("NVIDIA RTX A6000", "NVIDIA RTX 6000 Ada Generation"), ("NVIDIA H100 PCIe", "NVIDIA H100 80GB HBM3"),
        ("NVIDIA H100 NVL", "NVIDIA H100 80GB HBM3"), ("NVIDIA H20", "NVIDIA H200"), ("NVIDIA H200", "NVIDIA H200 NVL"),
        ("NVIDIA B200", "NVIDIA GB200"), ("Tesla P4", "Tesla P40"), ("Tesla P40", "Quadro P4000"),
        ("Tesla V100-SXM2-16GB", "Tesla V100-PCIE-16GB"), ("Tesla V100-PCIE-32GB", "Tesla V100S-PCIE-32GB"),
        ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090 D"),
        ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090 Laptop GPU"),
        ("NVIDIA GeForce RTX 5090", "NVIDIA GeForce RTX 5090 D v2"),
        ("NVIDIA GeForce RTX 2080", "NVIDIA GeForce RTX 2080 with Max-Q Design"),
        ("NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3080 Ti"), ("NVIDIA T1000", "Quadro T1000"),
        ("AMD Radeon RX 7900 XT", "AMD Radeon RX 7900 XTX"), ("AMD Instinct MI300X", "AMD Instinct MI300A"),
        ("AMD Instinct MI250", "AMD Instinct MI250X"), ("AMD Instinct MI300X", "AMD Instinct MI308X"),
        ("Intel(R) Arc(TM) A770 Graphics", "Intel(R) Arc(TM) A770M Graphics"), ("Apple M1", "Apple M1 Max"),
    ],
)  # fmt: skip
def test_near_names_are_different_models(one: str, other: str) -> None:
    assert rates(known_device(one)) != rates(known_device(other))


@pytest.mark.parametrize(
    "name",
    [
        "", "NVIDIA", "NVIDIA GeForce", "AMD Radeon Graphics", "NVIDIA GeForce RTX 4080 SUPER DUPER", "A1000",
        "NVIDIA GeForce RTX 6090", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "My NVIDIA A100-SXM4-40GB", "RTX", "x" * 5000,
        "NVIDIA A100", "NVIDIA L4S", "NVIDIA GeForce RTX 30900",
    ],
)  # fmt: skip
def test_a_name_that_resembles_one_is_unknown(name: str) -> None:
    assert known_device(name) is None


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("GeForce RTX 2080 Ti", "NVIDIA GeForce RTX 2080 Ti"), ("A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"),
        ("rtx 4090", "NVIDIA GeForce RTX 4090"), ("NVIDIA RTX A6000 ", "NVIDIA RTX A6000"),
        ("NVIDIA A10-24Q", "NVIDIA A10"), ("GRID V100D-32Q", ""), ("Radeon RX 7900 XTX", "AMD Radeon RX 7900 XTX"),
        ("Intel Arc A770 Graphics", "Intel(R) Arc(TM) A770 Graphics"), ("MI300X", "AMD Instinct MI300X"),
    ],
)  # fmt: skip
def test_brands_and_profiles_of_virtual_gpus_do_not_matter(spelling: str, name: str) -> None:
    assert known_device(spelling) == known_device(name)


@pytest.mark.parametrize(
    ("name", "gibibytes", "units", "expected"),
    [
        ("NVIDIA GeForce RTX 3060", 11.6, 28, 360), ("NVIDIA GeForce RTX 3060", 7.8, 28, 240),
        ("NVIDIA GeForce RTX 3080", 9.8, 68, 760.3), ("NVIDIA GeForce RTX 3080", 11.7, 70, 912.4),
        ("NVIDIA GeForce RTX 3050", 7.8, 20, 224), ("NVIDIA GeForce RTX 3050", 5.7, 18, 168),
        ("NVIDIA H100", 63.4, 132, 2020), ("NVIDIA H100", 93.1, 132, 3360),
        ("Orin", 61.3, 16, 204.8), ("Orin", 7.4, 8, 102.4), ("NVIDIA Thor", 122.8, 20, 273.1),
    ],
)  # fmt: skip
def test_models_of_one_name_differ_in_memory_and_units(
    name: str, gibibytes: float, units: int, expected: float
) -> None:
    listed = DeviceProperties(name=name, totalGlobalMem=round(gibibytes * GIB), numSms=units)
    assert rates(known_device(name, listed))[2] == pytest.approx(expected)


def test_without_its_memory_the_fastest_of_a_name_counts() -> None:
    assert rates(known_device("NVIDIA GeForce RTX 3060"))[2] == 360


def test_geforce_cards_multiply_16_bits_at_half_the_rate_of_their_siblings() -> None:
    """RTX 3090 Ti and A40 have the same 84 units: https://www.nvidia.com/en-us/data-center/a40/ states 149.7."""
    consumer, professional = (known_device(name) for name in ("NVIDIA GeForce RTX 3090 Ti", "NVIDIA A40"))
    per_clock = rates(consumer)[1] / 1.860, rates(professional)[1] / 1.740
    assert per_clock[1] == pytest.approx(2 * per_clock[0])


def test_every_device_of_the_shared_recordings_has_a_model() -> None:
    found = [device for path in sorted(shared("traces").rglob("*.json*")) for device in listed_devices(path)]
    assert len(found) > 30
    names = {device_name(device) for device in found}
    assert {"Tesla V100-DGXS-32GB", "NVIDIA A100-PG509-200", "NVIDIA GeForce RTX 4060", "Tesla T4"} <= names
    assert [device for device in found if known_device(device_name(device), device) is None] == []


def listed_devices(path: Path) -> list[DeviceProperties]:
    """The devices that a recording lists: their list stands at its start or at its end."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found = re.search(rb'"deviceProperties":\s*(\[.*?\])', text, re.DOTALL)
    return decode(found[1], list[DeviceProperties]) if found else []
