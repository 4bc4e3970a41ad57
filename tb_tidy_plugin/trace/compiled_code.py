"""What the capture side file knows of compiled code: the lines behind its kernels, graph breaks, recompilations."""

from __future__ import annotations

from typing import Annotated

import msgspec

_Text = Annotated[str, msgspec.Meta(max_length=4096)]
_Line = Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class CodeFrame(msgspec.Struct, frozen=True, array_like=True):
    """One frame of a stack, by the name that the trace has for its file."""

    file: _Text
    line: _Line
    function: _Text


class KernelLines(msgspec.Struct, frozen=True, array_like=True):
    """A kernel that a generated graph calls, and its stacks, the main one first; without any where none is known."""

    kernel: _Text
    stacks: Annotated[list[_Number], msgspec.Meta(max_length=10_000)]


class CompiledGraph(msgspec.Struct, frozen=True):
    """A generated graph, by its key in Inductor's cache.

    `launches` are in the order of its calls; None where the graph was made before the capture was imported.
    `from_cache` says that its lines were worked out from Inductor's cache.
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


class GraphBreak(msgspec.Struct, frozen=True):
    """A line on which Dynamo could not go on, and its reason."""

    file: _Text
    line: _Line
    function: _Text
    reason: _Text


class Recompile(msgspec.Struct, frozen=True):
    """A function that was compiled again, and the guard that failed; `id` as of regions."""

    id: _Text
    file: _Text
    line: _Line
    function: _Text
    reason: _Text


class CompiledCode(msgspec.Struct, frozen=True):
    """What was compiled until the recording was written. A stack is a list of frames, outermost first."""

    stacks: Annotated[list[list[CodeFrame]], msgspec.Meta(max_length=1_000_000)] = []
    regions: Annotated[list[CompiledRegion], msgspec.Meta(max_length=100_000)] = []
    breaks: Annotated[list[GraphBreak], msgspec.Meta(max_length=100_000)] = []
    recompiles: Annotated[list[Recompile], msgspec.Meta(max_length=100_000)] = []

    def is_sound(self) -> bool:
        """Whether all numbers are of stacks that are there."""
        numbers = (
            number
            for region in self.regions
            for graph in region.graphs
            for launch in graph.launches or ()
            for number in launch.stacks
        )
        return max(numbers, default=-1) < len(self.stacks)
