"""Figures of a machine, as `tidy_profile` and `tb-tidy bench --machine` measure them; the page is `docs/machine.md`."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

_Text = Annotated[str, msgspec.Meta(max_length=256)]
_Rate = Annotated[float, msgspec.Meta(gt=0, le=1e18)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]
_Bytes = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
_Nanoseconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
_Few = msgspec.Meta(max_length=64)

MeasuredDtype: TypeAlias = Literal["float64", "float32", "bfloat16", "float16"]


class ProductRate(msgspec.Struct, frozen=True):
    """The best rate of matrix products in one dtype with a number of threads; a device has one."""

    dtype: MeasuredDtype
    threads: _Count
    flops_per_second: _Rate


class CopyRate(msgspec.Struct, frozen=True):
    """The best rate of bytes read and written together, over a working set of `bytes`, with a number of threads."""

    bytes: _Bytes
    threads: _Count
    bytes_per_second: _Rate


class MeasuredHost(msgspec.Struct, frozen=True):
    """The processor and its memory.

    Attributes:
        threads: of one operator, as the job had set them.
        operator_ns: of the cheapest operator, without work. page_fault_ns: of one page of 4 kB; null if unknown.
    """

    threads: _Count
    products: Annotated[tuple[ProductRate, ...], _Few] = ()
    copies: Annotated[tuple[CopyRate, ...], _Few] = ()
    operator_ns: _Nanoseconds | None = None
    page_fault_ns: _Nanoseconds | None = None


class MeasuredDevice(msgspec.Struct, frozen=True):
    """A GPU; `launch_ns` is the time of the host for one operator that launches a kernel without work."""

    name: _Text
    products: Annotated[tuple[ProductRate, ...], _Few] = ()
    copies: Annotated[tuple[CopyRate, ...], _Few] = ()
    launch_ns: _Nanoseconds | None = None


class MeasuredMachine(msgspec.Struct, frozen=True):
    """All figures of one machine with one build of torch."""

    torch: _Text
    host: MeasuredHost
    devices: Annotated[tuple[MeasuredDevice, ...], _Few] = ()
