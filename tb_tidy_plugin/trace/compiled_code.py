"""Compiled code in the capture side file: lines behind its kernels, graph breaks and more."""

from __future__ import annotations

from typing import Annotated

import msgspec

_Text = Annotated[str, msgspec.Meta(max_length=4096)]
_Line = Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class CodeFrame(msgspec.Struct, frozen=True, array_like=True):
    """One frame of a stack, with its file's name in the trace."""

    file: _Text
    line: _Line
    function: _Text


class KernelLines(msgspec.Struct, frozen=True, array_like=True):
    """A kernel that a generated graph calls, and its stacks, the main one first; empty if none is known."""

    kernel: _Text
    stacks: Annotated[list[_Number], msgspec.Meta(max_length=10_000)]


class CompiledGraph(msgspec.Struct, frozen=True):
    """A generated graph, by its key in Inductor's cache.

    `launches` are in the order of its calls; None if the graph was generated before the capture was imported.
    `from_cache` is True if its lines come from Inductor's cache.
    """

    key: _Text
    backward: bool
    launches: Annotated[list[KernelLines], msgspec.Meta(max_length=1_000_000)] | None = None
    from_cache: bool = False


class CompiledRegion(msgspec.Struct, frozen=True):
    """A function that was compiled, by Dynamo's number: `0/1` is the second variant of the first one."""

    id: _Text
    function: _Text
    graphs: Annotated[list[CompiledGraph], msgspec.Meta(max_length=10_000)] = []


class CompilerReason(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why Dynamo or Inductor left its way, and where; `id` as of regions.

    Attributes:
        id: empty for a graph break, which belongs to a line.
        file: empty if Inductor names no line as the reason.
    """

    reason: _Text
    file: _Text = ""
    line: _Line = 0
    function: _Text = ""
    id: _Text = ""


class CachedLine(msgspec.Struct, frozen=True, array_like=True):
    """One frame of a stack in Inductor's cache, with the line's text then; the text of own files only."""

    file: _Text
    line: _Line
    function: _Text
    text: _Text


class CachedKernel(msgspec.Struct, frozen=True, array_like=True):
    """A kernel that a generated graph calls, and numbers of the lines it computes, the main one first."""

    kernel: _Text
    lines: Annotated[list[_Number], msgspec.Meta(max_length=10_000)]


class CachedGraph(msgspec.Struct, frozen=True):
    """A graph that no capture recorded, from its texts in Inductor's cache.

    `kernels` are in the order of its calls; `stacks` are numbers of lines, outermost frame first.
    """

    key: _Text
    backward: bool
    lines: Annotated[list[CachedLine], msgspec.Meta(max_length=100_000)]
    kernels: Annotated[list[CachedKernel], msgspec.Meta(max_length=100_000)]
    stacks: Annotated[list[Annotated[list[_Number], msgspec.Meta(max_length=10_000)]], msgspec.Meta(max_length=100_000)]

    def is_sound(self) -> bool:
        """True if all numbers refer to existing lines."""
        numbers = [number for kernel in self.kernels for number in kernel.lines]
        numbers += [number for stack in self.stacks for number in stack]
        return max(numbers, default=-1) < len(self.lines) and all(self.stacks)


class CompiledCode(msgspec.Struct, frozen=True):
    """Code compiled before the recording was written. A stack is a list of frames, outermost first.

    Attributes:
        breaks: lines at which Dynamo could not go on. recompiles: functions compiled again, and the guard that failed.
        skips: functions that run without the CUDA graphs asked for.
    """

    stacks: Annotated[list[list[CodeFrame]], msgspec.Meta(max_length=1_000_000)] = []
    regions: Annotated[list[CompiledRegion], msgspec.Meta(max_length=100_000)] = []
    breaks: Annotated[list[CompilerReason], msgspec.Meta(max_length=100_000)] = []
    recompiles: Annotated[list[CompilerReason], msgspec.Meta(max_length=100_000)] = []
    skips: Annotated[list[CompilerReason], msgspec.Meta(max_length=100_000)] = []
    cached: Annotated[list[CachedGraph], msgspec.Meta(max_length=10_000)] = []

    def is_sound(self) -> bool:
        """True if all numbers refer to existing stacks and lines."""
        numbers = (
            number
            for region in self.regions
            for graph in region.graphs
            for launch in graph.launches or ()
            for number in launch.stacks
        )
        return max(numbers, default=-1) < len(self.stacks) and all(graph.is_sound() for graph in self.cached)
