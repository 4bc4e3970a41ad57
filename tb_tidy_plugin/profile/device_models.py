"""Peak rates of devices: operations per second by dtype, and bytes per second to their own memory.

They are the makers' own, without sparsity, at boost clocks (`device_table`). Unstated figures are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING

import msgspec

from tb_tidy_plugin.profile.device_table import CACHE_RATE, CACHES, FAMILIES, Architecture, DeviceRates
from tb_tidy_plugin.words.vocabulary import MachineSource

if TYPE_CHECKING:
    from tb_tidy_plugin.trace.columns import DeviceProperties

TERA, GIGA = 1e12, 1e9
FIRST_WITH_PAIRS = 10  # AMD's major number: RDNA
FIRST_WITH_TENSOR_CORES = 7  # NVIDIA's major compute capability: Volta
FP8 = ("c10::Float8_e4m3fn", "c10::Float8_e5m2", "c10::Float8_e4m3fnuz", "c10::Float8_e5m2fnuz")


class Peak(msgspec.Struct, frozen=True):
    """Operations per second in one dtype, on ordinary cores and on matrix units; None without such units."""

    cores: float | None
    matrix: float | None

    def of(self, tensor_cores: bool | None) -> float | None:
        """Peak of kernels that run on matrix units, or do not; None if that is unknown and matters.

        For dtypes without `cores` the device's limit is that of its matrix units, whether a kernel uses them or not.
        """
        if self.cores is None or self.matrix is None or self.cores == self.matrix:
            return self.matrix or self.cores
        return None if tensor_cores is None else self.matrix if tensor_cores else self.cores


class DeviceModel(msgspec.Struct, frozen=True):
    """One model.

    Attributes:
        bytes_per_second: to the device's own memory.
        peaks: by the trace's C++ name of a dtype.
        source: how these figures are known.
        cache_bytes: most that its last cache may hold, 0 if unknown. cache_bytes_per_second: most that it gives.
    """

    bytes_per_second: float
    peaks: Mapping[str, Peak]
    source: MachineSource = "datasheet"
    cache_bytes: int = 0
    cache_bytes_per_second: float = 0.0


def _peaks(rates: DeviceRates) -> dict[str, Peak]:
    """Peaks by dtype. `Peak.cores` is None where the figure holds for matrix units and ordinary cores alike."""
    peaks = {"float": _peak(rates.float32, rates.float32_matrix)}
    if rates.float64 is not None:
        peaks["double"] = _peak(rates.float64, rates.float64_matrix)
    for names, rate in ((("c10::Half",), rates.float16), (("c10::BFloat16",), rates.bfloat16), (FP8, rates.float8)):
        if rate is not None:
            peaks |= dict.fromkeys(names, Peak(None, rate * TERA) if rates.matrix else Peak(rate * TERA, None))
    return peaks


def _peak(cores: float, matrix: float | None) -> Peak:
    return Peak(cores * TERA, None if matrix is None else matrix * TERA)


def _model(rates: DeviceRates, architecture: Architecture | None, source: MachineSource = "datasheet") -> DeviceModel:
    cache = CACHES.get(architecture, 0) << 20 if architecture else 0
    return DeviceModel(rates.gigabytes_per_second * GIGA, _peaks(rates), source, cache, rates.units * CACHE_RATE)


_BRANDS = frozenset({
    "nvidia", "tesla", "geforce", "amd", "radeon", "instinct", "intel", "apple", "gpu", "generation", "graphics",
})  # fmt: skip
_SIGNS = re.compile(r"\((?:r|tm)\)|[®™]")
_VIRTUAL = re.compile(r"(?<=\S)(?:-\d+[abcq]| vf| mxgpu)$")


def plain_name(name: str) -> str:
    """What distinguishes a model from others in the name that a driver reports.

    Without brands, which drivers write or leave out (`GeForce RTX 2080` before 2021), and without the profile of a
    virtual GPU (`A10-24Q`, `MI300X VF`), which shares the whole card.
    """
    words = _SIGNS.sub(" ", name[:MOST_NAME_CHARACTERS].casefold()).replace("(", " ").replace(")", " ").split()
    return _VIRTUAL.sub("", " ".join(word for word in words if word not in _BRANDS))


MOST_NAME_CHARACTERS = 200


@cache
def _models() -> Mapping[str, tuple[tuple[Architecture, DeviceRates], ...]]:
    """The rows of the table by plain name."""
    found: dict[str, tuple[tuple[Architecture, DeviceRates], ...]] = {}
    for family in FAMILIES:
        for model in family.models():
            key = plain_name(model.name)
            found[key] = (*found.get(key, ()), (family.architecture, model))
    return found


def device_names() -> list[str]:
    """All names in the table, once each."""
    return list(dict.fromkeys(model.name for models in _models().values() for _, model in models))


def known_device(name: str, listed: DeviceProperties | None = None) -> DeviceModel | None:
    """Peak rates of the device called `name`, None if the table has none.

    Args:
        name: as its driver reports it.
        listed: what the trace lists of it. It tells apart models that report the same name, such as the GeForce RTX
            3060 of 8 and 12 GB; without it the fastest of them counts.
    """
    found = _row(name, listed)
    return None if found is None else _model(found[1], found[0])


def device_called(name: str, number: int) -> DeviceProperties:
    """What a trace would list of the fastest device called `name`, as device `number`; its name alone if unknown."""
    from tb_tidy_plugin.trace.columns import DeviceProperties  # with numpy, which names need not

    found = _row(name, None)
    if found is None:
        return DeviceProperties(number, name)
    (platform, major, minor), model = found
    memory = round(model.gigabytes * 2**30)
    units = model.units // _units_per_listed(platform, major)
    if not major:
        return DeviceProperties(number, name, memory, numSms=units)
    return DeviceProperties(number, name, memory, major, minor, units)


def _units_per_listed(platform: str, major: int) -> int:
    """ROCm lists pairs of compute units since RDNA."""
    return 2 if platform == "rocm" and major >= FIRST_WITH_PAIRS else 1


def _row(name: str, listed: DeviceProperties | None) -> tuple[Architecture, DeviceRates] | None:
    models = _models().get(plain_name(name), ())
    if not models:
        return None
    if listed is None or not (listed.numSms or listed.totalGlobalMem):
        return max(models, key=_speed)
    return min(models, key=partial(_distance, listed))


def _speed(row: tuple[Architecture, DeviceRates]) -> tuple[float, float]:
    return row[1].gigabytes_per_second, row[1].float32


def _distance(listed: DeviceProperties, row: tuple[Architecture, DeviceRates]) -> tuple[float, float]:
    """How far the listed memory and units are from a model's; drivers list a little less memory than there is."""
    _, model = row
    memory = _apart(listed, model)
    units = abs(listed.numSms / model.units - 1) if listed.numSms else 0.0
    return memory + units, -model.gigabytes_per_second


def _apart(listed: DeviceProperties, model: DeviceRates) -> float:
    return abs(listed.totalGlobalMem / GIGA / model.gigabytes - 1) if listed.totalGlobalMem else 0.0


MOST_UNITS = 1 << 12
SAME_MEMORY = 0.25


def estimated_device(device: DeviceProperties, platform: str) -> DeviceModel | None:
    """Rates of a device that is not in the table, from its architecture, its units and its memory.

    Each rate is the listed number of units times the most that one unit of any model of this architecture does, at the
    clock of that model; a GeForce card is compared with GeForce cards only. The bandwidth is the highest of models with
    as much memory. None for an unknown architecture or number of units.

    Args:
        device: what the trace lists.
        platform: `cuda` or `rocm`.
    """
    if device.computeMajor is None or not 0 < device.numSms <= MOST_UNITS:
        return None
    wanted = (platform, device.computeMajor)
    relatives = [family for family in FAMILIES if family.architecture[:2] == wanted]
    same = [family for family in relatives if family.architecture[2] == device.computeMinor] or relatives
    models = [model for family in same for model in family.models()]
    if "GeForce" in device.name:
        models = [model for model in models if "GeForce" in model.name] or models
    if not models:
        return None
    units = device.numSms * _units_per_listed(platform, device.computeMajor)
    rates = {name: most * units for name in _RATES if (most := max(_per_unit(model, name) for model in models))}
    sized = [model for model in models if device.totalGlobalMem and _apart(device, model) < SAME_MEMORY] or models
    bandwidth = max(model.gigabytes_per_second for model in sized)
    matrix = any(model.matrix for model in models)
    return _model(
        DeviceRates(device.name, units, 0, bandwidth, matrix=matrix, **rates), same[0].architecture, "estimated"
    )


_RATES = ("float64", "float64_matrix", "float32", "float32_matrix", "float16", "bfloat16", "float8")


def _per_unit(model: DeviceRates, rate: str) -> float:
    stated: float | None = getattr(model, rate)
    return (stated or 0.0) / model.units


class _Slowest(msgspec.Struct, frozen=True):
    """What the slowest cards of one compute capability do.

    Attributes:
        single, tf32, half: operations per cycle of one multiprocessor in float32, in TF32 and in 16 bits.
        gigahertz: the clock. gigabytes: per second to its memory. multiprocessors: of a card, if that is unknown.
    """

    single: int
    tf32: int | None
    half: int
    gigahertz: float
    gigabytes: float
    multiprocessors: int


_SLOWEST: Mapping[tuple[int, int], _Slowest] = {
    (7, 0): _Slowest(128, None, 1024, 1.2, 650, 80),  # Titan V
    (7, 5): _Slowest(128, None, 512, 1.3, 320, 30),  # GeForce 20, T4 at its limit of power
    (8, 0): _Slowest(128, 1024, 2048, 1.4, 930, 56),  # A30
    (8, 6): _Slowest(256, 256, 512, 1.2, 160, 16),  # GeForce 30 for laptops
    (8, 9): _Slowest(256, 256, 512, 1.4, 190, 20),  # GeForce 40 for laptops
    (9, 0): _Slowest(256, 480, 960, 1.6, 2000, 78),  # H20; memory of an H100 PCIe
    (10, 0): _Slowest(256, 4096, 8192, 1.8, 7700, 148),  # B200
    (12, 0): _Slowest(256, 256, 512, 1.5, 250, 20),  # GeForce 50 for laptops
}
_LEAST = _Slowest(256, 256, 512, 1.0, 100, 8)
"""Of any other card since Ampere."""


def slowest_device(device: DeviceProperties) -> DeviceModel | None:
    """Rates that any NVIDIA card of this compute capability and size reaches, for cards that are not known by name.

    GeForce and data centre cards share a capability and differ in TF32 by a factor of two: a promise must hold on both.
    None before tensor cores, and if the capability is unknown.
    """
    if device.computeMajor is None or device.computeMajor < FIRST_WITH_TENSOR_CORES:
        return None
    each = _SLOWEST.get((device.computeMajor, device.computeMinor or 0), _LEAST)
    cycles = (device.numSms or each.multiprocessors) * each.gigahertz / 1e3

    def tera(operations: int) -> float:
        return operations * cycles

    tf32, half = None if each.tf32 is None else tera(each.tf32), tera(each.half)
    rates = DeviceRates("", 0, 0, each.gigabytes, tera(each.single), half, half, float32_matrix=tf32)
    return _model(rates, None, "estimated")


_UNNAMED: Mapping[tuple[int, int, int, int], str] = {
    (9, 0, 120, 32): "AMD Instinct MI100",
    (9, 0, 104, 64): "AMD Instinct MI210 / MI250",
    (9, 0, 110, 64): "AMD Instinct MI250X",
    (9, 4, 80, 192): "AMD Instinct MI308X",
    (9, 4, 228, 128): "AMD Instinct MI300A",
    (9, 4, 304, 192): "AMD Instinct MI300X",
    (9, 4, 304, 256): "AMD Instinct MI325X",
}
"""Devices that ROCm lists without a name, or as `AMD Radeon Graphics`, if its table of names is missing: by
architecture, units and GiB.
"""


def is_named(device: DeviceProperties) -> bool:
    """True if the device's name says more than its maker."""
    return bool(plain_name(device.name))


def device_name(device: DeviceProperties) -> str:
    """The device's name; if the trace names no model, that of the only one with its properties."""
    gibibytes = round(device.totalGlobalMem / 2**30)
    listed = (device.computeMajor or 0, device.computeMinor or 0, device.numSms, gibibytes)
    return device.name if is_named(device) else _UNNAMED.get(listed, device.name)
