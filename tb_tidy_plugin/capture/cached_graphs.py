"""Graphs that were not recorded while they were generated, from the texts that Inductor keeps of them.

Those are graphs from a cache without notes, and all code compiled before the capture was imported. A graph in use has
the texts of its entry in Inductor's cache. Its kernels are analysed here, since the recording may be read on another
machine, without that cache. Nothing is unpickled, and no file is read.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tb_tidy_plugin.capture.compiled import lacks_notes, noted_keys
from tb_tidy_plugin.capture.guarded import unless_it_fails
from tb_tidy_plugin.torchfacts.generated_code import SourceLine, kernel_sources, stack_lines

if TYPE_CHECKING:
    from torch._inductor.output_code import CompiledFxGraph

    from tb_tidy_plugin.capture.own_files import OwnFiles

OUTPUT = "torch._inductor.output_code"
MOST_GRAPH_CHARACTERS = 2_000_000
"""Most characters of a graph's texts, those of a thousand kernels."""

_MOST_LINES, LONGEST_LINE = 20_000, 4_000
"""Most lines of a graph, which is kept completely or not at all."""

MOST_SECONDS = 1.0
"""No further graph is started after this time."""


def cached_graphs(own: OwnFiles) -> Iterator[Mapping[str, object]]:
    """Data on the graphs in use that were not recorded, for the side file.

    Args:
        own: gives the recording's name of a path, and knows which files are the user's own.
    """
    if not lacks_notes():
        return
    noted, until = noted_keys(), time.monotonic() + MOST_SECONDS
    for graph in _in_use():
        key = getattr(graph, "_fx_graph_cache_key", None)
        if isinstance(key, str) and key not in noted and time.monotonic() < until:
            noted.add(key)
            found = unless_it_fails("a cached graph", partial(_described, graph, own), "its lines are unknown")
            if found is not None:
                yield {"key": key, **found}


def _in_use() -> list[CompiledFxGraph]:
    """The graphs in use, found by one pass over all objects: 0.2 s for a million of them."""
    kind = getattr(sys.modules.get(OUTPUT), "CompiledFxGraph", None)
    return [each for each in gc.get_objects() if type(each) is kind]


def _described(graph: CompiledFxGraph, own: OwnFiles) -> Mapping[str, Any] | None:
    code, text = getattr(graph, "source_code", None), getattr(graph, "inductor_post_grad_graph_str", None)
    printed = dict.fromkeys(each for _, each in getattr(graph, "cache_linemap", None) or () if each)
    if not (code and text) or len(code) + len(text) + sum(map(len, printed)) > MOST_GRAPH_CHARACTERS:
        return None
    is_backward = bool(graph.fx_kwargs.get("is_backward"))
    kernels = kernel_sources(text, code, is_backward=is_backward)
    stacks = [stack for each in printed if (stack := stack_lines(each))]
    numbers: dict[SourceLine, int] = {}

    def numbered(lines: Iterable[SourceLine]) -> list[int]:
        return [numbers.setdefault(line, len(numbers)) for line in lines]

    found = {
        "backward": is_backward,
        "kernels": [[kernel.kernel, numbered(kernel.lines)] for kernel in kernels],
        "stacks": [numbered(stack) for stack in stacks],
        "lines": [_line(line, own) for line in numbers],
    }
    is_small = len(numbers) <= _MOST_LINES and all(len(line.text) <= LONGEST_LINE for line in numbers)
    return found if kernels and stacks and is_small else None


def _line(line: SourceLine, own: OwnFiles) -> list[str | int]:
    name = own.name_of(line.file)
    return [name, line.line, line.function, line.text if own.path_of(name) else ""]
