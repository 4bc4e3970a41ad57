"""Which programs there are, and what each of them says about itself.

    <rule-name>/slow      holds the rule's pattern, and no other that it does not name in `ALSO`
    <rule-name>/fixed     does the same work without it
    <rule-name>/near_*    looks alike and is right
    clean/*               whole pieces of training and inference as good engineers write them

`.py` is a program to record (see record.py). `.txt` is a drawn profile (see tb_tidy_plugin.rulekit.testing.drawn), for
what only a GPU shows; its first lines are comments: `# device: A100`, and `# also: rule-name: why` for what a program
says in `ALSO`.

`TIMED` in a program says why its pattern shows on a quiet machine only. `make test` leaves it out, `make accuracy` and
`make proof` do not. Nor does `make test` record every near miss and clean program: see `few`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypedDict

import pytest

from tb_tidy_plugin.rulekit.testing.drawn import comments

CORPUS = Path(__file__).parent
CLEAN: Final = "clean"

Kind: TypeAlias = Literal["slow", "fixed", "near", "clean"]

KINDS: dict[str, Kind] = {"slow": "slow", "fixed": "fixed"}
EVERY_CLEAN = 3
RANKS_WAIT = "a rank that gets no core makes the others wait"
NEAR = re.compile(r"near_[a-z0-9_]+")


class CorpusError(ValueError):
    """A file of the corpus that is none of its kinds, or says something of itself that cannot be read."""


@dataclass(frozen=True)
class Program:
    """One program of the corpus.

    Attributes:
        path: its file.
        kind: what it is there for.
        rule: the rule that it is about, empty for a clean one.
        also: findings besides that one that are true of it, with the reason.
        ranks: in how many processes it runs.
        timed: why its pattern shows on a quiet machine only, empty where it does not depend on that.
    """

    path: Path
    kind: Kind
    rule: str
    also: Mapping[str, str] = field(default_factory=dict)
    ranks: int = 1
    timed: str = ""

    @property
    def name(self) -> str:
        """Folder and file, which is unique."""
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def is_drawn(self) -> bool:
        """Whether it is a drawn profile, the same at each reading, and no program to record."""
        return self.path.suffix == ".txt"

    @property
    def claims(self) -> frozenset[str]:
        """The rules besides its own that must find something in it, or what `ALSO` says is no longer so."""
        return frozenset(self.also) if self.kind == "slow" else frozenset()

    @property
    def true_of_it(self) -> frozenset[str]:
        """The rules whose findings are no false alarms."""
        return frozenset(self.also) | ({self.rule} if self.kind == "slow" else frozenset())

    def __str__(self) -> str:
        return self.name


def programs(corpus: Path = CORPUS) -> list[Program]:
    """All programs of the corpus, by name.

    Raises:
        CorpusError: a file is none.
    """
    paths = [path for path in corpus.glob("*/*") if path.suffix in {".py", ".txt"} and path.name != "__init__.py"]
    return [_program(path) for path in sorted(paths)]


def few(chosen: Sequence[Program]) -> list[Program]:
    """The programs that `make test` records: by name, the first near miss of each rule and every third clean program.

    All that are slow, fixed or drawn are among them. The others are left to `make proof`.
    """
    near = {each.rule: each for each in reversed(chosen) if each.kind == "near" and not each.is_drawn}
    clean = [each for each in chosen if each.kind == "clean"][::EVERY_CLEAN]
    return [
        each for each in chosen if each.is_drawn or each.kind in {"slow", "fixed"} or each in (*near.values(), *clean)
    ]


def parameters(chosen: Sequence[Program]) -> list[object]:
    """One parameter of a test for each program, marked where `make test` leaves it out."""
    names = {each.name for each in few(chosen)}
    return [pytest.param(each, id=str(each), marks=_marks(each, names)) for each in chosen]


def _marks(program: Program, few: Collection[str]) -> list[pytest.MarkDecorator]:
    if program.timed:
        return [pytest.mark.timed]
    return [] if program.name in few else [pytest.mark.proof]


def _program(path: Path) -> Program:
    given = _drawn(path) if path.suffix == ".txt" else _written(path)
    folder = path.parent.name
    if folder == CLEAN:
        return Program(path, CLEAN, "", **given)
    kind: Kind | None = "near" if NEAR.fullmatch(path.stem) else KINDS.get(path.stem)
    if kind is None:
        raise CorpusError(f"{folder}/{path.name} is neither slow, fixed nor near_*")
    return Program(path, kind, folder, **given)


class _Given(TypedDict, total=False):
    """What a program says of itself."""

    also: dict[str, str]
    ranks: int
    timed: str


def _written(path: Path) -> _Given:
    """`ALSO`, `RANKS` and `TIMED` of a program, read without running it: that would import torch."""
    given: dict[str, object] = {"ALSO": {}, "RANKS": 1, "TIMED": ""}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in given:
            given[node.targets[0].id] = ast.literal_eval(node.value)
    also, ranks, timed = given["ALSO"], given["RANKS"], given["TIMED"]
    if not isinstance(also, dict) or not isinstance(ranks, int) or not isinstance(timed, str):
        raise CorpusError(f"{path.parent.name}/{path.name}: ALSO is a dict of reasons, RANKS a number, TIMED a reason")
    return {"also": also, "ranks": ranks, "timed": timed or (RANKS_WAIT if ranks > 1 else "")}


def _drawn(path: Path) -> _Given:
    also = {}
    for key, value in comments(path.read_text(encoding="utf-8")):
        if key == "also":
            rule, _, reason = value.partition(":")
            also[rule.strip()] = reason.strip()
    return {"also": also}
