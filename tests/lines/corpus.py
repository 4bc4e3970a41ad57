"""Which programs the lines are judged on, and their recordings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.accuracy.corpus import CLEAN, Program
from tests.accuracy.corpus import programs as programs_of_rules
from tests.accuracy.processes import record_step_in
from tests.lines.judged import Judged, Recording, aligned, definition, marked_recording, shared_recording, unique_name

HARD: Final = Path(__file__).parent / "programs"

METHODS = {"TorchTidy": aligned, "unique name in the function": unique_name, "the recording's own line": definition}
TORCHTIDY: Final = "TorchTidy"


@dataclass(frozen=True)
class Result:
    """One program, and what each method makes of it."""

    name: str
    source: Sequence[str]
    judged: dict[str, list[Judged]]


def programs() -> list[Program]:
    """Programs of hard language features, then those that the rules are tested with."""
    hard = [Program(path, CLEAN, "") for path in sorted(HARD.glob("*.py"))]
    return [*hard, *(program for program in programs_of_rules() if program.kind in {"clean", "slow"} and fits(program))]


def left_out() -> list[Program]:
    """Programs of the other corpus that cannot be marked, because their code runs compiled or in several processes."""
    return [
        program
        for program in programs_of_rules()
        if program.kind in {"clean", "slow"} and not program.is_drawn and not fits(program)
    ]


def fits(program: Program) -> bool:
    """Whether its step runs as it is written, in one process."""
    is_compiled = re.search(r"\bcompile\(|\bjit\.script\(", program.path.read_text(encoding="utf-8"))
    return not program.is_drawn and program.ranks == 1 and not is_compiled


def sample() -> list[Program]:
    """The hard programs and every twelfth of the others, for each run of the tests; `make lines` takes all."""
    everything = programs()
    hard = [program for program in everything if program.path.parent == HARD]
    return [*hard, *everything[len(hard) :: 12]]


def results(judged: Iterable[Program], said: Callable[[str], object] = lambda _: None) -> list[Result]:
    """Programs recorded and judged, one after the other: CPython up to 3.11 cannot parse in two threads at once."""
    found = []
    for program in judged:
        found.append(result_of(program))
        said(program.name)
    return found


def result_of(program: Program) -> Result:
    """One program recorded and judged.

    Raises:
        ProgramError: the program broke.
    """
    with TemporaryDirectory(prefix="torchtidy-lines-") as folder:
        trace = record_step_in(Path(folder), program, is_marked=True)
        return _result(program.name, marked_recording(program.path, trace))


def shared_results(folder: Path) -> Iterator[Result]:
    """Recordings that came with their true lines."""
    for program in sorted(folder.glob("*/truth.json")):
        yield _result(program.parent.name, shared_recording(program.parent))


def _result(name: str, recording: Recording) -> Result:
    return Result(name, recording.source, {called: recording.judged(method) for called, method in METHODS.items()})
