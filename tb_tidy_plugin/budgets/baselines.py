"""Step times of earlier runs on the same machine, one file for each test and machine."""

from __future__ import annotations

import hashlib
import platform
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec

from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.system.files import write_whole
from tb_tidy_plugin.words.errors import TidyError

_LONGEST_NAME = 80  # characters of a test's id in a file name; the hash after them makes it unique


class StepBaseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The median time of a step of one test on one machine."""

    test: str
    machine: str
    step_ns: Annotated[int, msgspec.Meta(gt=0)]
    steps: Annotated[int, msgspec.Meta(gt=0)]


@dataclass(frozen=True, slots=True)
class StepBaselines:
    """The stored times of one test.

    Attributes:
        folder: their folder. test: pytest's id of the test. update: True to store new ones.
        written: files that were stored.
    """

    folder: Path
    test: str
    update: bool
    written: list[Path] = field(default_factory=list)

    def read(self, run: int, device: str) -> StepBaseline | None:
        """The baseline of the test's profile number `run`, None if none was stored on this machine.

        Raises:
            TidyError: the file cannot be read, or is not a baseline.
        """
        path = self._path(run, device)
        try:
            return decode(path.read_bytes(), StepBaseline)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as problem:
            raise TidyError(
                f"The baseline {path} cannot be used: {problem}.", "Store it again with --tidy-baseline-update."
            ) from problem

    def write(self, run: int, device: str, step_ns: int, steps: int) -> None:
        """Stores a baseline.

        Raises:
            OSError: it cannot be written.
        """
        path = self._path(run, device)
        path.parent.mkdir(parents=True, exist_ok=True)
        baseline = StepBaseline(_id(self.test, run), machine(device), step_ns, steps)
        write_whole(path, msgspec.json.format(msgspec.json.encode(baseline), indent=2) + b"\n")
        self.written.append(path)

    def _path(self, run: int, device: str) -> Path:
        return self.folder / _file_name(machine(device)) / f"{_file_name(_id(self.test, run))}.json"


def machine(device: str) -> str:
    """This machine's name, its kind of processor and `device`: times are compared only on one machine."""
    return " ".join(filter(None, (platform.node(), platform.machine(), device)))


def _id(test: str, run: int) -> str:
    return test if run == 1 else f"{test}#{run}"


def _file_name(text: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[-_LONGEST_NAME:]
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
