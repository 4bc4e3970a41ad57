"""Device of a measurement, and its name."""

from __future__ import annotations

import platform
import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tb_tidy_plugin.benchmarks.measurement import MeasuredOn
from tb_tidy_plugin.words.errors import TidyError

if TYPE_CHECKING:
    import torch

ASKED = re.compile(r"(cuda|rocm|mps|xpu|cpu)(?::(\d{1,3}))?")
KINDS_HELP: Final = "cuda, cuda:1, rocm, mps, xpu or cpu"
_SHOWN = {"cuda": "CUDA", "mps": "MPS", "xpu": "XPU", "cpu": "CPU"}
CPU_INFO = Path("/proc/cpuinfo")


class NoDeviceError(TidyError):
    """The requested device, or one that a pair needs, does not exist."""


def device_for(asked: str, preferred: str, allowed: Collection[str]) -> torch.device:
    """The device to measure on: the requested one, else one of the recording's kind, else the first accelerator.

    Args:
        asked: `cuda`, `cuda:1`, `rocm`, `mps`, `xpu` or `cpu`; empty for the default.
        preferred: the kind of device of the recording.
        allowed: the kinds on which the pair is meaningful.

    Raises:
        NoDeviceError: there is none.
    """
    import torch

    there = available()
    if asked:
        kind, index = _parsed(asked)
        if kind not in there or (index or 0) >= there[kind]:
            names = ", ".join(there)
            raise NoDeviceError(f"This PyTorch cannot use `{asked}`.", f"It can use: {names}.")
        if kind not in allowed:
            raise _needs(allowed)
        return torch.device(kind) if index is None else torch.device(kind, index)
    wanted = "cuda" if preferred == kind_of("cuda") else preferred
    usable = [kind for kind in there if kind in allowed]
    if not usable:
        raise _needs(allowed)
    return torch.device(wanted if wanted in usable else usable[0])


def available() -> dict[str, int]:
    """The types of device that this PyTorch can use, accelerators first, with the number of each."""
    import torch

    found = {}
    if torch.cuda.is_available():
        found["cuda"] = torch.cuda.device_count()
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        found["xpu"] = torch.xpu.device_count()
    if torch.backends.mps.is_available():
        found["mps"] = 1
    return {**found, "cpu": 1}


def addresses() -> tuple[str, ...]:
    """All devices that this PyTorch can use, as `asked` of `device_for` names them."""
    return tuple(
        kind_of(device_type) if count == 1 else f"{kind_of(device_type)}:{index}"
        for device_type, count in available().items()
        for index in range(count)
    )


def of_kinds(devices: Collection[str], allowed: Collection[str]) -> list[str]:
    """The `addresses` on which a pair is meaningful; `allowed` are its kinds."""
    kinds = {address: address.partition(":")[0] for address in devices}
    return [address for address, kind in kinds.items() if ("cuda" if kind == "rocm" else kind) in allowed]


def kind_of(device_type: str) -> str:
    """The kind of device that a recording would name: ROCm's devices call themselves `cuda`."""
    import torch

    return "rocm" if device_type == "cuda" and torch.version.hip else device_type


def described_device(device: torch.device) -> MeasuredOn:
    """The device with the versions that a measurement depends on."""
    import torch

    names = {"cuda": torch.version.cuda and f"CUDA {torch.version.cuda}", "rocm": f"ROCm {torch.version.hip}"}
    kind = kind_of(device.type)
    return MeasuredOn(
        kind=kind,
        address=str(device),
        name=_name(device)[:512],
        torch=str(torch.__version__),
        runtime=names.get(kind) or "",
        threads=torch.get_num_threads(),
    )


def _name(device: torch.device) -> str:
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "xpu":
        return torch.xpu.get_device_name(device)
    return _processor()


def _processor() -> str:
    """The processor's name, which also identifies Apple's GPUs."""
    if CPU_INFO.exists():
        found = re.search(r"^model name\s*: (.+)$", CPU_INFO.read_text("utf-8", "replace"), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


def _parsed(asked: str) -> tuple[str, int | None]:
    found = ASKED.fullmatch(asked)
    if found is None or (found[1] == "rocm" and kind_of("cuda") != "rocm"):
        raise NoDeviceError(f"This PyTorch does not know the device `{asked}`.", f"Known: {KINDS_HELP}.")
    return "cuda" if found[1] == "rocm" else found[1], int(found[2]) if found[2] else None


def _needs(allowed: Collection[str]) -> NoDeviceError:
    names = [shown for kind, shown in _SHOWN.items() if kind in allowed]
    return NoDeviceError(
        f"This needs a {' or '.join(names)} device: on another device the result would be meaningless.",
        "To see the result here, run `tb-tidy bench --save` on such a machine.",
    )
