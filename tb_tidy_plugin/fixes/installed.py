"""Whether changes of code can be made here, without importing what makes them."""

from __future__ import annotations

from importlib.util import find_spec


def has_libcst() -> bool:
    """Whether the extra `fix` is installed."""
    return find_spec("libcst") is not None
