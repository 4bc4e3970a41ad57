"""The user's source files with the cost of each line, for a terminal and for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from tb_tidy_plugin.analysis.detailed_answers import LineCostsAnswer
from tb_tidy_plugin.analysis.lines import PASSES, FunctionTime, LineCost, PassTime, StepTime, summed_times
from tb_tidy_plugin.render.document import Document, Line, Section, Span, Table, code
from tb_tidy_plugin.sources.align import Sources
from tb_tidy_plugin.words.errors import NotFoundError
from tb_tidy_plugin.words.units import Nanoseconds, part_text
from tb_tidy_plugin.words.vocabulary import KNOWN_BY_WORDS

Row: TypeAlias = tuple[list[str], str]
"""Figures, and the line of text that they belong to."""

_AROUND = 2  # lines without cost around lines with one; more are left out


class AnnotatedFile(msgspec.Struct, frozen=True):
    """One file: its name and its lines. The first figure of a row is the number of the line, `?` if it is not known."""

    name: str
    headings: list[str]
    rows: list[Row]


class Annotated(msgspec.Struct, frozen=True):
    """Files, most time first, and the sums that their figures are part of."""

    files: list[AnnotatedFile]
    headings: list[str]
    sums: list[Row]


def annotated(answer: LineCostsAnswer, file: str | None, sources: Sources, named: Callable[[str], str]) -> Annotated:
    """All files with costs, or only `file`; `named` gives the name to show for a recorded one.

    Raises:
        NotFoundError: there are none.
    """
    step, files = answer.step, asked(answer, file, named)
    shown = [name for name in PASSES if getattr(step, name)]
    headings = ["line", *_headings("total", shown), "calls"]
    above, pages = list[PassTime](), list[AnnotatedFile]()
    for name, costs in files.items():
        functions = [each for each in step.functions if each.file == name]
        above += [*costs, *functions]
        rows = _rows(sources(name) or [], {cost.line: cost for cost in costs}, functions, step, shown)
        pages.append(AnnotatedFile(named(name), headings, list(rows)))
    return Annotated(pages, _headings("time", shown), _sums(summed_times(above), step, shown))


def annotated_document(found: Annotated) -> Document:
    """A section for each file, and the sums."""
    sections = []
    for page in found.files:
        number, *heads = page.headings
        rows = tuple(_cells(at, code(text) if text else "", *figures) for (at, *figures), text in page.rows)
        sections.append(Section((code(page.name),), (Table((number, "source"), tuple(heads), rows),)))
    sums = tuple(_cells(name, *figures) for figures, name in found.sums)
    table = Table(("lines",), tuple(found.headings), sums)
    return Document("TorchTidy: the time of each line", (*sections, table), "tb-tidy annotate")


def _cells(*texts: str | Span) -> tuple[Line, ...]:
    return tuple((each,) for each in texts)


def asked(answer: LineCostsAnswer, file: str | None, named: Callable[[str], str]) -> dict[str, list[LineCost]]:
    """The costs by recorded file, most time first; of one file if it is named, possibly by the end of its path.

    Raises:
        NotFoundError: there are none.
    """
    by_file = costs_by_file(answer)
    if file is not None:
        by_file = {name: lines for name, lines in by_file.items() if is_called(name, file, named)}
        if not by_file:
            raise NotFoundError(f"No line of `{file}` was recorded, or its source was not found.", _how(answer))
    if not by_file:
        raise NotFoundError("No line of your own code could be found.", _how(answer))
    return by_file


def costs_by_file(answer: LineCostsAnswer) -> dict[str, list[LineCost]]:
    """The costs by file, most time first."""
    by_file: dict[str, list[LineCost]] = {}
    for cost in answer.costs:
        by_file.setdefault(cost.file, []).append(cost)
    return dict(
        sorted(by_file.items(), key=lambda each: max((line.total_ns, line.host_ns) for line in each[1]), reverse=True)
    )


def is_called(name: str, file: str, named: Callable[[str], str]) -> bool:
    """True if a recorded file is the one that the user named, possibly by the end of its path."""
    return any(f"/{each}".endswith(f"/{file}") for each in (name, named(name)))


def _how(answer: LineCostsAnswer) -> str:
    if not answer.has_stacks:
        return "Record with `with_stack=True`."
    sources = "Name the folder of the sources (`--source-root DIR`, `source_roots`)"
    return f"{sources}; they must be unchanged since the recording."


def _rows(
    lines: Sequence[str],
    costs: dict[int, LineCost],
    functions: Sequence[FunctionTime],
    step: StepTime,
    shown: Sequence[str],
) -> Iterator[Row]:
    empty = [""] * (len(shown) + 4)
    last = 0
    for number in sorted(near for line in costs for near in range(line - _AROUND, line + _AROUND + 1)):
        if last < number <= len(lines):
            if number > last + 1:
                yield empty, ""
            last, cost = number, costs.get(number)
            figures = _figures(cost.total_ns, cost, step, shown) if cost else empty[2:]
            calls = str(cost.calls) if cost and cost.calls else ""
            yield [str(number), *figures, calls], lines[number - 1] + _remark(cost)
    for each in functions:
        yield ["?", *_figures(each.own_ns, each, step, shown), ""], f"# in {each.function}, line not known"


def _sums(above: PassTime, step: StepTime, shown: Sequence[str]) -> list[Row]:
    """The time above, in other files of the user's own, and outside them; it adds up to the step."""
    others = step.less(above, step.elsewhere)
    length = "1 step" if step.steps == 1 else f"1 of {step.steps} steps, on average"
    parts = (("above", above), ("your other files", others), ("outside your files", step.elsewhere))
    rows = [(_figures(each.own_ns, each, step, shown), name) for name, each in parts if each.own_ns]
    return [*rows, (_figures(step.own_ns, step, step, shown), length)]


def _remark(cost: LineCost | None) -> str:
    """A remark on lines that fit as well, on kernels that compute several lines, and on replayed graphs."""
    if cost is None:
        return ""
    tied = [f"or line {' or '.join(map(str, cost.ties))}"] if cost.ties else []
    shared = [f"shared by {cost.shared} lines"] if cost.shared > 1 else []
    replayed = [f"replayed: {KNOWN_BY_WORDS[cost.known_by]}"] if cost.known_by else []
    remarks = ", ".join(tied + shared + replayed)
    return f"  # {remarks}" if remarks else ""


def _headings(first: str, shown: Sequence[str]) -> list[str]:
    return [first, "share", *(name.removesuffix("_ns") for name in shown)]


def _figures(total_ns: int, cost: PassTime, step: StepTime, shown: Sequence[str]) -> list[str]:
    """The total per step and its share, and the time of each pass; empty for none."""
    share = part_text(min(total_ns / step.ns, 1.0)) if total_ns else ""
    times = (total_ns, *(getattr(cost, name) for name in shown))
    total, *passes = (str(Nanoseconds(round(each / step.steps))) if each else "" for each in times)
    return [total, share, *passes]
