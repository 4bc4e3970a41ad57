"""One comparison in a process of its own: many ranks of large recordings must not hold TensorBoard up.

`python -m tb_tidy_plugin.plugin.comparing` reads a line from its input, a `Question`, and writes an `Answer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from tb_tidy_plugin import child
from tb_tidy_plugin.compare.model import Comparison
from tb_tidy_plugin.compare.recording import Recording, StepsError, step_range
from tb_tidy_plugin.report.model import Finding

if TYPE_CHECKING:
    from tb_tidy_plugin.compare.compare import Asked


NICE = 5  # TensorBoard goes first


class SideAsked(msgspec.Struct, frozen=True):
    """One side: what it is called, its recordings, how many could not be read, and the steps that were asked for.

    `steps` is a range, empty for all that do not warm up. `of_runs` are findings about all ranks together.
    """

    path: str
    recordings: list[Recording]
    unread: int
    steps: str
    of_runs: list[Finding]


class Question(msgspec.Struct, frozen=True):
    """What to compare with what."""

    base: SideAsked
    candidate: SideAsked


class Compared(msgspec.Struct, frozen=True, tag="compared"):
    """The answer, with all its rows."""

    comparison: Comparison


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """There are no such steps."""

    error: str
    advice: str


Answer: TypeAlias = Compared | Refused


def main() -> None:
    """Answers one question."""
    output = child.private_output()
    question = msgspec.json.decode(child.question(), type=Question)
    child.end_with_input()
    child.step_back(nice=NICE)
    output.write(msgspec.json.encode(answer_to(question)))
    output.close()


def answer_to(question: Question) -> Answer:
    """The comparison, or why there is none."""
    from tb_tidy_plugin.compare.compare import compared

    try:
        return Compared(compared(_asked(question.base), _asked(question.candidate)))
    except StepsError as problem:
        return Refused(problem.error, problem.advice)


def _asked(side: SideAsked) -> Asked:
    from tb_tidy_plugin.compare.compare import Asked

    return Asked(side.path, side.recordings, step_range(side.steps) if side.steps else None, side.unread, side.of_runs)


if __name__ == "__main__":
    main()
