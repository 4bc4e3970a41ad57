"""One comparison in a separate process, since many ranks of large recordings must not block TensorBoard.

`python -m tb_tidy_plugin.plugin.comparison_worker` reads a line from its input, a `ComparisonQuestion`, and
writes a `ComparisonAnswer`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from tb_tidy_plugin.compare.model import Comparison
from tb_tidy_plugin.compare.recording import Recording, StepsError, step_range
from tb_tidy_plugin.configuration.limits import limits_in
from tb_tidy_plugin.report.left_out import AboutRun
from tb_tidy_plugin.system import allocator, allowance, child
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.limits import held_to
from tb_tidy_plugin.words.errors import ConfigurationError, TraceError

if TYPE_CHECKING:
    from tb_tidy_plugin.compare.compare import Asked


_NICE = 5  # TensorBoard goes first
COMPARISON_WORK = "comparison"


class SideAsked(msgspec.Struct, frozen=True):
    """One side: its name, its recordings, the number of unreadable ones, and the steps asked for.

    `recordings` are left as text, which only the worker reads. `steps` is a range, empty for all steps. `of_runs` is
    what rules over several ranks say.
    """

    path: str
    recordings: list[msgspec.Raw]
    unread: int
    steps: str
    of_runs: list[AboutRun]


class ComparisonQuestion(msgspec.Struct, frozen=True):
    """Both sides of a comparison; `configuration` is the file with its limits."""

    base: SideAsked
    candidate: SideAsked
    configuration: bytes | None = None


class _Configured(msgspec.Struct, frozen=True):
    """The part of a question that is read before the rest."""

    configuration: bytes | None = None


class Compared(msgspec.Struct, frozen=True, tag="compared"):
    """The answer, with all its rows."""

    comparison: Comparison


class NoSuchSteps(msgspec.Struct, frozen=True, tag="refused"):
    """A recording lacks the requested steps."""

    error: str
    advice: str


class OverLimit(msgspec.Struct, frozen=True, tag="given_up"):
    """The comparison exceeds a limit."""

    error: str
    advice: str


ComparisonAnswer: TypeAlias = Compared | NoSuchSteps | OverLimit


def main() -> None:
    """Answers one question."""
    output = child.private_output()
    question = child.question()
    child.end_with_input()
    child.step_back(nice=_NICE)
    allowance.enforce()
    allocator.spare_memory()
    output.write(_answer_to(question))
    output.close()


def _answer_to(question: bytes) -> bytes:
    """The comparison, or the reason if there is none, as JSON like the question."""
    from tb_tidy_plugin.compare.compare import compared

    file = decode(question, _Configured).configuration
    answer: ComparisonAnswer
    try:
        with held_to(limits_in(None if file is None else Path(os.fsdecode(file))), COMPARISON_WORK):
            allowance.has_read(len(question))
            asked = decode(question, ComparisonQuestion)
            answer = Compared(compared(_asked(asked.base), _asked(asked.candidate)))
            return msgspec.json.encode(answer)
    except StepsError as problem:
        answer = NoSuchSteps(problem.error, problem.advice)
    except (ConfigurationError, TraceError) as problem:
        answer = OverLimit(problem.error, problem.advice)
    return msgspec.json.encode(answer)


def _asked(side: SideAsked) -> Asked:
    from tb_tidy_plugin.compare.compare import Asked

    recordings = [decode(each, Recording) for each in side.recordings]
    return Asked(side.path, recordings, step_range(side.steps) if side.steps else None, side.unread, side.of_runs)


if __name__ == "__main__":
    main()
