"""Lines of generated kernels that no capture recorded: from Inductor's cache, on this machine or as a capture read it.

A cached graph may be of another function with the same graph, or from before an edit. Its lines count only if all
stacks in the cache begin in the function that the trace says was compiled, and if each line still has the same text.
They are shown as inferred, never as exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.profile.compiled.graphs import GRAPH, GraphCall, compiled_graphs_of, region_id
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.align import Sources, function_spans
from tb_tidy_plugin.sources.compiled import function_place
from tb_tidy_plugin.sources.frames import Frame, frame_of
from tb_tidy_plugin.sources.inductor_cache import cached_graph
from tb_tidy_plugin.trace.compiled_code import (
    CachedGraph,
    CodeFrame,
    CompiledCode,
    CompiledGraph,
    CompiledRegion,
    KernelLines,
)

if TYPE_CHECKING:
    from tb_tidy_plugin.torchfacts.generated_code import KernelSource, SourceLine

_INSTALLED = re.compile(r"^.*/(?:site-packages|dist-packages|lib/python3\.\d+)/")


def with_cached_lines(profile: Profile, sources: Sources, folder: Path | None) -> Profile:
    """The profile with the lines of kernels that Inductor's cache has and the capture did not record.

    Args:
        profile: of a trace.
        sources: gives the lines of a source file by its name in the trace.
        folder: Inductor's cache, if there is one.
    """
    code = profile.metadata.captured.compiled or CompiledCode()
    if (folder is None and not code.cached) or not any(GRAPH.match(name) for name in profile.table.names):
        return profile
    found = _Cache(folder, sources, {(each.key, each.backward): each for each in code.cached}, list(code.stacks))
    graphs = compiled_graphs_of(profile)
    unknown = [call for call, graph in zip(graphs.calls, graphs.graphs, strict=True) if graph is None]
    regions = list(found.regions(profile, unknown))
    if not regions:
        return profile
    code = msgspec.structs.replace(code, stacks=found.stacks, regions=[*code.regions, *regions])
    captured = replace(profile.metadata.captured, compiled=code)
    return Profile(replace(profile.table, metadata=replace(profile.metadata, captured=captured)))


class _Graph(msgspec.Struct, frozen=True):
    """Some stacks of a graph, outermost frame first, and its kernels, each with the lines that it computes."""

    stacks: Sequence[Sequence[SourceLine]]
    kernels: Sequence[KernelSource]


class _Cache(msgspec.Struct):
    """The cache's data on one trace; `stacks` grow as needed."""

    folder: Path | None
    sources: Sources
    captured: Mapping[tuple[str, bool], CachedGraph]
    stacks: list[list[CodeFrame]]
    _numbers: dict[tuple[CodeFrame, ...], int] = msgspec.field(default_factory=dict)
    _graphs: dict[tuple[str, bool], _Graph | None] = msgspec.field(default_factory=dict)

    def regions(self, profile: Profile, calls: Sequence[GraphCall]) -> Iterator[CompiledRegion]:
        """The compiled functions, one for each graph whose kernels have lines."""
        seen = set[tuple[str, str, bool]]()
        for call in calls:
            region = region_id(profile, call.region) if call.key else ""
            if not region or (at := (region, call.key, call.is_backward)) in seen:
                continue
            seen.add(at)
            function = function_place(profile, call)
            launches = None if function is None else self._launches(function, call)
            if function is not None and launches:
                graph = CompiledGraph(call.key, call.is_backward, launches, from_cache=True)
                yield CompiledRegion(region, function.function, [graph])

    def _launches(self, function: Frame, call: GraphCall) -> list[KernelLines]:
        at = call.key, call.is_backward
        if at not in self._graphs:
            self._graphs[at] = self._graph(*at)
        graph = self._graphs[at]
        names = None if graph is None else _names(function, graph.stacks)
        if graph is None or names is None or not self._begin_in(function, graph.stacks, names):
            return []
        stacks = self._checked(graph.kernels, graph.stacks, names)
        if stacks is None:
            return []
        return [KernelLines(kernel.kernel, self._numbered(kernel.lines, stacks)) for kernel in graph.kernels]

    def _graph(self, key: str, is_backward: bool) -> _Graph | None:
        """The graph as the capture read it, else as it is on this machine."""
        from tb_tidy_plugin.torchfacts.generated_code import (  # for few recordings
            KernelSource,
            SourceLine,
            kernel_sources,
        )

        if (captured := self.captured.get((key, is_backward))) is not None:
            lines = [SourceLine(each.file, each.line, each.function, each.text) for each in captured.lines]
            stacks = [[lines[number] for number in stack] for stack in captured.stacks]
            kernels = [(each.kernel, tuple(lines[number] for number in each.lines)) for each in captured.kernels]
            return _Graph(stacks, [KernelSource(*kernel) for kernel in kernels])
        graph = None if self.folder is None else cached_graph(self.folder, key)
        if graph is None:
            return None
        return _Graph(graph.stacks, kernel_sources(graph.graph, graph.code, is_backward=is_backward))

    def _begin_in(self, function: Frame, stacks: Sequence[Sequence[SourceLine]], names: _Names) -> bool:
        """True if all stacks begin in a function."""
        if (lines := self.sources(function.file)) is None:
            return False
        spans = [
            (first, last) for name, first, last in _spans(tuple(lines)) if name == function.function.rpartition(".")[2]
        ]
        spans = [span for span in spans if span[0] == function.line] or [
            span for span in spans if span[0] <= function.line <= span[1]
        ]
        firsts = [names.frame(stack[0]) for stack in stacks]
        return bool(firsts) and all(
            frame is not None
            and frame.file == function.file
            and any(first <= stack[0].line <= last for first, last in spans)
            for frame, stack in zip(firsts, stacks, strict=True)
        )

    def _checked(
        self, kernels: Sequence[KernelSource], stacks: Sequence[Sequence[SourceLine]], names: _Names
    ) -> Mapping[SourceLine, list[CodeFrame]] | None:
        """The stack of each line; None if a line of the user's has changed."""
        found: dict[SourceLine, list[CodeFrame]] = {}
        whole: dict[SourceLine, set[tuple[SourceLine, ...]]] = {}
        for stack in stacks:
            whole.setdefault(stack[-1], set()).add(tuple(stack))
        for line in {line for kernel in kernels for line in kernel.lines}:
            known = whole.get(line, set())
            stack = next(iter(known)) if len(known) == 1 else (line,)
            frames = [names.frame(each) for each in stack]
            if not all(self._says(frame, each) for frame, each in zip(frames, stack, strict=True)):
                return None
            if any(frame is not None and frame.own_code for frame in frames):
                found[line] = [
                    CodeFrame(frame.file, each.line, frame.function)
                    for frame, each in zip(frames, stack, strict=True)
                    if frame is not None
                ]
        return found

    def _says(self, frame: Frame | None, line: SourceLine) -> bool:
        """True if a line of the user's own still has the text from when the graph was made."""
        if frame is None or not frame.own_code:
            return True
        lines = self.sources(frame.file) or ()
        return 0 < line.line <= len(lines) and lines[line.line - 1].strip() == line.text

    def _numbered(self, lines: Sequence[SourceLine], stacks: Mapping[SourceLine, list[CodeFrame]]) -> list[int]:
        """Numbers of the stacks of a kernel; empty if one is of a library's, called from an unknown line."""
        if any(line not in stacks for line in lines):
            return []
        return [self._number(stacks[line]) for line in lines]

    def _number(self, stack: list[CodeFrame]) -> int:
        if tuple(stack) not in self._numbers:
            self._numbers[tuple(stack)] = len(self.stacks)
            self.stacks.append(stack)
        return self._numbers[tuple(stack)]


class _Names(msgspec.Struct, frozen=True):
    """A trace's names of paths: those below `root` without it, installed ones without their folder."""

    root: str

    def frame(self, line: SourceLine) -> Frame | None:
        path = line.file.replace("\\", "/")
        path = _INSTALLED.sub("", path) if _INSTALLED.match(path) else path.removeprefix(self.root)
        return frame_of(path, line.line, line.function)


def _names(function: Frame, stacks: Sequence[Sequence[SourceLine]]) -> _Names | None:
    """The names, from the path of the compiled function's own file; None if the graph has no line of it."""
    files = {stack[0].file.replace("\\", "/") for stack in stacks}
    file = next(iter(files)) if len(files) == 1 else ""
    own = function.file.replace("\\", "/")
    is_own = file == own or file.endswith(f"/{own}")
    return _Names(file[: len(file) - len(own)]) if is_own else None


@lru_cache(maxsize=64)
def _spans(lines: tuple[str, ...]) -> tuple[tuple[str, int, int], ...]:
    return tuple(function_spans("\n".join(lines)))
