"""The user's own place behind generated code: the lines that a capture recorded, else the compiled function."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tb_tidy_plugin.profile.compiled.graphs import GraphCall, compiled_graphs_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.frames import Frame, frame_of, parse_frame
from tb_tidy_plugin.trace.columns import ABSENT, Category
from tb_tidy_plugin.trace.compiled_code import CodeFrame, CompiledCode
from tb_tidy_plugin.words.vocabulary import Pass, Precision


def kernel_stacks(profile: Profile, row: int) -> list[list[Frame]]:
    """The user's own frames of each place that a generated kernel computes, innermost first; the main place first.

    Empty for all other events, and if no place is known.
    """
    graphs = compiled_graphs_of(profile)
    number, at = int(graphs.launch[row]), int(graphs.call[row])
    graph = graphs.graphs[at] if at != ABSENT else None
    if number == ABSENT or graph is None or graph.launches is None:
        return []
    stacks = (profile.metadata.captured.compiled or CompiledCode()).stacks
    precision: Precision = "aligned" if graph.from_cache else "exact"
    found = (_own(stacks[each], _pass_of(graphs.calls[at]), precision) for each in graph.launches[number].stacks)
    return [frames for frames in found if frames]


def kernel_place(profile: Profile, row: int) -> Frame | None:
    """The line that a generated kernel computes, with the further ones; None if unknown."""
    stacks = kernel_stacks(profile, row)
    if not stacks:
        return None
    places = dict.fromkeys((frames[0].file, frames[0].line) for frames in stacks)
    main, *others = places
    return replace(stacks[0][0], also=tuple(each for each in others if each != main))


def function_place(profile: Profile, call: GraphCall) -> Frame | None:
    """The user's own compiled function, as the place of the code generated for it.

    None if the trace does not show it, and for functions of libraries: their events belong to the line that calls them.
    """
    if call.region == ABSENT:
        return None
    row = own_frame_between(profile, call.region, call.forward)
    frame = None if row == ABSENT else parse_frame(profile.name(row))
    return None if frame is None else replace(frame, precision="definition", compiled=_pass_of(call))


def own_frame_between(profile: Profile, outer: int, row: int) -> int:
    """Row of the nearest frame of the user's own around `row` that is inside `outer`, else `ABSENT`."""
    for above in profile.ancestors(row):
        if above <= outer:
            break
        frame = parse_frame(profile.name(above)) if profile.category(above) is Category.PYTHON else None
        if frame is not None and frame.own_code:
            return above
    return ABSENT


def _pass_of(call: GraphCall) -> Pass:
    return "backward" if call.is_backward else "forward"


def _own(stack: Sequence[CodeFrame], of: Pass, precision: Precision) -> list[Frame]:
    parsed = [(frame_of(each.file, each.line, each.function), each.line) for each in reversed(stack)]
    return [
        replace(frame, line=line, precision=precision, compiled=of)
        for frame, line in parsed
        if frame is not None and frame.own_code
    ]
