"""Compiled modules, and the check that they may be used; they only make reading faster.

Each module has a portable twin.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

DECODER = "tb_tidy_plugin.trace._scan"
EXTENSIONS = ("tb_tidy_plugin.estimate._walk", "tb_tidy_plugin.profile._nest", DECODER)
_SOURCES = (".pyx", ".pxi")


def is_usable(extension: str) -> bool:
    """True if it exists, is not stale, and can be loaded."""
    if find_spec(extension) is None or is_stale(extension):
        return False
    try:
        import_module(extension)
    except ImportError:
        return False
    return True


def is_stale(extension: str) -> bool:
    """True if it was built before its sources were last changed, as in a checkout that was pulled since.

    Compares times, as the build itself does; unknown times count as stale. An installed wheel has no sources.
    """
    found = find_spec(extension)
    if found is None or found.origin is None:
        return False
    built = Path(found.origin)
    try:
        sources = [path for path in built.parent.iterdir() if path.suffix in _SOURCES]
        return any(path.stat().st_mtime > built.stat().st_mtime for path in sources)
    except OSError:
        return True
