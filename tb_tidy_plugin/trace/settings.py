"""Settings of the job behind a recording, from the capture side file: its page is `docs/capture.md`."""

from __future__ import annotations

from typing import Annotated

import msgspec

_Text = Annotated[str, msgspec.Meta(max_length=256)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Many = msgspec.Meta(max_length=64)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all settings: null if unknown, or without a value."""


class Versions(Setting, frozen=True):
    """Versions as the libraries give them; `cuda_driver` is the newest CUDA that the driver supports (12040: 12.4)."""

    python: _Text | None = None
    torch: _Text | None = None
    cuda: _Text | None = None
    rocm: _Text | None = None
    cudnn: _Count | None = None
    cuda_driver: _Count | None = None


class NamedDevice(Setting, frozen=True):
    """A device that the job could use."""

    kind: _Text
    index: _Count
    name: _Text


class Threads(Setting, frozen=True):
    """Threads of torch, and cores that the process may use."""

    intra_op: _Count | None = None
    inter_op: _Count | None = None
    available_cores: _Count | None = None


class Processor(Setting, frozen=True):
    """The CPU's units: torch's name of its vector units, and whether it multiplies bfloat16 natively."""

    capability: _Text | None = None
    bfloat16: bool | None = None


class Numerics(Setting, frozen=True):
    """Switches between speed and exactness, as they were when the recording ended."""

    float32_matmul_precision: _Text | None = None
    tf32_matmul: bool | None = None
    tf32_cudnn: bool | None = None
    cudnn_benchmark: bool | None = None
    cudnn_deterministic: bool | None = None
    deterministic_algorithms: bool | None = None
    anomaly_mode: bool | None = None


class Process(Setting, frozen=True):
    """The place of this process in a distributed job."""

    rank: _Count | None = None
    world_size: _Count | None = None
    backend: _Text | None = None


class OptimizerSettings(Setting, frozen=True):
    """An optimizer: its class, switches (null: not set, or not the same in all groups) and parameters."""

    kind: _Text
    foreach: bool | None = None
    fused: bool | None = None
    capturable: bool | None = None
    differentiable: bool | None = None
    parameters: _Count = 0
    parameter_bytes: _Count = 0
    devices: Annotated[tuple[_Text, ...], Many] = ()


class LoaderSettings(Setting, frozen=True):
    """A `DataLoader` of the job. `dataset` is the class of its data set."""

    dataset: _Text
    batch_size: _Count | None = None
    num_workers: _Count | None = None
    pin_memory: bool | None = None
    persistent_workers: bool | None = None
    prefetch_factor: _Count | None = None


class Settings(Setting, frozen=True):
    """All known settings of the job."""

    versions: Versions = Versions()
    devices: Annotated[tuple[NamedDevice, ...], Many] = ()
    threads: Threads = Threads()
    processor: Processor = Processor()
    numerics: Numerics = Numerics()
    process: Process = Process()
    optimizers: Annotated[tuple[OptimizerSettings, ...], Many] = ()
    loaders: Annotated[tuple[LoaderSettings, ...], Many] = ()

    def optimizer(self, kind: str) -> OptimizerSettings | None:
        """The only optimizer of this class, None if there is none or more than one."""
        found = [each for each in self.optimizers if each.kind == kind]
        return found[0] if len(found) == 1 else None
