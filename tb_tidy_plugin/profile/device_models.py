"""Peak rates of known devices: operations per second by dtype, and bytes per second to their own memory.

They are the manufacturers' own, without sparsity, at boost clocks. Unstated figures are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from tb_tidy_plugin.words.vocabulary import MachineSource

if TYPE_CHECKING:
    from tb_tidy_plugin.trace.columns import DeviceProperties

TERA, GIGA = 1e12, 1e9
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
    """

    bytes_per_second: float
    peaks: Mapping[str, Peak]
    source: MachineSource = "datasheet"


def _device(
    gigabytes: float,
    *,
    double: tuple[float, float | None] | None,
    single: tuple[float, float | None],
    half: float,
    bfloat16: float | None,
    fp8: float | None = None,
) -> DeviceModel:
    """A device from GB/s and TFLOP/s; pairs are ordinary cores and matrix units (for `single` TF32 on NVIDIA)."""
    peaks = {"float": Peak(single[0] * TERA, None if single[1] is None else single[1] * TERA)}
    if double is not None:
        peaks["double"] = Peak(double[0] * TERA, None if double[1] is None else double[1] * TERA)
    for names, peak in ((("c10::Half",), half), (("c10::BFloat16",), bfloat16), (FP8, fp8)):
        if peak is not None:
            peaks |= {name: Peak(None, peak * TERA) for name in names}
    return DeviceModel(gigabytes * GIGA, peaks)


def _geforce(teraflops: float, gigabytes: float) -> DeviceModel:
    """A GeForce since Ampere: its matrix units do TF32 as fast as its cores do float32, and 16 bits twice as fast.

    With float32 sums, as PyTorch adds. Its data sheets name rates with sparsity, which are twice as high.
    """
    return _device(gigabytes, double=None, single=(teraflops, teraflops), half=2 * teraflops, bfloat16=2 * teraflops)


def _a100(gigabytes: float) -> DeviceModel:
    # https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf
    return _device(gigabytes, double=(9.7, 19.5), single=(19.5, 156), half=312, bfloat16=312)


def _hopper_sxm(gigabytes: float) -> DeviceModel:
    # https://www.nvidia.com/en-us/data-center/h100/ and https://www.nvidia.com/en-us/data-center/h200/
    return _device(gigabytes, double=(34, 67), single=(67, 494.7), half=989.4, bfloat16=989.4, fp8=1978.9)


def _hopper_nvl(gigabytes: float) -> DeviceModel:
    return _device(gigabytes, double=(30, 60), single=(60, 417.5), half=835.5, bfloat16=835.5, fp8=1671)


def _mi300x(gigabytes: float) -> DeviceModel:
    # https://www.amd.com/en/products/accelerators/instinct/mi300/mi300x.html and …/mi325x.html; TF32 is opt-in there,
    # so
    # single precision counts as such.
    return _device(gigabytes, double=(81.7, 163.4), single=(163.4, 163.4), half=1307.4, bfloat16=1307.4, fp8=2614.9)


DEVICES: tuple[tuple[str, DeviceModel], ...] = (
    # https://images.nvidia.com/content/technologies/volta/pdf/volta-v100-datasheet-update-us-1165301-r5.pdf
    (r"V100-SXM2", _device(900, double=(7.8, None), single=(15.7, None), half=125, bfloat16=None)),
    (r"V100-PCIE", _device(900, double=(7, None), single=(14, None), half=112, bfloat16=None)),
    (r"V100S-PCIE", _device(1134, double=(8.2, None), single=(16.4, None), half=130, bfloat16=None)),
    # https://www.nvidia.com/en-us/data-center/tesla-t4/
    (r"Tesla T4$", _device(320, double=None, single=(8.1, None), half=65, bfloat16=None)),
    (r"A100-SXM4-40GB|A100-PCIE-40GB", _a100(1555)),
    (r"A100-SXM4-80GB", _a100(2039)),
    (r"A100 80GB PCIe", _a100(1935)),
    # https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf and
    # https://www.nvidia.com/en-us/geforce/graphics-cards/30-series/rtx-3060-3060ti/
    (r"RTX 3060$", _geforce(12.7, 360)),
    (r"RTX 3090$", _geforce(35.6, 936)),
    (r"RTX A6000$", _device(768, double=None, single=(38.7, 77.4), half=154.8, bfloat16=154.8)),
    # https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf
    (r"RTX 4090$", _geforce(82.6, 1008)),
    # https://www.nvidia.com/en-us/data-center/l40s/ (figures with sparsity halved)
    (r"L40S$", _device(864, double=None, single=(91.6, 183), half=362, bfloat16=362, fp8=733)),
    (r"H100 80GB HBM3", _hopper_sxm(3350)),
    (r"H100 PCIe", _device(2000, double=(26, 51), single=(51, 378), half=756, bfloat16=756, fp8=1513)),
    (r"H100 NVL", _hopper_nvl(3900)),
    (r"H200$", _hopper_sxm(4800)),
    (r"H200 NVL", _hopper_nvl(4800)),
    # https://www.nvidia.com/en-us/data-center/hgx/ and …/dgx-b200/, eighths of the system
    (r"NVIDIA B200$", _device(8000, double=(37, 37), single=(75, 1125), half=2250, bfloat16=2250, fp8=4500)),
    # https://www.amd.com/en/products/accelerators/instinct/mi200/mi210.html
    (r"MI210", _device(1638.4, double=(22.6, 45.3), single=(22.6, 45.3), half=181, bfloat16=181)),
    # https://www.amd.com/en/products/accelerators/instinct/mi200/mi250x.html and …/mi250.html: one device of a trace is
    # one of the two dies of a card
    (r"MI250X", _device(1638.4, double=(23.95, 47.85), single=(23.95, 47.85), half=191.5, bfloat16=191.5)),
    (r"MI250", _device(1638.4, double=(22.65, 45.25), single=(22.65, 45.25), half=181, bfloat16=181)),
    (r"MI300X", _mi300x(5300)),
    (r"MI325X", _mi300x(6000)),
)
"""Patterns of names as drivers report them; the first match counts."""


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

    tf32 = None if each.tf32 is None else tera(each.tf32)
    half = tera(each.half)
    return _device(each.gigabytes, double=None, single=(tera(each.single), tf32), half=half, bfloat16=half)


_UNNAMED: Mapping[tuple[int, int, int, int], str] = {
    (9, 4, 304, 192): "AMD Instinct MI300X",
    (9, 4, 304, 256): "AMD Instinct MI325X",
}
"""Devices that ROCm lists without a name if its table of names is missing, by architecture, units and GiB."""


def device_name(device: DeviceProperties) -> str:
    """The device's name; if the trace has none, that of the only model with its properties, else empty."""
    gibibytes = round(device.totalGlobalMem / 2**30)
    return device.name or _UNNAMED.get(
        (device.computeMajor or 0, device.computeMinor or 0, device.numSms, gibibytes), ""
    )


def known_device(name: str) -> DeviceModel | None:
    """Peak rates of the device called `name`, None if unknown."""
    return next((device for pattern, device in DEVICES if re.search(pattern, name)), None)
