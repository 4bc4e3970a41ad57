"""What a recording shows of a function's body: the children of its frame, in order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.automaton import Site
from tb_tidy_plugin.sources.frames import FRAME
from tb_tidy_plugin.trace.columns import Category

Kind: TypeAlias = Literal["operator", "built_in", "python", "module", "annotation"]

BUILT_IN = re.compile(r"<built-in (?:method|function) (?P<name>\S+?)(?: of (?P<owner>.+?) object at 0x\w+)?>")
MODULE = re.compile(r"nn\.Module: (?P<kind>.+?)_\d+")
DEEPEST, WIDEST = 5, 40

WRAPPERS = frozenset({"wrapper", "inner", "decorate_context", "_fn", "wrapped", "_no_grad_wrapper", "__call__", "_wrapped_call_impl", "_call_impl", "decorate_autocast", "<lambda>", "_use_grad", "_wrapped", "fn", "decorate"})


@dataclass(frozen=True, slots=True)
class Observation:
    """One child of a frame. `below` are names of what runs inside a Python function of a library, nearest first."""

    kind: Kind
    name: str
    owner: str = ""
    below: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()
    own: bool = False


def children_of(profile: Profile, frame: int) -> list[int]:
    """The children of a frame in order; those of annotations follow them."""
    found: list[int] = []
    for child in profile.children(frame):
        found.append(child)
        if profile.category(child) is Category.ANNOTATION:
            found += children_of(profile, child)
    return found


def observation_of(profile: Profile, row: int) -> Observation:
    name, category = profile.table.names[profile.table.name[row]], profile.category(row)
    if category is Category.OPERATOR:
        inputs = profile.inputs(row)
        return Observation("operator", profile.name(row).removeprefix("aten::"), types=tuple(inputs.dtypes), scalars=tuple(inputs.concrete))
    if match := BUILT_IN.match(name):
        return Observation("built_in", match["name"], owner=match["owner"] or "")
    if match := MODULE.match(name):
        return Observation("module", match["kind"])
    if match := FRAME.fullmatch(name):
        below = () if match["function"] not in WRAPPERS else tuple(_below(profile, row))
        return Observation("python", match["function"].rsplit(".", 1)[-1], owner=f"{match['file']}:{match['line']}", below=below)
    return Observation("annotation", name)


def _below(profile: Profile, row: int) -> list[str]:
    """Names of Python functions, built-ins and operators in a call, level by level."""
    level, found = [row], []
    for _ in range(DEEPEST):
        level = [child for above in level for child in profile.children(above)][:WIDEST]
        for child in level:
            observed = FRAME.fullmatch(text := profile.table.names[profile.table.name[child]])
            built_in = BUILT_IN.match(text)
            module = MODULE.match(text)
            found.append(observed["function"] if observed else built_in["name"] if built_in else module["kind"] if module else profile.name(child).removeprefix("aten::"))
    return found


def cost_of(site: Site, seen: Observation) -> float | None:
    """How surprising it is that `site` shows up as `seen`; None where it cannot."""
    match seen.kind:
        case "operator":
            return _operator_cost(site, seen)
        case "annotation":
            return 0.1 if site.kind in {"call", "iteration"} and _annotates(site, seen.name) else None
        case "module":
            return _module_cost(site, seen)
        case _:
            return _function_cost(site, seen)


def _annotates(site: Site, name: str) -> bool:
    return True


def _operator_cost(site: Site, seen: Observation) -> float | None:
    if seen.name not in site.operators:
        return None
    cost = 0.0
    if site.kind == "operator" and seen.types:
        scalar = next((kind for kind in seen.types[1:2] if kind in {"double", "long int", "bool", "Scalar"}), "")
        if site.literal:
            cost += 0.0 if site.literal in seen.types or "Scalar" in seen.types[:2] else 1.2
        elif scalar in {"double"}:
            cost += 0.3
    if site.kind == "subscript" and site.literal and seen.name == "select" and len(seen.scalars) > 2:
        cost += 0.0 if seen.scalars[2] == site.literal else 1.5
    return cost


def _module_cost(site: Site, seen: Observation) -> float | None:
    if site.kind not in {"call", "iteration"} or site.anything is None:
        return None
    kind = seen.name.lower()
    for name in site.names:
        plain = re.sub(r"[^a-z]", "", name.lower())
        if plain and (plain in kind or kind in plain):
            return 0.2
    return 0.2 + site.anything * 0.7


def _function_cost(site: Site, seen: Observation) -> float | None:
    if seen.name in site.names:
        return 0.0
    for depth, name in enumerate(seen.below):
        if name in site.names:
            return 0.2 + 0.005 * depth
    if site.kind == "call" and seen.name == "__init__":
        if any(name[:1].isupper() or name.lstrip("_")[:1].isupper() for name in site.names):
            return 0.05 if any(name.lower() in seen.owner.lower() for name in site.names) else 0.15
        return 0.6 if site.anything is not None else None
    if site.kind == "call" and seen.name in {"__new__", "__call__", "forward"} and site.anything is not None:
        return 0.5
    if site.anything is None or (site.kind == "iteration" and seen.kind == "built_in"):
        return None
    return site.anything + 0.3
