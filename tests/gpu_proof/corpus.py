"""The pairs of programs for a GPU: what each file of `pairs/` says of itself.

    pairs/<name>/slow.py      holds the pattern
    pairs/<name>/fixed.py     computes the same without it

Both are modules with `build(device, size) -> step`: a function that sets everything up and returns the function that
makes one step, whose result must be equal in both. The slow one defines

- `RULE`: the rule that finds the pattern, empty where none does;
- `CAUSE`: the cause of the ledger whose time the fix takes off most;
- `SIZES`: what `build` takes, by name: `tiny` for rehearsals, then `small`, where the host is the bottleneck, `middle`,
  and `large`, where the device is;
- `TOLERANCE`: how far results may differ, relative to the largest, where it is not `USUAL_TOLERANCE`;
- `CPU`: why both programs take the same time on a CPU, where they do.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["slow", "fixed"]

FOLDER = Path(__file__).parent / "pairs"
KINDS: tuple[Kind, ...] = ("slow", "fixed")
SIZES = ("small", "middle", "large")
REHEARSED = "tiny"
USUAL_TOLERANCE = 1e-4


class PairError(ValueError):
    """A pair that does not say of itself what it must."""


@dataclass(frozen=True)
class Pair:
    """Two programs that compute the same. The docstring of this module names what they define."""

    name: str
    title: str
    rule: str
    cause: str
    sizes: dict[str, object]
    tolerance: float = USUAL_TOLERANCE
    cpu: str = ""

    def module(self, kind: Kind) -> str:
        """The name by which a program is imported."""
        return f"tests.gpu_proof.pairs.{self.name}.{kind}"

    def path(self, kind: Kind) -> Path:
        """The file of a program."""
        return FOLDER / self.name / f"{kind}.py"


def pairs(folder: Path = FOLDER) -> Sequence[Pair]:
    """All pairs, by name, read without running them.

    Raises:
        PairError: a pair lacks a program, a size, its rule or its cause.
    """
    return [
        _pair(path)
        for path in sorted(folder.iterdir())
        if path.is_dir() and path.name.isidentifier() and path.name[0] != "_"
    ]


def _pair(folder: Path) -> Pair:
    said: dict[str, object] = {}
    missing = [kind for kind in KINDS if not (folder / f"{kind}.py").is_file()]
    if missing:
        raise PairError(f"{folder.name} has no {missing[0]}.py")
    tree = ast.parse((folder / "slow.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                said[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    rule, cause, sizes = said.get("RULE"), said.get("CAUSE"), said.get("SIZES")
    tolerance, cpu = said.get("TOLERANCE", USUAL_TOLERANCE), said.get("CPU", "")
    if not isinstance(rule, str) or not isinstance(cause, str) or not isinstance(cpu, str):
        raise PairError(f"{folder.name}: RULE, CAUSE and CPU are texts")
    if not isinstance(sizes, dict) or list(sizes) != [REHEARSED, *SIZES] or not isinstance(tolerance, float):
        raise PairError(f"{folder.name}: SIZES are {REHEARSED}, {', '.join(SIZES)}; TOLERANCE is a number")
    title = (ast.get_docstring(tree) or "").partition("\n")[0].rstrip(".")
    return Pair(folder.name, title, rule, cause, sizes, tolerance, cpu)
