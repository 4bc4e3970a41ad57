"""Places of code that `torch.compile` generated, in the report and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.words.vocabulary import Pass

if TYPE_CHECKING:
    from tb_tidy_plugin.sources.frames import Frame


class CodeLine(Model, frozen=True):
    """A line of a source file; lines count from 1."""

    file: str
    line: int


class Generated(Model, frozen=True):
    """Marks a place in code that `torch.compile` generated: `of` its forward or its backward pass.

    `also` are further lines that the same kernel computes; time is never split between them.
    """

    of: Pass
    also: list[CodeLine]


def generated_of(place: Frame) -> Generated | None:
    """The generated code that a place is in; None for code that was not generated."""
    if place.compiled is None:
        return None
    return Generated(of=place.compiled, also=[CodeLine(file=file, line=line) for file, line in place.also])


def place_text(file: str, line: int, generated: Generated | None) -> str:
    """`backward of model.py:190 (+189, 191, layers.py:12)`."""
    if generated is None:
        return f"{file}:{line}"
    others = [str(each.line) if each.file == file else f"{each.file}:{each.line}" for each in generated.also]
    also = f" (+{', '.join(others)})" if others else ""
    return f"{'backward of ' if generated.of == 'backward' else ''}{file}:{line}{also}"
