"""The speed limits of the machine of a recording: its processor, and its device.

Rates are upper limits: no work of the recording should be faster. Each machine says how its rates are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tb_tidy_plugin.profile.device_models import DeviceModel, Peak
from tb_tidy_plugin.profile.once import once
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.flops import device_name_of, device_of
from tb_tidy_plugin.trace.measured_machine import CopyRate, MeasuredDevice, MeasuredHost, ProductRate
from tb_tidy_plugin.words.vocabulary import MachineSource

_DTYPES: Mapping[str, str] = {
    "float64": "double", "float32": "float", "bfloat16": "c10::BFloat16", "float16": "c10::Half",
}  # fmt: skip
"""Dtypes of products that are measured, and their names in a trace."""


class _Scaling(msgspec.Struct, frozen=True):
    """A rate with one thread, and with `threads`, the most that were measured."""

    one: float | None
    threads: int
    all: float

    def with_threads(self, threads: int | None) -> float:
        """The most that so many threads reach: they neither exceed their multiple of one nor all together."""
        if self.one is None or threads is None or threads >= self.threads:
            return max(self.all, self.one or 0.0)
        return min(self.one * max(threads, 1), max(self.all, self.one))


class Machine(msgspec.Struct, frozen=True):
    """A processor with its memory, or a device with its own.

    Attributes:
        name: of a device, as its driver gives it; empty for a processor.
        source: how its rates are known.
        products: operations per second by the trace's C++ name of a dtype, of a processor.
        peaks: the same of a device.
        copies: bytes per second by bytes of the working set, smallest first.
        cache_bytes: most that a device's last cache may hold. cache_bytes_per_second: most that it gives.
        operator_ns: the least time that the host needs for an operator without work, None if it was not measured.
        launch_ns: the same for an operator that launches a kernel.
        page_fault_ns: of one page of 4 kB, None if it was not measured.
    """

    name: str
    source: MachineSource
    products: Mapping[str, _Scaling] = {}
    peaks: Mapping[str, Peak] = {}
    copies: tuple[tuple[int, _Scaling], ...] = ()
    cache_bytes: int = 0
    cache_bytes_per_second: float = 0.0
    operator_ns: float | None = None
    launch_ns: float | None = None
    page_fault_ns: float | None = None

    def flops_per_second(
        self, dtype: str, threads: int | None = None, matrix_units: bool | None = None
    ) -> float | None:
        """Most operations per second; None if they are not known for this dtype.

        Args:
            dtype: the trace's C++ name (`float`, `c10::BFloat16`).
            threads: of a processor; all that were measured if None.
            matrix_units: of a device: True if the work runs on them, False if it does not, None if that is unknown;
                then the faster units count.
        """
        scaling, peak = self.products.get(dtype), self.peaks.get(dtype)
        if scaling is not None:
            return scaling.with_threads(threads)
        if peak is None:
            return None
        known = peak.of(matrix_units)
        return known if known is not None else max(peak.cores or 0.0, peak.matrix or 0.0) or None

    def bytes_per_second(self, working_set: int, threads: int | None = None) -> float | None:
        """Most bytes per second, read and written together; None if that is unknown.

        Args:
            working_set: bytes that an operator moves. A smaller set fits into a faster cache, so the rate is that of
                the largest measured set that is not larger. What the last cache of a device holds may be there already,
                or be written later: only the rest must pass its memory.
            threads: as above.
        """
        memory = self._memory_rate(working_set, threads)
        if memory is None or not self.cache_bytes or working_set <= 0:
            return memory
        cached = min(working_set, self.cache_bytes)
        return working_set / ((working_set - cached) / memory + cached / max(self.cache_bytes_per_second, memory))

    def _memory_rate(self, working_set: int, threads: int | None) -> float | None:
        rates = [rate for size, rate in self.copies if size <= working_set] or [rate for _, rate in self.copies[:1]]
        return rates[-1].with_threads(threads) if rates else None


@once
def host_machine(profile: Profile) -> Machine | None:
    """The processor that made the recording; None unless it was measured."""
    measured = profile.metadata.captured.machine
    return None if measured is None else _host(measured.host)


@once
def device_machine(profile: Profile) -> Machine | None:
    """The device that did the recording's work; None if there is none, several kinds, or an unknown one.

    Rates of its datasheet hold for all work, measured ones only for work like what was measured: they are used where
    no datasheet is known.
    """
    name, model = device_name_of(profile), device_of(profile)
    measured = profile.metadata.captured.machine
    same = next((each for each in measured.devices if each.name == name), None) if measured is not None else None
    if model is not None:
        return _of_model(name or "", model, same)
    return None if same is None else _device(same)


def _host(measured: MeasuredHost) -> Machine:
    return Machine(
        "",
        "measured",
        products=_products(measured.products),
        copies=_copies(measured.copies),
        operator_ns=measured.operator_ns,
        page_fault_ns=measured.page_fault_ns,
    )


def _device(measured: MeasuredDevice) -> Machine:
    products = _products(measured.products)
    return Machine(
        measured.name,
        "measured",
        peaks={dtype: Peak(rate.all, rate.all) for dtype, rate in products.items()},
        copies=_copies(measured.copies),
        launch_ns=measured.launch_ns,
    )


def _of_model(name: str, model: DeviceModel, measured: MeasuredDevice | None) -> Machine:
    return Machine(
        name,
        model.source,
        peaks=model.peaks,
        copies=((1, _Scaling(None, 1, model.bytes_per_second)),),
        cache_bytes=model.cache_bytes,
        cache_bytes_per_second=model.cache_bytes_per_second,
        launch_ns=None if measured is None else measured.launch_ns,
    )


def _products(rates: Sequence[ProductRate]) -> dict[str, _Scaling]:
    return {
        _DTYPES[dtype]: _scaling((rate.threads, rate.flops_per_second) for rate in rates if rate.dtype == dtype)
        for dtype in {rate.dtype for rate in rates}
    }


def _copies(rates: Sequence[CopyRate]) -> tuple[tuple[int, _Scaling], ...]:
    return tuple(
        (size, _scaling((rate.threads, rate.bytes_per_second) for rate in rates if rate.bytes == size))
        for size in sorted({rate.bytes for rate in rates})
    )


def _scaling(measured: Iterable[tuple[int, float]]) -> _Scaling:
    """From pairs of threads and rate."""
    by_threads = dict(measured)
    most = max(by_threads)
    return _Scaling(by_threads.get(1), most, by_threads[most])
