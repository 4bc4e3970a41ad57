"""The roofline plot: rows of operators and kernels with known work and time, and their device's limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tb_tidy_plugin.analysis.checker import MISSING, without_device
from tb_tidy_plugin.profile.device_models import DeviceModel
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.flops import device_name_of, device_of
from tb_tidy_plugin.report.figures import DeviceKernelRow, OperatorRow
from tb_tidy_plugin.report.roofline import Roofline, RooflineCeiling, RooflineDot

MOST_DOTS = 300
_DTYPES: Mapping[str, str] = {
    "double": "float64", "float": "float32", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
    "c10::Float8_e4m3fn": "float8",
}  # fmt: skip
"""Names of dtypes in a trace, and in users' code."""

_NOTHING_KNOWN = "Nothing is known of how much the operators of this recording compute."


def roofline_of(
    profile: Profile, operators: Sequence[OperatorRow] | None, kernels: Sequence[DeviceKernelRow]
) -> Roofline:
    """The plot of a profile.

    Args:
        profile: one trace.
        operators: its operators by shape; None if no shapes were recorded.
        kernels: its device work.
    """
    device = device_of(profile)
    whole = max(sum(kernel.total_ns for kernel in kernels), 1)
    of_operators = [dot for row in operators or () if (dot := _operator(row, whole, device)) is not None]
    of_kernels = [dot for row in kernels if (dot := _kernel(row, device)) is not None]
    dots = [dot for each in (of_operators, of_kernels) for dot in sorted(each, key=_least_time)[:MOST_DOTS]]
    missing = (
        None
        if dots
        else without_device(profile)
        if not kernels
        else MISSING["shapes"]
        if operators is None
        else _NOTHING_KNOWN
    )
    return Roofline(
        device=device_name_of(profile) or "",
        bytes_per_second=None if device is None else device.bytes_per_second,
        ceilings=[] if device is None else _ceilings(device, _dtypes(profile)),
        dots=dots,
        missing=missing,
        source=None if device is None else device.source,
    )


def _least_time(dot: RooflineDot) -> int:
    return -dot.total_ns


def _dtypes(profile: Profile) -> frozenset[str]:
    """The dtypes of all inputs, including the types of scalars, which match no dtype of a device."""
    return frozenset(dtype for inputs in profile.signatures.inputs for dtype in inputs.dtypes)


def _ceilings(device: DeviceModel, dtypes: frozenset[str]) -> list[RooflineCeiling]:
    """Ceilings of the recording's dtypes, equal ones merged, lowest first."""
    names: dict[float, list[str]] = {}
    for dtype, name in _DTYPES.items():
        peak = device.peaks.get(dtype)
        if peak is None or dtype not in dtypes:
            continue
        if peak.cores is not None:
            names.setdefault(peak.cores, []).append(name)
        if peak.matrix is not None and peak.matrix != peak.cores:
            names.setdefault(peak.matrix, []).append(f"{name}, matrix units")
    return [RooflineCeiling(name="; ".join(names[rate]), flops_per_second=rate) for rate in sorted(names)]


def _operator(row: OperatorRow, whole: int, device: DeviceModel | None) -> RooflineDot | None:
    if not row.flops_per_second or not row.bytes_per_second or not row.device_total_ns:
        return None
    return RooflineDot(
        kind="operator",
        key=row.key,
        name=row.name,
        detail=row.shapes,
        total_ns=row.device_total_ns,
        share=min(row.device_total_ns / whole, 1.0),
        flops_per_second=row.flops_per_second,
        bytes_per_second=row.bytes_per_second,
        roofline=row.roofline,
        bound=_bound(row, device),
        findings=row.findings,
    )


def _kernel(row: DeviceKernelRow, device: DeviceModel | None) -> RooflineDot | None:
    if not row.flops_per_second or not row.bytes_per_second:
        return None
    return RooflineDot(
        kind="kernel",
        key=row.key,
        name=row.name,
        detail=row.operator,
        total_ns=row.total_ns,
        share=row.share,
        flops_per_second=row.flops_per_second,
        bytes_per_second=row.bytes_per_second,
        roofline=row.roofline,
        bound=_bound(row, device),
        findings=[],
    )


def _bound(row: OperatorRow | DeviceKernelRow, device: DeviceModel | None) -> Literal["compute", "memory"] | None:
    """Memory if moving alone takes the least time; rows are sums, so nearly all of it is enough."""
    if device is None or row.roofline is None or row.bytes_per_second is None:
        return None
    return "memory" if row.bytes_per_second / device.bytes_per_second >= row.roofline * NEARLY else "compute"


NEARLY = 0.99
