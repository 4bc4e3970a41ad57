"""Files beside a trace: written whole or not at all, since a reader may look and a job may be killed at any time."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: bytes) -> Path:
    """Writes `content` under a temporary name in the same folder and renames it.

    Raises:
        OSError: it cannot be written; what was there before is as it was.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        with suppress(OSError):  # renamed, or never made
            draft.unlink()
    return path
