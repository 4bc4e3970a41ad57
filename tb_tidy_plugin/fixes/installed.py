"""Check that code changes can be made here, without importing LibCST."""

from __future__ import annotations

from importlib.util import find_spec


def has_libcst() -> bool:
    """True if the extra `fix` is installed."""
    return find_spec("libcst") is not None
