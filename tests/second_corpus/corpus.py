"""Which programs there are, what each of them loses, and the same programs without a loss.

A program is written as its public kind is, and defines beside `build() -> step` (see `tests.accuracy.record`)

- `class Losses`: a flag per loss; `False` gives the form that does not lose it, with equal results;
- `KNOWN`: by flag what is lost, and the rules whose fix gives it back; none where no rule of the catalogue does;
- `class Sizes` and `TINY`: the sizes, and those by which a test runs it in no time;
- `ALSO`: rules whose findings are true of it and explained by no flag, with the reason.

A line that ends with `# loss: flag` is one of those that lose: a finding in its function is in the right place.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tests.accuracy.corpus import Program

PROGRAMS = Path(__file__).parent / "programs"
MARK = re.compile(r"# loss: (\w+)")

Function = tuple[int, int]
"""The first and the last line of a function, 1-based; its decorators belong to it."""


@dataclass(frozen=True)
class Loss:
    """One known loss of a program.

    Attributes:
        name: its flag.
        what: what is lost.
        rules: the rules whose fix gives it back.
        functions: the functions with lines that lose it.
    """

    name: str
    what: str
    rules: frozenset[str]
    functions: frozenset[Function]


@dataclass(frozen=True)
class LossyProgram:
    """A program and what is known of it; `also` are rules that find what is true besides, with the reason."""

    program: Program
    losses: tuple[Loss, ...]
    also: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of its file, without the ending."""
        return self.program.path.stem

    def function_at(self, line: int) -> Function | None:
        """The innermost function around a line of it, None outside of any."""
        return innermost(_functions(ast.parse(_text(self.program))), line)

    def copy_in(self, folder: Path, *, without: Collection[str] = (), is_tiny: bool = False) -> Program:
        """A copy of it in a new folder, byte by byte the same where nothing else is asked for."""
        text = _text(self.program)
        if without or is_tiny:
            text += "\n\n"
        text += "".join(f"Losses.{name} = False\n" for name in without)
        if is_tiny:
            text += "for name, size in TINY.items():\n    setattr(Sizes, name, size)\n"
        folder.mkdir(parents=True)
        path = folder / self.program.path.name
        path.write_text(text, encoding="utf-8")
        return Program(path, "slow", self.name)


def lossy_programs(folder: Path = PROGRAMS) -> list[LossyProgram]:
    """All programs of a folder, by name."""
    return [lossy(path) for path in sorted(folder.glob("*.py"))]


def lossy(path: Path) -> LossyProgram:
    """The program in a file, which is read and not run."""
    program = Program(path, "slow", path.stem)
    text = _text(program)
    tree = ast.parse(text)
    known = cast("dict[str, tuple[str, list[str]]]", _literal(tree, "KNOWN"))
    also = cast("dict[str, str]", _literal(tree, "ALSO"))
    functions, marked = list(_functions(tree)), list(_marked(text))
    losses = []
    for name, (what, rules) in known.items():
        around = {innermost(functions, line) for line, loss in marked if loss == name}
        losses.append(Loss(name, what, frozenset(rules), frozenset(each for each in around if each is not None)))
    return LossyProgram(program, tuple(losses), also)


def innermost(functions: Collection[Function] | Iterator[Function], line: int) -> Function | None:
    """The innermost of the functions around a line, None where it is in none of them."""
    return min(
        (each for each in functions if each[0] <= line <= each[1]), key=lambda each: each[1] - each[0], default=None
    )


def _text(program: Program) -> str:
    return program.path.read_text(encoding="utf-8")


def _marked(text: str) -> Iterator[tuple[int, str]]:
    """The number of each line that says of itself what it loses, with the flag."""
    for number, line in enumerate(text.splitlines(), start=1):
        for name in MARK.findall(line):
            yield number, name


def _functions(tree: ast.Module) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno is not None
            yield min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.end_lineno


def _literal(tree: ast.Module, name: str) -> object:
    """A dict that the program assigns at its top, empty where it does not."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            return ast.literal_eval(node.value)
    return {}
