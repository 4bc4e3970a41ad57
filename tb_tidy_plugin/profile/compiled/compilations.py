"""Compilations, and compiled code that runs in pieces: `torch.compile`, Triton, TorchScript, Numba and others.

Each call of code that `torch.compile` made is an operator `Torch-Compiled Region: 2/1`: the third function compiled, in
its second variant. Where Dynamo cannot go on it breaks the graph: the region runs the code before the break, Python
runs the code that Dynamo could not compile, and the rest is compiled as a function of its own,
`torch_dynamo_resume_in_forward_at_13`, whose region lies inside the broken one. So a region inside another one is a
piece of it. It costs a look-up of its guards and the prologues of its graph. (Seen in recordings of torch 2.13; the
prologues have names since 2.6.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.events.intervals import Intervals, Spans, positions_of_each
from tb_tidy_plugin.profile.host.transfers import OF_ONE_ELEMENT
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.training import gradients_of
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.compiled_code import CompilerReason
from tb_tidy_plugin.trace.sets import common, united, without

_Part: TypeAlias = Literal["region", "lookup", "pregraph", "prologue", "graph", "operator"]

COMPILED_PARTS: dict[_Part, str] = {
    "region": r"^Torch-Compiled Region\b",
    "lookup": r"^TorchDynamo Cache Lookup$",
    "pregraph": r"^Pregraph bytecode$",
    "prologue": r"^AOTDispatcher Runtime Wrapper Prologue$",
    "graph": r"^CompiledFunction$|^## Call CompiledFxGraph ",
}
RESUMED = re.compile(r"torch_dynamo_resume_in_.{1,500}_at_\d+$")
DYNAMO_FRAME = re.compile(r"(?:^|/)torch/_dynamo/eval_frame\.py\(\d+\): (?:compile_wrapper|_fn)$")
GRAPH_CALL = "## Call CompiledFxGraph "
COMPILING = r"^(?:dynamo|entire_frame_compile|entire_backward_compile)$|\(dynamo_timed\)$"
GUARD_OF = re.compile(r"^\d+/\d+: ")
LONGEST_REASON = 300
COMPILE_ID = re.compile(r"compile_id=(?:!\d+/)?(?P<function>\d+)/(?P<variant>\d+)")

Builder: TypeAlias = Literal["Triton", "Triton's autotuner", "TorchScript", "NVRTC", "Numba", "a C++ extension"]

BUILDERS: Mapping[Builder, str] = {
    "Triton": r"(?:^|/)triton/compiler/compiler\.py\(\d+\): compile$",
    "Triton's autotuner": r"(?:^|/)triton/runtime/autotuner\.py\(\d+\): _bench$",
    "TorchScript": r"(?:^|/)torch/jit/(?:_script\.py\(\d+\): script|_trace\.py\(\d+\): trace)$",
    "NVRTC": r"(?:^|/)torch/cuda/_utils\.py\(\d+\): _nvrtc_compile$",
    "Numba": r"(?:^|/)numba/(?:core|cuda)/dispatcher\.py\(\d+\): (?:_compile_for_args|compile)$",
    "a C++ extension": r"(?:^|/)torch/utils/cpp_extension\.py\(\d+\): _jit_compile$",
}
"""Frames of each builder. Lookups in a cache of earlier builds are excluded: they take less than a millisecond."""

BUILDS = re.compile("|".join(BUILDERS.values()))


class Compilation(msgspec.Struct, frozen=True):
    """One run of the compiler, for a function or for its backward pass.

    Attributes:
        row: the outermost event of the compiler.
        function: Dynamo's number of the function, empty if the trace has none.
        variant: 0 for the first compilation of the function, `ABSENT` if the trace has no numbers.
    """

    row: int
    function: str
    variant: int


class CodePiece(msgspec.Struct, frozen=True):
    """Compiled code that runs separately because the code around it was broken.

    Attributes:
        region: row of its region.
        parent: row of the region it lies in.
        resumed: row of the frame that resumes after a break; `ABSENT` for a function that the broken code calls, and
            without stacks.
        gap: the rows between the graph before the piece and the piece, with what broke the graph.
        overhead: its look-up and its prologues, which unbroken code would not need.
        eager: operators that ran in the gap.
        graphs: events of its graph, for autograd a single operator.
        inside: spans of other pieces in it, each with the gap before it; starts and ends in ns.
    """

    region: int
    parent: int
    resumed: int
    gap: range
    overhead: tuple[int, ...]
    eager: tuple[int, ...]
    graphs: tuple[int, ...] = ()
    inside: tuple[tuple[int, int], ...] = ()


class BrokenCall(msgspec.Struct, frozen=True):
    """One call of compiled code that ran in pieces: its region and the pieces inside, in order."""

    region: int
    pieces: tuple[CodePiece, ...]

    @property
    def causes(self) -> list[CodePiece]:
        """The pieces that resume after a break of their own, in order; the first piece if none is known to.

        A break in a function also breaks its callers, so a piece that resumes after a call with pieces of its own is
        not a cause; nor are functions that would have been part of the graph but are compiled separately.
        """
        callers = {piece.parent for piece in self.pieces if piece.resumed < 0}
        causes = [piece for piece in self.pieces if piece.resumed >= 0 and piece.parent not in callers]
        return causes or list(self.pieces[:1])


class _Region(msgspec.Struct):
    """A region under construction, with what was seen in it so far."""

    row: int
    parent: int = ABSENT
    gap_start: int = ABSENT
    pregraph: bool = False
    graph: bool = False
    lookup: tuple[int, ...] = ()
    gap: range = range(0)
    overhead: list[int] = msgspec.field(default_factory=list)
    eager: list[int] = msgspec.field(default_factory=list)
    graphs: list[int] = msgspec.field(default_factory=list)
    inside: list[tuple[int, int]] = msgspec.field(default_factory=list)
    went_on_ns: int = 0


def compilations(profile: Profile) -> list[Compilation]:
    """All compilations, thread by thread; nested ones are part of the outermost.

    Nested by time: with stacks, the tree ends an event that Python opened together with the built-in that opened it.
    """
    table, rows = profile.table, profile.matching(COMPILING, Category.OPERATOR)
    outermost = rows[:0]
    for here in positions_of_each(table.thread[rows]):
        ours = rows[here]
        ours = ours[np.lexsort((-table.end_ns[ours], table.start_ns[ours]))]
        reach = np.append(ABSENT, np.maximum.accumulate(table.end_ns[ours]))[:-1]
        outermost = np.append(outermost, ours[table.end_ns[ours] > reach])
    marks = profile.matching(COMPILE_ID.pattern, Category.ANNOTATION, Category.OPERATOR)
    marks = marks[np.argsort(table.start_ns[marks], kind="stable")][::-1]  # the first of several is written last
    around = profile.covering(marks, outermost).tolist()
    first_mark = dict(zip(around, marks.tolist(), strict=True))
    return [_compilation(profile, row, first_mark.get(row)) for row in outermost.tolist()]


def break_reasons(profile: Profile) -> Mapping[tuple[str, int], str]:
    """Reasons for graph breaks in Dynamo's words, by file and line, if a capture recorded them."""
    code = profile.metadata.captured.compiled
    return {(each.file, each.line): _short(each.reason) for each in (code.breaks if code else ())}


def recompile_reasons(profile: Profile) -> Mapping[str, str]:
    """The guard that failed before each compilation of a variant, by `2/1`, if a capture recorded it."""
    code = profile.metadata.captured.compiled
    return {each.id: _short(GUARD_OF.sub("", each.reason)) for each in (code.recompiles if code else ())}


def skip_reasons(profile: Profile) -> Mapping[str, CompilerReason]:
    """Reasons why functions run without the CUDA graphs asked for, by `2/1`, if a capture recorded them."""
    code = profile.metadata.captured.compiled
    skips = code.skips if code else ()
    return {each.id: msgspec.structs.replace(each, reason=_short(each.reason)) for each in skips}


def _short(reason: str) -> str:
    return reason[:LONGEST_REASON].rstrip(". ")


def _compilation(profile: Profile, row: int, mark: int | None) -> Compilation:
    named = COMPILE_ID.search(profile.name(mark)) if mark is not None else None
    return Compilation(row, named["function"], int(named["variant"])) if named else Compilation(row, "", ABSENT)


def broken_calls(profile: Profile) -> Iterator[BrokenCall]:
    """Calls of compiled code that ran in pieces, in row order."""
    regions, last = profile.matching(COMPILED_PARTS["region"], Category.OPERATOR), profile.tree.last_descendant
    if not profile.inside(regions)[regions].any():
        return
    marks = _marks(profile, regions)
    rows = np.array([row for row, _ in marks], np.int64)
    for region in regions[~profile.inside(regions)[regions]].tolist():
        first, end = np.searchsorted(rows, [region, last[region] + 1]).tolist()
        if pieces := tuple(_pieces(profile, marks[first:end])):
            yield BrokenCall(region, pieces)


def whole_calls(profile: Profile) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Calls of compiled code without graph breaks, in row order.

    Each has the row of its region, and the rows of its overhead: its look-up and its prologues.
    """
    regions, tree = profile.matching(COMPILED_PARTS["region"], Category.OPERATOR), profile.tree
    found = dict[int, _Part]()
    for part in ("lookup", "pregraph", "prologue"):
        found |= dict.fromkeys(
            profile.matching(COMPILED_PARTS[part], Category.OPERATOR, Category.ANNOTATION).tolist(), part
        )
    rows = np.array(sorted(found), np.int64)
    is_inside = profile.inside(regions)
    nearest = np.searchsorted(regions, regions, side="right")
    for at, region in zip(nearest.tolist(), regions.tolist(), strict=True):
        last = int(tree.last_descendant[region])
        if is_inside[region] or (at < len(regions) and regions[at] <= last):
            continue
        first, end = np.searchsorted(rows, [region, last + 1]).tolist()
        before = int(rows[first - 1]) if first else ABSENT
        is_lookup = before != ABSENT and found[before] == "lookup" and tree.parent[before] == tree.parent[region]
        yield region, tuple(rows[first - is_lookup : end].tolist())


def time_around(profile: Profile, region: int, rows: Sequence[int]) -> Spans:
    """Spans of a whole call before its first operator and after its last one, as starts and ends in ns.

    Args:
        profile: contains the call.
        region, rows: as `whole_calls` yields them. Dynamo's frame around the region belongs to it.
    """
    frames = (row for row in profile.ancestors(region) if DYNAMO_FRAME.search(profile.name(row)))
    whole = (next(frames, region), region, *rows)
    start_ns, end_ns = min(map(profile.start_ns, whole)), max(map(profile.end_ns, whole))
    below = np.arange(region + 1, int(profile.tree.last_descendant[region]) + 1)
    work = below[profile.table.is_named(_runs)[below]]
    if not len(work):
        return ((start_ns, end_ns),)
    first_ns, last_ns = int(profile.table.start_ns[work].min()), int(profile.table.end_ns[work].max())
    return ((start_ns, first_ns), (last_ns, max(end_ns, last_ns)))


def is_lookup(profile: Profile, row: int) -> bool:
    """True if an event looks up the variant of a compiled function, which evaluates guards."""
    return re.search(COMPILED_PARTS["lookup"], profile.name(row)) is not None


def _marks(profile: Profile, regions: Rows) -> list[tuple[int, _Part]]:
    """The parts of calls of compiled code, in row order."""
    parts: dict[int, _Part] = {}
    for part, pattern in COMPILED_PARTS.items():
        parts |= dict.fromkeys(profile.matching(pattern, Category.OPERATOR, Category.ANNOTATION).tolist(), part)
    if "pregraph" in parts.values():  # before PyTorch 2.6 nothing distinguishes operators of a graph from others
        parts |= dict.fromkeys(_eager_operators(profile, regions, parts), "operator")
    return sorted(parts.items())


def _eager_operators(profile: Profile, regions: Rows, parts: Mapping[int, _Part]) -> Iterator[int]:
    """Operators in regions that neither another operator nor a graph runs."""
    is_operator = profile.inside(regions) & (profile.table.category == Category.OPERATOR)
    graphs = np.array([row for row, part in parts.items() if part == "graph"], np.int64)
    rows = without(united(np.flatnonzero(is_operator), graphs), regions)
    reach = np.maximum.accumulate(profile.tree.last_descendant[rows])
    rows = rows[rows > np.append(ABSENT, reach)[: len(rows)]]
    in_graph = profile.covered(graphs).containing(profile.table.start_ns[rows])  # by time, since annotations end early
    for row in rows[~in_graph].tolist():
        if row not in parts and _works(profile.name(row)):
            yield row


def _pieces(profile: Profile, marks: Sequence[tuple[int, _Part]]) -> Iterator[CodePiece]:
    """The pieces of one call, in order of start; the first of `marks` is the call's region."""
    first = marks[0][0]
    last, found, eager = profile.tree.last_descendant, [_Region(first, went_on_ns=profile.start_ns(first))], list[int]()
    around = found[:]
    for row, part in marks[1:]:
        while last[around[-1].row] < row:
            around.pop()
        here = around[-1]
        if part == "region":
            gap = range(max(here.gap_start, here.row) + 1, row)
            found.append(_Region(row, here.row, gap=gap, overhead=[*here.lookup], eager=eager))
            around.append(found[-1])
            here.inside.append((here.went_on_ns, profile.end_ns(row)))
            here.went_on_ns, found[-1].went_on_ns = profile.end_ns(row), profile.start_ns(row)
            here.lookup, here.gap_start, eager = (), int(last[row]), []
        elif part == "lookup":
            here.lookup = (row,)
        elif part == "operator":
            eager += [row] if here.graph or not here.pregraph else []
        else:
            here.gap_start, here.went_on_ns = int(last[row]), profile.end_ns(row)
            here.pregraph |= part == "pregraph"
            here.graph |= part == "graph"
            (here.graphs if part == "graph" else here.overhead).append(row)
    found[-1].eager += eager
    for region in found[1:]:
        yield CodePiece(
            region=region.row, parent=region.parent, resumed=_resumed(profile, region.row), gap=region.gap,
            overhead=tuple(region.overhead), eager=tuple(region.eager), graphs=tuple(region.graphs),
            inside=tuple(region.inside),
        )  # fmt: skip


def time_apart(profile: Profile, pieces: Sequence[CodePiece]) -> Intervals:
    """Extra time of running in pieces: their regions and backward nodes, without operators and other pieces.

    That is Python code of Dynamo and AOTAutograd, which wraps each graph; recording lengthens it.
    """
    return reduce(Intervals.plus, (_apart(profile, piece) for piece in pieces), Intervals.none())


def _apart(profile: Profile, piece: CodePiece) -> Intervals:
    nodes = gradients_of(profile, piece.graphs)
    whole = profile.covered(np.array([piece.region, *nodes], np.int64))
    others = np.array(piece.inside, np.int64).reshape(-1, 2)
    work = profile.covered(np.concatenate([_operators_in(profile, row) for row in (piece.region, *nodes)]))
    return whole.minus(work.plus(Intervals.union(others[:, 0], others[:, 1]))).minus(profile.device_busy)


def _operators_in(profile: Profile, row: int) -> Rows:
    """Operators below a row that compute something."""
    below = np.arange(row + 1, int(profile.tree.last_descendant[row]) + 1)
    return below[profile.table.is_named(_works)[below]]


def _works(name: str) -> bool:
    """True for an operator of PyTorch that computes something; reading an element back only waits."""
    return name.startswith(aten.PREFIX) and aten.without_overload(name) not in OF_ONE_ELEMENT


def _runs(name: str) -> bool:
    """True for an operator that computes something, or a graph that Inductor compiled."""
    return _works(name) or name.startswith(GRAPH_CALL)


def _resumed(profile: Profile, region: int) -> int:
    """The frame that a region runs first if it resumes after a break."""
    first = region + 1
    runs = region < profile.tree.last_descendant[region] and profile.category(first) is Category.PYTHON
    return first if runs and RESUMED.search(profile.name(first)) else ABSENT


def builds(profile: Profile) -> Mapping[Builder, Rows]:
    """The outermost frames of each builder, in row order, without those that `torch.compile` runs."""
    frames = profile.matching(BUILDS.pattern, Category.PYTHON)
    if not len(frames):
        return {}
    compiling = profile.covered(rows_of(each.row for each in compilations(profile)))
    is_own = ~profile.inside(frames)[frames] & ~compiling.containing(profile.table.start_ns[frames])
    outermost = frames[is_own]
    found = dict[Builder, Rows]()
    for builder, frame in BUILDERS.items():
        if len(rows := common(outermost, profile.matching(frame, Category.PYTHON))):
            found[builder] = rows
    return found
