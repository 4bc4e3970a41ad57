"""Lines behind the kernels that `torch.compile` generates: recorded during compilation, and stored beside its cache.

`install` wraps functions of PyTorch that run once per compiled graph or kernel. No setting of Inductor changes,
so its cache stays valid, and recorded steps run as before. If a version of PyTorch lacks one of the functions, only
the lines that need it are missing.

A kernel is recorded by the names of the nodes of Dynamo's graph that it computes. A graph from Inductor's cache brings
its notes from `torchtidy/` in the cache's folder. The lines are those of the graph that Dynamo has just traced: they
are right after an edit that moved the code, and for functions that share one cached graph.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial, wraps
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from tb_tidy_plugin.capture.guarded import MOST_ERROR_CHARACTERS, unless_it_fails
from tb_tidy_plugin.system.files import write_whole
from tb_tidy_plugin.system.private import opened

if TYPE_CHECKING:
    from torch._dynamo.output_graph import OutputGraph
    from torch._inductor.graph import GraphLowering
    from torch._inductor.ir import ExternKernel
    from torch._inductor.output_code import CompiledFxGraph
    from torch._inductor.pattern_matcher import Match
    from torch._inductor.scheduler import BaseSchedulerNode
    from torch.fx import GraphModule, Node

P = ParamSpec("P")
_R = TypeVar("_R")

DYNAMO, UTILS = "torch._dynamo.output_graph", "torch._dynamo.utils"
OF_INDUCTOR = (
    "torch._inductor.debug", "torch._inductor.output_code", "torch._inductor.pattern_matcher",
    "torch._inductor.cudagraph_utils",
)  # fmt: skip
NOTE = "set_kernel_post_grad_provenance_tracing"
SKIPPED = "log_cudagraph_skip_and_bump_counter"
_FOLDER = "torchtidy"
_VERSION = 1
MOST_REGIONS = 4096
"""Most compiled functions whose graphs are kept in memory, usually a few kilobytes each."""

SOURCE_FRAME = re.compile(r'^  File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>.+)$', re.MULTILINE)
MAJOR = re.compile(r"mm\b|conv|linear|attention|softmax")
EXPLANATION = re.compile(r"^\s*Explanation: (.+)$", re.MULTILINE)
SKIP = re.compile(
    r"^(?:(?:skipping|disabling) cudagraphs?(?: for backward)? due to )*(?P<reason>.*?):?[. ]*(?:Found from ?:.*)?$",
    re.DOTALL,
)
FOLDER_OF_FILE = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?[\\/](?:[^\s`'\"\\/]+[\\/])+")
_KEY = re.compile(r"[a-z0-9]{1,100}")
ORIGINS = "tidy_origins"
ADDED = "Gradient addition node due to multiple use of tensor around:"
"""Ends the stack of an addition that autograd makes of two gradients; the stack is that of a use of the tensor."""

THEN = "its lines are unknown"

_Names: TypeAlias = tuple[str, ...]
"""Names of nodes of Dynamo's graph, any of which may be the source of a node in the generated graph."""

Origin: TypeAlias = tuple[str, str, _Names]
"""Operator and stack of a node, and the names of its sources."""

_Stack: TypeAlias = tuple[tuple[str, int, str], ...]
"""File, line and function of each frame, outermost first."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel that a generated graph calls; the first of its `nodes` decides which line is shown first."""

    kernel: str
    nodes: tuple[_Names, ...]


@dataclass(slots=True)
class GeneratedGraph:
    """A generated graph; `launches` in the order of its calls, None if it came from a cache without notes."""

    key: str
    is_backward: bool
    launches: tuple[Launch, ...] | None


@dataclass(slots=True)
class Region:
    """One compilation of a function, or of its rest after a break.

    Attributes:
        function: its name.
        stacks: stack of each node of Dynamo's graph, as text.
        names: names of the nodes with a stack.
        graphs: the generated graphs.
        making: launches of graphs that are being generated, with the graph.
        skipped: Inductor's reason why it runs without the CUDA graphs asked for; empty without a reason.
    """

    function: str
    stacks: dict[str, str]
    names: dict[str, _Names]
    graphs: list[GeneratedGraph] = field(default_factory=list)
    making: list[tuple[GraphLowering, list[Launch]]] = field(default_factory=list)
    skipped: str = ""


_regions: dict[str, Region] = {}
_came_late = DYNAMO in sys.modules
"""True if code may have been compiled before this was imported."""


def note_compilations() -> None:
    """Records all compilations from now on; does nothing until `torch.compile` is used."""
    if DYNAMO in sys.modules:
        _wrap_dynamo(sys.modules[DYNAMO])
    elif not any(isinstance(finder, _WhenImported) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WhenImported())


class _WhenImported(MetaPathFinder):
    """Waits for the import of the wrapped module of Dynamo, and removes itself then."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The answer of the other finders, with a loader that wraps the module once it is loaded."""
        if name != DYNAMO:
            return None
        with suppress(ValueError):
            sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            unless_it_fails("compiled code", partial(_wrap_loader, spec.loader), THEN)
        return spec


def _wrap_loader(loader: Loader) -> None:
    original = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        original(module)
        _wrap_dynamo(module)

    loader.exec_module = exec_module  # type: ignore[method-assign] # of this one loader


def _wrap_dynamo(module: ModuleType) -> None:
    _wrap(getattr(module, "OutputGraph", None), "call_user_compiler", lambda self, gm, *_: _begin(self, gm))


def _wrap(owner: object, name: str, note: Callable[..., Callable[[], None] | None]) -> None:
    """Passes a function's arguments to `note` before each call, and runs its result after the call."""
    original = getattr(owner, name, None)
    if original is not None and not hasattr(original, "tidy_note"):
        setattr(owner, name, _noted(original, note))


def _noted(original: Callable[P, _R], note: Callable[..., Callable[[], None] | None]) -> Callable[P, _R]:
    @wraps(original)
    def wrapped(*arguments: P.args, **named: P.kwargs) -> _R:
        after = unless_it_fails("a compiled graph", lambda: note(*arguments, **named), THEN)
        try:
            return original(*arguments, **named)
        finally:
            if after is not None:
                unless_it_fails("a compiled graph", after, THEN)

    wrapped.tidy_note = note  # type: ignore[attr-defined] # marks it
    return wrapped


def _begin(output: OutputGraph, graph: GraphModule) -> None:
    """Records the lines of the nodes when Dynamo has traced a function."""
    _wrap_inductor()
    if (ident := _compile_id()) is None or len(_regions) >= MOST_REGIONS:
        return
    stacks = dict(_stacks(graph))
    names: dict[str, _Names] = {}
    for name, stack in stacks.items():
        names[stack] = (*names.get(stack, ()), name)
    _regions[ident] = Region(output.root_tx.f_code.co_name, stacks, names)


def _stacks(graph: GraphModule) -> Iterator[tuple[str, str]]:
    """Name and stack of each node, including those of graphs inside, such as bodies of `autograd.Function`."""
    for prefix, module in graph.named_modules():
        for node in getattr(getattr(module, "graph", None), "nodes", ()):
            if node.op.startswith("call_") and (stack := node.meta.get("stack_trace")):
                yield f"{prefix}.{node.name}" if prefix else node.name, stack


def _wrap_inductor() -> None:
    """Wraps Inductor's functions for each kernel, graph, replaced pattern, and graph that skips CUDA graphs."""
    if "torch._inductor" not in sys.modules:
        return
    modules = (unless_it_fails("a compiled graph", partial(import_module, name), THEN) for name in OF_INDUCTOR)
    debug, code, patterns, graphs = modules
    _wrap_everywhere(debug, NOTE, lambda schedule, kernel=None, *_, **__: _note(schedule, kernel))
    _wrap_everywhere(graphs, SKIPPED, lambda message, *_, **__: _note_skip(message))
    _wrap(getattr(code, "CompiledFxGraph", None), "post_compile", lambda graph, *_, **__: _finish(graph))
    for name, entry in vars(patterns).items() if patterns else ():
        if name.endswith("PatternEntry"):
            _wrap(entry, "apply", lambda _, match, graph, node: _replacing(match, node))


def _wrap_everywhere(owner: object, name: str, note: Callable[..., None]) -> None:
    """Wraps a function that modules of Inductor have under its name; later imports find it wrapped."""
    original = getattr(owner, name, None)
    if original is None or hasattr(original, "tidy_note"):
        return
    _wrap(owner, name, note)
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("torch._inductor.") and vars(module).get(name) is original:
            setattr(module, name, getattr(owner, name))


def _compile_id() -> str | None:
    from torch._guards import CompileContext

    ident = CompileContext.current_compile_id()
    return None if ident is None else str(ident)


def _note(schedule: ExternKernel | Sequence[BaseSchedulerNode], kernel: str | None) -> None:
    """Records what a kernel computes when Inductor writes its call."""
    from torch._inductor.virtualized import V

    region = _regions.get(_compile_id() or "")
    if region is None or not kernel:
        return
    graph = V.graph
    while (outer := getattr(graph, "parent", None)) is not None:
        graph = outer
    launches = next((launches for made, launches in region.making if made is graph), None)
    if launches is None:
        launches = []
        region.making.append((graph, launches))
    nodes = _fused(schedule) if isinstance(schedule, Sequence) else _extern(schedule)
    known = (names for node in dict.fromkeys(nodes) if node is not None for names in _known(region, node))
    launches.append(Launch(kernel, tuple(dict.fromkeys(filter(None, known)))))


def _extern(kernel: ExternKernel) -> Iterable[Node | None]:
    return [kernel.origin_node] if kernel.origin_node is not None else kernel.origins


def _fused(schedule: Sequence[BaseSchedulerNode]) -> Iterator[Node | None]:
    """Nodes of a generated kernel: first that of its last reduction, or of its last write."""
    parts = [(part, node) for part in schedule if (node := getattr(part, "node", None)) is not None]
    last = [node for part, node in parts if part.is_reduction()][-1:] or [node for _, node in parts[-1:]]
    yield from (node.origin_node for node in last)
    for _, node in parts:
        yield from node.origins


def _replacing(match: Match, node: Node) -> Callable[[], None]:
    """Records the sources of replaced nodes in the new ones when Inductor inserts nodes before `node`."""
    replaced = set(match.nodes)
    origins = tuple(sorted((origin for each in match.nodes for origin in _origins(each)), key=_is_minor))
    before, after = node.prev, node.next
    while before in replaced:
        before = before.prev

    def keep() -> None:
        at = after.prev
        while at is not before and at.op != "root":
            if at not in replaced:
                at.meta[ORIGINS] = origins
            at = at.prev

    return keep


def _is_minor(origin: Origin) -> bool:
    """True if an operator is a small part of a fused kernel."""
    return MAJOR.search(origin[0]) is None


def _origins(node: Node) -> tuple[Origin, ...]:
    """Sources of a node: its own operator and stack, or those of the nodes that it replaced."""
    kept: tuple[Origin, ...] | None = node.meta.get(ORIGINS)
    if kept is not None:
        return kept
    sources = tuple(source.name for source in node.meta.get("from_node") or ())
    return ((str(node.target), node.meta.get("stack_trace") or "", sources),)


def _known(region: Region, node: Node) -> Iterator[_Names]:
    """The nodes of Dynamo's graph that a generated node stands for: those of its history, else all of its stack."""
    origins = _origins(node)
    for _, stack, sources in origins:
        if len(origins) > 1 and stack.endswith(ADDED):
            continue
        text = stack.removesuffix(ADDED)
        found = next((name for name in sources if region.stacks.get(name) == text), None)
        yield (found,) if found else region.names.get(text, ())


def _finish(compiled: CompiledFxGraph) -> None:
    """Stores or loads the launches of a graph that was just generated or came from Inductor's cache."""
    region = _regions.get(_compile_id() or "")
    if region is None:
        return
    key, code = compiled._fx_graph_cache_key, compiled.cache_key  # noqa: SLF001 - known nowhere else
    made = next((launches for graph, launches in region.making if graph.cache_key == code), None)
    region.making.clear()
    region.skipped = region.skipped or _why_without_graphs(compiled)
    path = _kept_at(key, code)
    launches = None if made is None else tuple(made)
    if path is not None and launches is not None:
        then = "its lines are unknown once it is cached"
        unless_it_fails("a compiled graph", partial(_keep, path, launches), then)
    elif path is not None:
        launches = unless_it_fails("a compiled graph", partial(_kept, path), THEN)
    region.graphs.append(GeneratedGraph(str(key), bool(compiled.fx_kwargs.get("is_backward")), launches))


def _why_without_graphs(compiled: CompiledFxGraph) -> str:
    """The reason why a graph does not use the CUDA graphs asked for; a cached graph does not repeat it."""
    switches = getattr(sys.modules.get("torch._inductor.config"), "triton", None)
    if not getattr(switches, "cudagraphs", False):
        return ""
    tests = getattr(getattr(compiled, "cudagraph_info", None), "cudagraph_fail_reasons", None)
    return getattr(compiled, "disabled_cudagraphs_reason", None) or ", ".join(tests or ())


def _note_skip(message: str) -> None:
    """Records the reason when Inductor skips CUDA graphs, during compilation or when a graph runs.

    At run time nothing says which graph it is. The stack in the message is that of one of its nodes.
    """
    region = _regions.get(_compile_id() or "")
    found = [region] if region else [each for each in _regions.values() if any(map(message.__contains__, each.names))]
    for each in found:
        each.skipped = each.skipped or message


def _kept_at(key: object, code: object) -> Path | None:
    """The file of a graph's launches; None if the graph itself is not cached."""
    if not all(isinstance(each, str) and _KEY.fullmatch(each) for each in (key, code)):
        return None
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    return Path(cache_dir()) / _FOLDER / f"{key}.{code}.json"


def _keep(path: Path, launches: Iterable[Launch]) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    content = {"version": _VERSION, "launches": [[launch.kernel, launch.nodes] for launch in launches]}
    write_whole(path, json.dumps(content, separators=(",", ":")).encode("ascii"))


def _kept(path: Path) -> tuple[Launch, ...] | None:
    """The launches recorded when the graph was generated; None without any."""
    if not path.is_file():
        return None
    with opened(path) as file:
        content = json.load(file)
    if content["version"] != _VERSION:
        return None
    return tuple(Launch(str(kernel), tuple(map(tuple, nodes))) for kernel, nodes in content["launches"])


# For the side file


def lacks_notes() -> bool:
    """True if code may have been compiled without being recorded."""
    return _came_late or any(graph.launches is None for region in _regions.values() for graph in region.graphs)


def noted_keys() -> set[str]:
    """Keys of the graphs that are recorded wherever they are used."""
    graphs = [graph for region in _regions.values() for graph in region.graphs]
    return {graph.key for graph in graphs} - {graph.key for graph in graphs if graph.launches is None}


def compiled_code(named: Callable[[str], str], cached: Sequence[Mapping[str, object]] = ()) -> Mapping[str, Any] | None:
    """Everything compiled so far, for the side file; None without any.

    Args:
        named: gives the recording's name of a path.
        cached: data of Inductor's cache on graphs that were compiled before the capture began.
    """
    stacks = _Stacks(named)
    regions = [_described(ident, region, stacks) for ident, region in list(_regions.items())]
    breaks, recompiles = list(_breaks(named)), list(_recompiles(named))
    if not (regions or breaks or recompiles or cached):
        return None
    skips = [_skip(ident, region, named) for ident, region in list(_regions.items()) if region.skipped]
    return {
        "stacks": stacks.written, "regions": regions, "breaks": breaks, "recompiles": recompiles, "skips": skips,
        "cached": list(cached),
    }  # fmt: skip


def files_in(compiled: Mapping[str, Any]) -> set[str]:
    """Names of the files of all stacks and lines, of breaks, and of causes that prevent CUDA graphs."""
    groups = (*compiled["stacks"], *(graph["lines"] for graph in compiled["cached"]))
    places = (*compiled["breaks"], *compiled["skips"])
    return {file for lines in groups for file, *_ in lines} | {each["file"] for each in places} - {""}


class _Stacks:
    """Stacks, each written once."""

    def __init__(self, named: Callable[[str], str]) -> None:
        self._named = named
        self._numbers: dict[_Stack, int] = {}

    @property
    def written(self) -> list[_Stack]:
        return [tuple((self._named(file), line, name) for file, line, name in stack) for stack in self._numbers]

    def number(self, stack: _Stack) -> int:
        return self._numbers.setdefault(stack, len(self._numbers))


def _described(ident: str, region: Region, stacks: _Stacks) -> Mapping[str, object]:
    graphs = [
        {"key": graph.key, "backward": graph.is_backward, "launches": _lines(region, graph, stacks)}
        for graph in region.graphs
    ]
    return {"id": ident, "function": region.function, "graphs": graphs}


def _lines(region: Region, graph: GeneratedGraph, stacks: _Stacks) -> list[tuple[str, list[int]]] | None:
    """Each kernel with its stacks; empty if the code changed so that one of them is unknown."""
    if graph.launches is None:
        return None
    found = []
    for launch in graph.launches:
        each = [{frames(region.stacks.get(name, "")) for name in names} for names in launch.nodes]
        known = all(len(stack) == 1 and () not in stack for stack in each)
        numbers = [stacks.number(*stack) for stack in each] if known else []
        found.append((launch.kernel, list(dict.fromkeys(numbers))))
    return found


@lru_cache(maxsize=1 << 16)
def frames(text: str) -> _Stack:
    """The frames of a stack as Python prints it."""
    return tuple((match["file"], int(match["line"]), match["function"]) for match in SOURCE_FRAME.finditer(text))


def _breaks(named: Callable[[str], str]) -> Iterator[Mapping[str, object]]:
    """Places where Dynamo could not go on, with its reasons."""
    broken = getattr(sys.modules.get(UTILS), "graph_break_reasons", ())
    places = ((each.user_stack[-1], str(each.reason)) for each in broken if each.user_stack)
    for file, line, function, reason in sorted({(at.filename, at.lineno, at.name, text) for at, text in places}):
        yield {"file": named(file), "line": line, "function": function, "reason": explained_in_short(reason)}


def _recompiles(named: Callable[[str], str]) -> Iterator[Mapping[str, object]]:
    """Repeated compilations, with the guard that failed."""
    metrics = getattr(sys.modules.get(UTILS), "get_compilation_metrics", None)
    for each in metrics() if metrics else ():
        if each.compile_id and each.co_filename and getattr(each, "recompile_reason", None):
            place = {"file": named(each.co_filename), "line": each.co_firstlineno, "function": each.co_name}
            yield {"id": str(each.compile_id), **place, "reason": explained_in_short(each.recompile_reason)}


def _skip(ident: str, region: Region, named: Callable[[str], str]) -> Mapping[str, object]:
    """The reason why a region runs without CUDA graphs, and the innermost line that Inductor names for it, if any."""
    match = SKIP.match(region.skipped)
    file, line, function = (frames(region.skipped) or (("", 0, ""),))[-1]
    reason = explained_in_short(match["reason"] if match else region.skipped)
    return {"id": ident, "reason": reason, "file": named(file) if file else "", "line": line, "function": function}


def explained_in_short(reason: str) -> str:
    """Dynamo's explanation on one line, without folders of this machine; else its first line.

    Leaves out the hints and stacks that follow.
    """
    explained = EXPLANATION.search(reason)
    text = explained[1] if explained else reason.strip().partition("\n")[0]
    return FOLDER_OF_FILE.sub("", " ".join(text.split()))[:MOST_ERROR_CHARACTERS]
