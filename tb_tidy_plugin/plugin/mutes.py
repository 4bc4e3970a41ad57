"""Muted findings and rules, stored beside the runs on request so that a team can share them.

Without such a file each browser stores its own mutes and nothing is written anywhere.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import MuteChange, Mutes, MutesAnswer
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.system.files import FOR_THE_TEAM
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.trace.remote import AnyPath, RemotePath, can_be_opened, write_small
from tb_tidy_plugin.words.errors import TidyError

NAME = ".torchtidy.json"
_MOST_BYTES = 1 << 20
MOST_MUTES = 2000  # of each kind
SOUND = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")  # ids of findings and names of rules


class MutesError(TidyError):
    """The mutes cannot be stored beside the runs."""


class MuteStore:
    """The file with the mutes of a logdir. All methods may be called from any thread."""

    def __init__(self, logdirs: Sequence[Logdir]) -> None:
        """The file lies in the first folder on this machine, else in the first writable store."""
        local = next((_folder_of(logdir) for logdir in logdirs if not logdir.is_remote), None)
        store = next((RemotePath(logdir.path.rstrip("/")) for logdir in logdirs if is_store(logdir)), None)
        folder = local or store
        self._file: AnyPath | None = folder / NAME if folder else None
        self._changing = threading.Lock()

    def answer(self) -> MutesAnswer:
        """The mutes, and whether they are, or could be, stored beside the runs."""
        kept = self._read()
        can_keep = isinstance(self._file, RemotePath)  # only an attempt shows what a store allows
        if isinstance(self._file, Path):
            can_keep = os.access(self._file.parent, os.W_OK)
        return MutesAnswer(
            kept=kept is not None,
            can_keep=can_keep,
            path=str(self._file) if self._file else None,
            mutes=kept or Mutes(findings=[], rules=[]),
        )

    def change(self, change: MuteChange) -> MutesAnswer:
        """Adds and removes mutes; creates the file if it does not exist.

        Raises:
            MutesError: the change names something that cannot be muted, or the file cannot be read or written.
        """
        if self._file is None:
            raise MutesError("The folder of the runs is not writable.", "Mutes stay in the browser.")
        with self._changing:
            old = self._read() or Mutes(findings=[], rules=[])
            new = Mutes(
                findings=_changed(old.findings, change.mute.findings, change.unmute.findings),
                rules=_changed(old.rules, change.mute.rules, change.unmute.rules),
            )
            _write(self._file, msgspec.json.format(msgspec.json.encode(new), indent=2) + b"\n")
        return self.answer()

    def _read(self) -> Mutes | None:
        if self._file is None:
            return None
        try:
            if isinstance(self._file, Path) and self._file.exists() and not self._file.is_file():
                raise MutesError(f"`{self._file}` is not a regular file.", "Delete it.")
            with self._file.open("rb") as stream:
                text = stream.read(_MOST_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise MutesError(f"`{self._file}` cannot be read: {problem.strerror}.", "Check its permissions.") from None
        try:
            found = decode(text, Mutes)
        except NOT_JSON as problem:
            raise MutesError(f"`{self._file}` is not a list of mutes: {problem}.", "Fix it, or delete it.") from None
        return Mutes(findings=_sound(found.findings), rules=_sound(found.rules))


def _folder_of(logdir: Logdir) -> Path:
    """The folder of a logdir's runs on this machine, or the folder of a single trace."""
    path = Path(logdir.path)
    return path.parent if logdir.is_trace else path


def is_store(logdir: Logdir) -> bool:
    """True if it is an address of a writable store, and the packages for that are installed."""
    return logdir.is_remote and not logdir.path.lower().startswith("http") and can_be_opened(logdir.path)


def _sound(names: Iterable[str]) -> list[str]:
    """The valid names among those in the file, which anybody may have written."""
    return [name for name in names if SOUND.fullmatch(name)][:MOST_MUTES]


def _changed(old: Iterable[str], added: Iterable[str], removed: Iterable[str]) -> list[str]:
    names = sorted((set(old) | set(added)) - set(removed))
    if not all(SOUND.fullmatch(name) for name in added) or len(names) > MOST_MUTES:
        raise MutesError(
            "This cannot be muted.", f"Name at most {MOST_MUTES} findings by their ids and checks by their names."
        )
    return names


def _write(file: AnyPath, text: bytes) -> None:
    try:
        write_small(file, text, FOR_THE_TEAM)
    except OSError as problem:
        advice = "Mutes are unchanged. Free disk space there, or check the permissions."
        raise MutesError(f"`{file}` cannot be written: {problem.strerror}.", advice) from None
