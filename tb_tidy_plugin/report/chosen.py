"""Rows of the tables beside a report, filtered by text and sorted by a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from tb_tidy_plugin.report.figures import DeviceKernelRow, OperatorRow

OPERATOR_ORDERS = tuple(
    field.name for field in msgspec.structs.fields(OperatorRow) if field.name not in {"key", "kernels", "findings"}
)
KERNEL_ORDERS = tuple(field.name for field in msgspec.structs.fields(DeviceKernelRow) if field.name != "key")

_Row = TypeVar("_Row", OperatorRow, DeviceKernelRow)


def chosen_operators(rows: Sequence[OperatorRow], text: str = "", kind: str = "") -> list[OperatorRow]:
    """The rows of `kind` (all kinds if empty) whose name, shapes, place or module contains `text`.

    Includes rows whose key is `text`.
    """
    wanted = searchable(text)
    return [
        row
        for row in rows
        if kind in {"", row.kind}
        and (row.key == text or wanted in searchable(" ".join((row.name, row.shapes, _place(row), row.module))))
    ]


def chosen_kernels(rows: Sequence[DeviceKernelRow], text: str = "", family: str = "") -> list[DeviceKernelRow]:
    """The rows of `family` (all families if empty) whose family, operator or name contains `text`.

    Includes rows whose key is `text`.
    """
    wanted = searchable(text)
    return [
        row
        for row in rows
        if family in {"", row.family.word}
        and (row.key == text or wanted in searchable(f"{row.family} {row.family.title} {row.operator} {row.name}"))
    ]


def searchable(text: str) -> str:
    """The text as searches compare it: without case, and with `×` as `x`."""
    return text.casefold().replace("×", "x")


def ordered(rows: list[_Row], order: str, *, descending: bool) -> list[_Row]:
    """The rows sorted by the column `order`; rows without a value there come last in either direction."""
    values = [(getattr(row, order), at) for at, row in enumerate(rows)]
    known = [(value, at) for value, at in values if value not in {None, ""}]
    known.sort(key=lambda pair: pair[0], reverse=descending)
    return [rows[at] for _, at in known] + [rows[at] for value, at in values if value in {None, ""}]


def _place(row: OperatorRow) -> str:
    return f"{row.file}:{row.line} {row.function}" if row.file else ""
