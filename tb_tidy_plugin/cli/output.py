"""Files that commands write: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from tb_tidy_plugin.errors import TidyError
from tb_tidy_plugin.files import write_whole as replaced


def write_whole(path: Path, text: str) -> None:
    """Writes `text` beside `path` and renames it, so that nobody ever reads a part. What is no file is written into.

    Raises:
        TidyError: `path` cannot be written; what was there is there still.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(text.encode())
        else:
            replaced(target, text.encode())
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise TidyError(f"`{path}` could not be written: {reason}.", "Choose another place with `-o`.") from None
