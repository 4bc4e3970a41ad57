"""What a run of the kit leaves behind: one folder for each piece, with its result and what it recorded.

A piece is done once its result is there; a folder without one is what an interrupted piece left, and is emptied when
the piece runs again. All results are read back as untrusted: an archive of another machine holds the same files.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import msgspec

from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.system.files import write_whole

RESULT = "result.json"
MOST_RESULT_BYTES = 1 << 20

T = TypeVar("T")

Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=4000)]
Seconds: TypeAlias = Annotated[list[Annotated[float, msgspec.Meta(gt=0, le=1e6)]], msgspec.Meta(max_length=1000)]


class Result(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What became of a piece.

    Attributes:
        error: why it has no figures; empty where it went well.
        clocks: the device's clocks, temperature and power before and after, as its driver prints them.
        slow: seconds of a step of the slow program without the profiler, by turn. fixed: of the fixed one.
        difference: the largest difference of their results, by the largest one. tolerance: up to where they are equal.
        benchmark: of a rule's statements.
    """

    error: Text = ""
    clocks: Annotated[list[Text], msgspec.Meta(max_length=2)] = msgspec.field(default_factory=list)
    slow: Seconds = msgspec.field(default_factory=list)
    fixed: Seconds = msgspec.field(default_factory=list)
    difference: float | None = None
    tolerance: float | None = None
    benchmark: Measurement | None = None

    @property
    def is_equal(self) -> bool:
        """Whether both programs were seen to compute the same."""
        return self.difference is not None and self.tolerance is not None and self.difference <= self.tolerance


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a run was made. `driver` is what `nvidia-smi` prints, `commit` that of the kit; both may be empty."""

    device: Text
    name: Text
    torch: Text
    python: Text
    cores: int
    driver: Annotated[str, msgspec.Meta(max_length=20_000)] = ""
    commit: Text = ""


@dataclass(frozen=True)
class State:
    """The folder of a run."""

    folder: Path

    def piece(self, name: str) -> Path:
        """The folder of a piece (`pair/sync_readback/small`)."""
        return self.folder / name

    def result(self, name: str) -> Result | None:
        """The result of a piece, None where it is not done.

        Raises:
            msgspec.ValidationError: the file holds something else.
        """
        return _read(self.piece(name) / RESULT, Result)

    def begin(self, name: str) -> Path:
        """An empty folder for the piece."""
        folder = self.piece(name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def end(self, name: str, result: Result) -> None:
        """Writes the result, which ends the piece."""
        write_whole(self.piece(name) / RESULT, msgspec.json.format(msgspec.json.encode(result)))

    @property
    def machine(self) -> Machine | None:
        """Where the run was made, None before its first piece."""
        return _read(self.folder / "machine.json", Machine)

    def made_on(self, machine: Machine) -> None:
        """Says where the run is made."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / "machine.json", msgspec.json.format(msgspec.json.encode(machine)))


def _read(path: Path, kind: type[T]) -> T | None:
    if not path.is_file():
        return None
    if path.stat().st_size > MOST_RESULT_BYTES:
        raise msgspec.ValidationError(f"{path.name} is larger than a result")
    return decode(path.read_bytes(), kind)
