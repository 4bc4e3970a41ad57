"""The base of all values of the report and the web API."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Severity: TypeAlias = Literal["high", "medium", "low", "info"]


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every value in the report."""
