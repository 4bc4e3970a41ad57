"""Recorded children of a function's frame in order, and how well a site in the source explains each."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, islice
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.profile.compiled.operators import spans_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.emissions import IN_PYTHON
from tb_tidy_plugin.sources.frames import FRAME
from tb_tidy_plugin.sources.sites import Called, Site
from tb_tidy_plugin.trace.columns import ABSENT, Category

_Kind: TypeAlias = Literal["operator", "built_in", "python", "module", "annotation"]

_BUILT_IN = re.compile(
    r"<built-in (?:method|function) (?P<name>\S+?)(?: of (?P<owner>\S+)(?: object at .+)?)?>", re.DOTALL
)
_MODULE = re.compile(r"nn\.Module: (?P<name>.+?)_\d+", re.DOTALL)
DEEPEST, WIDEST = 5, 40  # levels below a wrapper, and events of each, that are searched for the callee
MOST_COMPARED = 1 << 13  # events in a call to compare with another call's

_WRAPPERS = frozenset(
    {
        "wrapper", "inner", "decorate_context", "_fn", "wrapped", "_no_grad_wrapper", "__call__", "_wrapped_call_impl",
        "_call_impl", "decorate_autocast", "<lambda>", "_use_grad", "_wrapped", "fn", "decorate",
    }
)  # fmt: skip
"""Wrappers that the recording shows instead of the function that the user called, which they run."""

STRANGERS: dict[Called, frozenset[str]] = {
    "torch": frozenset({"Tensor"}), "python": frozenset({"Tensor", "type"}), "method": frozenset({"", "type"}),
}  # fmt: skip
"""Owners of built-ins that cannot be the callee: functions of torch are methods of a type in its recordings."""

_TENSORS = 2  # the first inputs of an operator of the language

RUN_BY_VARIABLE = 1.4  # of a partial function, or a C function that calls another, only the operator is recorded
OTHER_OWNER, OTHER_OPERATOR = 0.4, 1.2
_EXACT, LIKE, _RARE, OTHER_LITERAL, OTHER_INDEX, NO_LITERAL = 0.0, 0.2, 0.4, 1.2, 1.5, 0.3
OTHER_LINE = 2.0
CLASS_OF_FILE, CLASS, MAYBE_CLASS, CALLED_OBJECT, _UNNAMED = 0.05, 0.15, 0.6, 0.5, 0.3
DEEPER = 0.005


class Observation(msgspec.Struct, frozen=True):
    """One child of a frame.

    Attributes:
        name: of the operator without `aten::`, of the function, of the module's class.
        owner: the file of a Python function, the type whose method a built-in is.
        below: names of what runs inside a wrapper, nearest first.
        types, scalars: arguments of an operator, if recorded.
        line: the line that called it, if recorded.
    """

    kind: _Kind
    name: str
    owner: str = ""
    below: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()
    line: int | None = None


class Observer:
    """The children of a profile's frames as observations."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._by_name: dict[int, Observation] = {}
        self._below_alike: dict[bytes, tuple[str, ...]] = {}
        self._children: dict[int, list[int]] = {}
        self.is_span = spans_of(profile)

    def children(self, frame: int) -> list[int]:
        """The children of a frame in order; children of spans follow them."""
        if frame not in self._children:
            self._children[frame] = list(self._children_of(frame))
        return self._children[frame]

    def _children_of(self, frame: int) -> Iterator[int]:
        end_of = self._profile.tree.last_descendant
        at, last = frame + 1, int(end_of[frame])
        while at <= last:
            yield at
            at = at + 1 if self.is_span[at] else int(end_of[at]) + 1

    def child(self, frame: int, row: int) -> int | None:
        """The child of `frame` that leads to `row`, through spans; None for itself and for spans."""
        children = self.children(frame)
        at = bisect_right(children, row) - 1
        if row == frame or at < 0 or self.is_span[children[at]]:
            return None
        return children[at]

    def observation(self, row: int) -> Observation:
        profile = self._profile
        if profile.category(row) is Category.OPERATOR and not self.is_span[row]:
            inputs = profile.inputs(row)
            name = profile.name(row).removeprefix("aten::")
            return Observation("operator", name, types=tuple(inputs.dtypes), scalars=tuple(inputs.concrete))
        number = int(profile.table.name[row])
        known = self._by_name.get(number)
        if known is None:
            category = Category.ANNOTATION if self.is_span[row] else profile.category(row)
            known = self._by_name[number] = _named(profile.table.names[number], category)
        if known.kind == "python" and known.name in _WRAPPERS:
            known = Observation("python", known.name, known.owner, self._below(row))
        line = int(profile.table.called_from[row])
        return known if line == ABSENT else replace(known, line=line)

    def _below(self, row: int) -> tuple[str, ...]:
        """Names of what runs in a call, level by level; computed once for all calls that run the same."""
        end = int(self._profile.tree.last_descendant[row]) + 1
        if end - row > MOST_COMPARED:
            return self._looked_below(row)
        table = self._profile.table
        digest = blake2b((self._profile.tree.last_descendant[row:end] - row).tobytes(), digest_size=16)
        digest.update(table.name[row:end].tobytes())
        digest.update(table.category[row:end].tobytes())
        alike = digest.digest()
        if alike not in self._below_alike:
            self._below_alike[alike] = self._looked_below(row)
        return self._below_alike[alike]

    def _looked_below(self, row: int) -> tuple[str, ...]:
        profile, level, found = self._profile, [row], list[str]()
        for _ in range(DEEPEST):
            level = [*islice(chain.from_iterable(map(self._directly_below, level)), WIDEST)]
            found += (
                _named(profile.table.names[profile.table.name[child]], profile.category(child)).name for child in level
            )
        return tuple(found)

    def _directly_below(self, row: int) -> Iterator[int]:
        """Same as `Profile.children`, but lazy: a wrapper may run thousands, of which few are needed."""
        end_of = self._profile.tree.last_descendant
        at, last = row + 1, int(end_of[row])
        while at <= last:
            yield at
            at = int(end_of[at]) + 1


@lru_cache(maxsize=1 << 12)  # a step runs the same few things
def _named(name: str, category: Category) -> Observation:
    if category is Category.OPERATOR:
        return Observation("operator", name.removeprefix("aten::"))
    if match := _BUILT_IN.fullmatch(name):
        return Observation("built_in", match["name"], match["owner"] or "")
    if match := _MODULE.fullmatch(name):
        return Observation("module", match["name"])
    if match := FRAME.fullmatch(name):
        return Observation("python", match["function"].rsplit(".", 1)[-1], match["file"].lower())
    return Observation("annotation", name)


def cost_of(site: Site, seen: Observation) -> float | None:
    """Cost of `site` appearing as `seen`, higher if that is surprising; None if it cannot.

    Recorded lines of calls keep neighbours without one in place. They are not a condition: Python before 3.11 gives
    calls over several lines another line.
    """
    cost = _cost_by_name(site, seen)
    is_elsewhere = seen.line is not None and not site.line <= seen.line <= site.end_line
    return cost if cost is None or not is_elsewhere else cost + OTHER_LINE


def _cost_by_name(site: Site, seen: Observation) -> float | None:
    match seen.kind:
        case "operator":
            return _operator_cost(site, seen)
        case "annotation":
            return LIKE if site.kind in {"call", "iteration"} else None
        case "module":
            return _module_cost(site, seen)
        case _:
            return _function_cost(site, seen)


def _operator_cost(site: Site, seen: Observation) -> float | None:
    """Literals distinguish operators of one name: `x * 0.5` shows a `double`, `x[0]` its index."""
    if seen.name not in site.operators:
        if seen.name in site.rarely:
            return _RARE
        return RUN_BY_VARIABLE if site.calls == "variable" else None
    if site.kind == "operator" and seen.types:
        if site.literal:
            return _EXACT if site.literal in seen.types or "Scalar" in seen.types[:_TENSORS] else OTHER_LITERAL
        return NO_LITERAL if "double" in seen.types[1:_TENSORS] else _EXACT
    if site.kind == "subscript" and site.literal and seen.name in {"select", "slice"}:
        known = zip(site.literal.split(":"), seen.scalars[_TENSORS:], strict=False)
        return _EXACT if all(literal in {"", scalar} for literal, scalar in known) else OTHER_INDEX
    return _EXACT


def _module_cost(site: Site, seen: Observation) -> float | None:
    """The source does not show the class of an attribute; names are often similar (`self.conv1`, `Conv2d`)."""
    if site.kind not in {"call", "iteration"} or site.anything is None:
        return None
    kind = seen.name.lower()
    plain = (re.sub(r"[^a-z]", "", name.lower()) for name in site.names)
    is_alike = any(name and (name in kind or kind in name) for name in plain)
    return LIKE if is_alike else LIKE + 0.7 * site.anything


def _function_cost(site: Site, seen: Observation) -> float | None:
    if seen.name in site.names:
        return _same_name_cost(site, seen)
    below = seen.below if site.kind == "call" else ()
    depth = next((depth for depth, name in enumerate(below) if name in site.names), None)
    if depth is not None:
        return LIKE + DEEPER * depth
    if site.kind == "call" and seen.name == "__init__":
        return _constructor_cost(site, seen)
    if site.anything is None or (site.kind == "iteration" and seen.kind == "built_in"):
        return None
    if site.kind == "call" and seen.name in {"__new__", "__call__", "forward"}:
        return CALLED_OBJECT
    return site.anything + _UNNAMED


def _same_name_cost(site: Site, seen: Observation) -> float:
    """Owners distinguish `sum(x)`, `torch.sum(x)` and `x.sum()`; what they run distinguishes `x ** 2` and `1 - x`."""
    if seen.name == IN_PYTHON and site.kind == "operator" and seen.below:
        return _EXACT if not site.operators.isdisjoint(seen.below) else OTHER_OPERATOR
    if seen.kind != "built_in":
        return _EXACT
    strangers = STRANGERS.get(site.calls)
    return OTHER_OWNER if strangers is not None and seen.owner in strangers else _EXACT


def _constructor_cost(site: Site, seen: Observation) -> float | None:
    if any(name.lstrip("_")[:1].isupper() for name in site.names):
        return CLASS_OF_FILE if any(name.lower() in seen.owner for name in site.names) else CLASS
    return None if site.anything is None else MAYBE_CLASS
