"""Settings of the job that matter for its speed: an allow-list without personal data.

Only numbers, switches, and names of classes, devices and versions. Reading them changes nothing: it initialises no
device, sets no hook, and runs no code of the job's own.
"""

from __future__ import annotations

import gc
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from tb_tidy_plugin.capture.guarded import unless_it_fails

if TYPE_CHECKING:
    import torch

_Value = TypeVar("_Value", bool, str)

Simple: TypeAlias = bool | int | str | None
_Table: TypeAlias = dict[str, Simple | list[str]]
_Answer: TypeAlias = _Table | list[_Table] | None

_MOST = 32
"""Most optimizers, loaders and devices: a longer list does not help anybody."""

OPTIMIZER_SWITCHES = ("foreach", "fused", "capturable", "differentiable")
LOADER_SETTINGS = ("batch_size", "num_workers", "pin_memory", "persistent_workers", "prefetch_factor")


def settings() -> Mapping[str, _Answer]:
    """Settings by topic; a topic that cannot be read is missing."""
    topics: dict[str, Callable[[], _Answer]] = {
        "versions": _versions,
        "devices": lambda: list(_devices()),
        "threads": _threads,
        "processor": _processor,
        "numerics": _numerics,
        "process": _process,
    }
    found = {topic: unless_it_fails(f"the setting `{topic}`", ask) for topic, ask in topics.items()}
    found |= unless_it_fails("optimizers and loaders", _objects) or {}
    return {topic: answer for topic, answer in found.items() if answer is not None}


def _versions() -> _Table:
    import torch

    has_cuda: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call] # torch is partly typed
    driver = getattr(torch._C, "_cuda_getDriverVersion", None)  # noqa: SLF001 - the only way without another library
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "rocm": torch.version.hip,
        "cudnn": torch.backends.cudnn.version() if has_cuda else None,  # type: ignore[no-untyped-call]
        "cuda_driver": driver() if driver is not None and has_cuda else None,
    }


def _devices() -> Iterator[_Table]:
    import torch

    for kind in ("cuda", "xpu"):
        back_end = getattr(torch, kind, None)
        if back_end is not None and back_end.is_initialized():  # initialising one would cost memory and seconds
            for index in range(min(back_end.device_count(), _MOST)):
                yield {"kind": kind, "index": index, "name": back_end.get_device_name(index)}


def _threads() -> _Table:
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"intra_op": torch.get_num_threads(), "inter_op": torch.get_num_interop_threads(), "available_cores": cores}


def _processor() -> _Table:
    """The processor's units; unknown for bfloat16 before torch 2.4."""
    import torch

    asked = [getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")]
    answers = [bool(ask()) for ask in asked if ask is not None]
    return {
        "capability": torch.backends.cpu.get_cpu_capability(),
        "bfloat16": any(answers) if answers else None,
    }


def _numerics() -> _Table:
    import torch

    return {
        "float32_matmul_precision": _unless_mixed(torch.get_float32_matmul_precision),
        "tf32_matmul": _tf32(torch.backends.cuda.matmul),
        "tf32_cudnn": _unless_mixed(lambda: bool(torch.backends.cudnn.allow_tf32)),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "anomaly_mode": torch.is_anomaly_enabled(),
    }


def _tf32(switches: object) -> bool | None:
    """The new switch if it is set, else the old one, which must not be read once the new one is set."""
    precision = getattr(switches, "fp32_precision", "none")
    if precision != "none":
        return bool(precision == "tf32")
    return _unless_mixed(lambda: bool(getattr(switches, "allow_tf32", None)))


def _unless_mixed(ask: Callable[[], _Value]) -> _Value | None:
    with suppress(RuntimeError):  # the job uses the other of torch's two ways to set this
        return ask()
    return None


def _process() -> _Table | None:
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized():
        return None
    return {"rank": dist.get_rank(), "world_size": dist.get_world_size(), "backend": str(dist.get_backend())}


# Objects of the job


def _objects() -> dict[str, _Answer]:
    """Living optimizers and loaders, found by one pass over all objects: 0.2 s for a million of them."""
    from torch.optim import Optimizer
    from torch.utils.data import DataLoader

    optimizers, loaders = {Optimizer, *kinds_below(Optimizer)}, {DataLoader, *kinds_below(DataLoader)}
    wanted = optimizers | loaders
    # By exact type: `isinstance` may run code of proxies and lazy objects.
    found = [each for each in gc.get_objects() if type(each) in wanted]
    return {
        "optimizers": [_optimizer(each) for each in found if type(each) in optimizers][:_MOST],
        "loaders": [_loader(each) for each in found if type(each) in loaders][:_MOST],
    }


def kinds_below(kind: type) -> Iterator[type]:
    """All classes that inherit from `kind`."""
    children: list[type] = type.__subclasses__(kind)
    for child in children:
        yield child
        yield from kinds_below(child)


def _optimizer(optimizer: torch.optim.Optimizer) -> _Table:
    groups = optimizer.param_groups
    parameters = [parameter for group in groups for parameter in group["params"]]
    return {
        "kind": type(optimizer).__name__,
        **{switch: _common(group.get(switch) for group in groups) for switch in OPTIMIZER_SWITCHES},
        "parameters": len(parameters),
        "parameter_bytes": sum(parameter.numel() * parameter.element_size() for parameter in parameters),
        "devices": sorted({str(parameter.device) for parameter in parameters})[:_MOST],
    }


def _common(values: Iterable[object]) -> bool | None:
    """The common setting of all groups; None if they differ, or if nothing is set."""
    found = set(values)
    value = found.pop() if len(found) == 1 else None
    return value if isinstance(value, bool) else None


def _loader(loader: torch.utils.data.DataLoader[object]) -> _Table:
    held = vars(loader)
    return {
        "dataset": type(held.get("dataset")).__name__,
        **{name: _switch_or_number(held.get(name)) for name in LOADER_SETTINGS},
    }


def _switch_or_number(value: object) -> int | None:
    return value if type(value) is int or type(value) is bool else None
