"""Measured speeds of machines, as this user keeps them: one file for each machine and build of torch.

In the user's cache folder, which several machines may share; folder and file must belong to this user alone
(`private.py`). The names do not tell the machine's.
"""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

from tb_tidy_plugin.system.files import write_whole
from tb_tidy_plugin.system.private import NotPrivateError, check_folder, check_free, opened

MOST_BYTES = 1 << 16
DIGITS = 16
LEISURE_S = 10.0  # of `tb-tidy bench --machine`
EXIT_BUSY = 3  # exit code of the process that measures, if other programs use the cores
_FOR_THIS_USER = 0o600
SHARED_NAMES = frozenset({"", "localhost", "localhost.localdomain"})
"""Names that many machines have."""


def folder_of_machines() -> Path:
    """The folder of this user's files.

    Raises:
        ImportError: `platformdirs` is not installed, as in a program's own environment under `tb-tidy record`.
    """
    from platformdirs import user_cache_path

    return user_cache_path("tb-tidy", appauthor=False) / "machines"


def host_name() -> str:
    """This machine's name."""
    return platform.node()


def machine_file(torch: str) -> Path:
    """The file of this machine with this build of torch."""
    return folder_of_machines() / f"{_digits(host_name())}-{_digits(torch)}.json"


def files_of_this_machine() -> list[Path]:
    """Its files with all builds, the latest first."""
    try:
        found = [
            (file.stat().st_mtime_ns, file) for file in folder_of_machines().glob(f"{_digits(host_name())}-*.json")
        ]
    except (OSError, ImportError):
        return []
    return [file for _, file in sorted(found, reverse=True)]


def read_machine(file: Path) -> bytes | None:
    """The content of such a file; None if it does not exist, is too large, or may be somebody else's."""
    try:
        with opened(file) as stream:
            content = stream.read(MOST_BYTES + 1)
    except (OSError, NotPrivateError):
        return None
    return content if len(content) <= MOST_BYTES else None


def keep_machine(file: Path, content: bytes) -> None:
    """Writes such a file.

    Raises:
        NotPrivateError: the folder may be somebody else's.
        OSError: it cannot be written.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_folder(file.parent)
    check_free(file)
    write_whole(file, content, _FOR_THIS_USER)


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
