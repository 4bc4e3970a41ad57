"""Kind of device that a trace was recorded on."""

from __future__ import annotations

import re

from tb_tidy_plugin.trace.columns import DEVICE_WORK, Category, EventTable
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.trace.strings import numbers_where


def platform_of(table: EventTable) -> str:
    """`cuda`, `rocm`, `cpu`, or `other` for devices that are neither."""
    keys = table.metadata.keys
    if any(key.startswith(("roctracer", "hip_")) for key in keys) or _has_launch(table, r"hip[A-Z]"):
        return "rocm"
    if any(key.startswith(("cupti", "cuda_")) for key in keys) or _has_launch(table, r"cu(da)?[A-Z]"):
        return "cuda"
    return "other" if table.is_category(DEVICE_WORK).any() else "cpu"


def _has_launch(table: EventTable, pattern: str) -> bool:
    numbers = numbers_where(table.names, re.compile(pattern).search)
    return bool((among(table.name, numbers) & (table.category == Category.RUNTIME)).any())
