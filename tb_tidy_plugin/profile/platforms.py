"""Kind of device that a trace was recorded on."""

from __future__ import annotations

import re

from tb_tidy_plugin.trace.columns import DEVICE_WORK, Category, EventTable
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.trace.strings import numbers_where

_MAKERS = {
    "cuda": re.compile(r"NVIDIA|Tesla|GeForce|Quadro|TITAN"),
    "rocm": re.compile(r"AMD|Instinct|Radeon"),
}
"""Names of devices by platform, for recordings whose launches do not show it."""

_CALLS = {"XPU": r"^(?:ze|zes|ur|pi)[A-Z]", "MTIA": r"(?i)mtia|^runFunction - job_"}
"""Runtime calls of devices that are neither CUDA's nor ROCm's: of Level Zero and Unified Runtime, and of MTIA."""


def platform_of(table: EventTable) -> str:
    """`cuda`, `rocm`, `cpu`, or `other` for devices that are neither."""
    keys = table.metadata.keys
    if any(key.startswith(("roctracer", "hip_")) for key in keys) or _has_launch(table, r"hip[A-Z]"):
        return "rocm"
    if any(key.startswith(("cupti", "cuda_")) for key in keys) or _has_launch(table, r"cu(da)?[A-Z]"):
        return "cuda"
    if not table.is_category(DEVICE_WORK).any():
        return "cpu"
    names = [device.name for device in table.metadata.devices]
    for platform, maker in _MAKERS.items():
        if any(maker.search(name) for name in names):
            return platform
    return "other"


def activity_of(table: EventTable) -> str:
    """The `ProfilerActivity` that records the device's work: `CUDA` also for ROCm; empty for an unknown device.

    A recording without any trace of a device has no other device than what most have.
    """
    platform = platform_of(table)
    if platform in {"cuda", "rocm"}:
        return "CUDA"
    for activity, calls in _CALLS.items():
        if _has_launch(table, calls):
            return activity
    return "CUDA" if platform == "cpu" else ""


def _has_launch(table: EventTable, pattern: str) -> bool:
    numbers = numbers_where(table.names, re.compile(pattern).search)
    return bool((among(table.name, numbers) & (table.category == Category.RUNTIME)).any())
