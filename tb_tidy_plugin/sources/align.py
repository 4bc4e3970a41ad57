"""From an event to the line of the user's code that caused it, though the recording names only functions.

The children of a function's frame are one word of the automaton for the function's body; the best reading gives each
child its line. If readings on other lines are equally good, all of them are named; if none is good enough, or if the
source cannot be read or does not fit, the place stays the function.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from itertools import islice
from threading import Lock
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.profile.compiled.graphs import compiled_graphs_of, is_region
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.automaton import automaton_of, first_line
from tb_tidy_plugin.sources.compiled import kernel_stacks
from tb_tidy_plugin.sources.frames import Frame, called_from, goes_on, parse_frame, stack_of
from tb_tidy_plugin.sources.observed import Observation, Observer
from tb_tidy_plugin.sources.paths import Choice, Paths
from tb_tidy_plugin.sources.places import Places, places_of
from tb_tidy_plugin.sources.sites import Site, TooLargeError
from tb_tidy_plugin.trace.columns import ABSENT

Sources: TypeAlias = Callable[[str], Sequence[str] | None]
"""Gives the lines of a source file by its name in the recording, None if it may not or cannot be read."""

TIE = 0.15
"""Readings that cost at most this much more are equally good: a few silent attributes make that much difference."""

_DYNAMO = re.compile(r"(?:^|/)torch/(?:_dynamo/|_compile\.py)")
"""Files of what Dynamo puts around the graphs of a function."""

LONGEST_TEXT = 200
"""Most characters of a line that are kept."""

POOREST = 1.0
"""Cost per observation above which a source does not belong to the recording: right ones cost 0.9 at most, 19 in 20
wrong ones more than this (measured on 156 frames of 17 programs).
"""

WORD = re.compile(r"\w+|[(\[{'\"+~-]|\.\.\.")
MOST_WORDS, MOST_WORDS_OF_ALL = 40_000, 150_000
"""Most words of one parsed source, about 7,000 lines, and of all of them: the tree of a source takes up to 2 kB per
word, and a few bytes of a recording are enough to name a file.
"""

FRAMES = {
    ast.Lambda: "<lambda>", ast.ListComp: "<listcomp>", ast.SetComp: "<setcomp>", ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>", ast.Module: "<module>",
}  # fmt: skip
"""Names of frames of unnamed code."""


_PARSING = Lock()
"""Two threads that parse at once make CPython up to 3.11 raise SystemError (cpython issue 106905)."""


class _Function(msgspec.Struct, frozen=True):
    """One piece of code that has frames of its own."""

    name: str
    first: int
    last: int
    node: ast.AST


class Aligner:
    """Places of one profile's events, each computed once and on first use."""

    def __init__(self, profile: Profile, sources: Sources) -> None:
        self._profile = profile
        self._sources = cache(sources)
        self._observer = Observer(profile)
        self._functions: dict[str, list[_Function]] = {}
        self._words_left = MOST_WORDS_OF_ALL
        self._paths: dict[int, Paths | None] = {}
        self._read: dict[tuple[str, tuple[Observation, ...], bool], list[Choice] | None] = {}
        self._frames: dict[int, dict[int, Choice]] = {}

    @cached_property
    def places(self) -> Places:
        return places_of(self._profile)

    def place_of(self, row: int, events: Sequence[int] = ()) -> Frame | None:
        """The user's own frame behind an event, as `places.place_of`, with the line in it if that can be found.

        If `row` is the frame itself, its lines are those on which it called what led to `events`.
        """
        cause = self._cause(row)
        place = None if cause == ABSENT else self.places.of(cause)
        if place is None or not place.own_code:
            return place
        if place.precision != "definition":
            return self._with_text(place)
        at = int(self.places.row[cause])
        if at == ABSENT:
            return place
        child = self._observer.child(at, int(self.places.child[cause]))
        return self._with_text(self._span(at, place, events) if child is None else self._line_to(at, place, child))

    def call_of(self, row: int) -> tuple[int, int] | None:
        """The rows of the frame around a host event, and of the call in that frame which leads to the event.

        All events with the same call have the same place. None if there is no such frame or call.
        """
        at = int(self.places.row[row])
        child = None if at == ABSENT else self._observer.child(at, int(self.places.child[row]))
        return None if child is None else (at, child)

    def caller_of(self, row: int) -> tuple[int, int] | None:
        """The rows of the user's own frame around one of the user's own frames, and of its call; None without one."""
        _, *callers = islice(self._own_frames(row), 2)
        for at, _, below in callers:
            child = self._observer.child(at, below)
            return None if child is None else (at, child)
        return None

    def place_of_call(self, frame: int, call: int) -> Frame | None:
        """One of the user's own frames with the line on which it makes a call, if that can be found."""
        place = self.places.of(frame)
        return None if place is None else self._line_to(frame, place, call)

    def stack_of(self, row: int, told: int | None = None) -> list[Frame]:
        """The user's own frames around an event, innermost first, each with the line that leads to the event.

        Only the first `told` of them get their lines, all by default; the others keep the line of their definition.
        """
        cause = self._cause(row)
        if cause == ABSENT:
            return []
        found = next(iter(kernel_stacks(self._profile, cause)), [])
        call = compiled_graphs_of(self._profile).around(cause)
        start = call.region if found and call is not None and call.region != ABSENT else cause
        for at, frame, below in self._own_frames(start):
            is_told = told is None or len(found) < told
            found.append(self._line_to(at, frame, self._observer.child(at, below)) if is_told else frame)
        return found or [frame for frame in stack_of(self._profile, cause) if frame.own_code]

    def _cause(self, row: int) -> int:
        """The host event behind an event, `ABSENT` if unknown."""
        return row if row < self._profile.tree.size else int(self._profile.launched_by[row])

    def _own_frames(self, row: int) -> Iterator[tuple[int, Frame, int]]:
        """The user's frames around an event, innermost first: the row of each, and of its child."""
        places, above = self.places, row
        while above != ABSENT and (at := int(places.row[above])) != ABSENT:
            frame = places.of(at)
            if frame is None or not frame.own_code:
                return
            yield at, frame, row
            row, above = at, int(self._profile.tree.parent[at])

    def _line_to(self, row: int, frame: Frame, child: int | None) -> Frame:
        """A frame with the line on which it calls `child`, if that can be found."""
        if frame.precision != "definition" or child is None:
            return frame
        if self._is_compiled(row):
            return self._at_break(row, frame, child) or frame
        line = called_from(self._profile, row, child)
        if line is not None:
            return replace(frame, line=line, precision="exact")
        choice = self._choices(row, frame).get(child)
        return frame if choice is None else _placed(frame, choice)

    def _with_text(self, place: Frame) -> Frame:
        """The place with the source text of its line; that of a definition says nothing about the call."""
        lines = None if place.precision == "definition" else self._sources(place.file)
        known = lines is not None and place.line <= len(lines)
        return replace(place, text=lines[place.line - 1].strip()[:LONGEST_TEXT]) if lines and known else place

    def _span(self, frame: int, place: Frame, events: Sequence[int]) -> Frame:
        """The lines of `frame` from the first to the last that led to one of `events`."""
        below = [row for row in events if row in self._profile.subtree(frame)]
        calls = dict(self.calls_in(frame, place)) if below else {}
        children = (self._observer.child(frame, row) for row in below)
        known = [calls[child] for child in children if child in calls]
        if not known:
            return place
        first, last = min(call.line for call in known), max(call.end_line or call.line for call in known)
        return replace(place, line=first, end_line=last, precision="aligned")

    def calls_in(self, row: int, frame: Frame) -> Iterator[tuple[int, Frame]]:
        """Calls of one of the user's own frames, with their lines; leaves out calls without one, and spans.

        The rest of a function after a graph break is not a call of the breaking line: it has lines of its own.
        """
        if self._is_compiled(row):
            children = (child for child in self._observer.children(row) if not goes_on(self._entered(child)))
            found = ((child, self._at_break(row, frame, child)) for child in children)
            yield from ((child, place) for child, place in found if place is not None)
            return
        choices = self._choices(row, frame)
        for child in self._observer.children(row):
            line, choice = called_from(self._profile, row, child), choices.get(child)
            if line is not None:
                yield child, replace(frame, line=line, precision="exact")
            elif choice and choice.site is not None and not self._observer.is_span[child]:
                yield child, _placed(frame, choice)

    def _is_compiled(self, row: int) -> bool:
        """True if a frame runs what Dynamo compiled of it: graphs, and the call between. Its own lines are lost."""
        parent = self._profile.parent(row)
        return parent is not None and is_region(self._profile.name(parent))

    def _at_break(self, row: int, frame: Frame, child: int) -> Frame | None:
        """A compiled frame on the line that broke it, if `child` ran there or resumes after it.

        None for the graph before the break and for Dynamo's own calls.
        """
        if _DYNAMO.search(self._profile.name(child)):
            return None
        onward = (self._entered(each) for each in self._observer.children(row) if each >= child)
        resumed = next((parse_frame(name) for name in onward if goes_on(name)), None)
        return None if resumed is None else replace(frame, line=resumed.line, precision="exact")

    def _entered(self, row: int) -> str:
        """Name of the called function; for a compiled region, of the function that it runs."""
        name = self._profile.name(row)
        runs = is_region(name) and row < self._profile.tree.last_descendant[row]
        return self._profile.name(row + 1) if runs else name

    def _choices(self, row: int, frame: Frame) -> dict[int, Choice]:
        """The explanation of each child of a frame."""
        if row not in self._frames:
            children = self._observer.children(row)
            seen = tuple(self._observer.observation(child) for child in children)
            is_open = self._profile.parent(row) is None or goes_on(self._profile.name(row))
            key = (self._profile.name(row), seen, is_open)
            if key not in self._read:
                self._read[key] = self._reading(frame, seen, is_open=is_open)
            found = self._read[key]
            self._frames[row] = dict(zip(children, found, strict=True)) if found else {}
        return self._frames[row]

    def _reading(self, frame: Frame, seen: Sequence[Observation], *, is_open: bool) -> list[Choice] | None:
        """The best reading by any function that the frame may belong to; None if none fits."""
        functions = self._candidates(frame)
        readings = [
            paths.explained(seen, frame.line, is_open=is_open, tie=TIE)
            for paths in map(self._paths_of, functions)
            if paths is not None and paths.can_explain(seen)
        ]
        best = min(readings, key=lambda reading: reading.cost, default=None)
        if best is not None and best.cost <= POOREST:
            return best.choices
        if functions and all(function.first == function.last for function in functions):  # there is no other line
            return [Choice(Site("other", 0, 0, frame.line, frame.line), (frame.line,))] * len(seen)
        return None

    def _candidates(self, frame: Frame) -> list[_Function]:
        """Functions of this name that begin on the frame's line, else those around it: it was open, or resumed."""
        name = _last_part(frame.function)
        if frame.file not in self._functions:
            self._functions[frame.file] = list(self._functions_in(frame.file))
        named = [each for each in self._functions[frame.file] if each.name == name]
        exact = [each for each in named if each.first == frame.line]
        return exact or [each for each in named if each.first <= frame.line <= each.last]

    def _functions_in(self, file: str) -> Iterator[_Function]:
        """The functions of a source that have frames in the recording; empty if it is too large."""
        text, recorded = "\n".join(self._sources(file) or ()), self._recorded.get(file, frozenset())
        words = sum(1 for _ in WORD.finditer(text))
        if words <= min(MOST_WORDS, self._words_left):
            self._words_left -= words
            yield from (function for function in _functions_of(text) if function.name in recorded)

    @cached_property
    def _recorded(self) -> dict[str, frozenset[str]]:
        """Names of the recorded functions in each of the user's own files."""
        found: dict[str, set[str]] = {}
        for frame in map(parse_frame, self._profile.table.names):
            if frame is not None and frame.own_code:
                found.setdefault(frame.file, set()).add(_last_part(frame.function))
        return {file: frozenset(names) for file, names in found.items()}

    def _paths_of(self, function: _Function) -> Paths | None:
        """The paths through a function; None if it is too large or too deep."""
        if id(function.node) not in self._paths:
            try:
                self._paths[id(function.node)] = Paths(automaton_of(function.node))
            except (TooLargeError, RecursionError):
                self._paths[id(function.node)] = None
        return self._paths[id(function.node)]


def _placed(place: Frame, choice: Choice) -> Frame:
    site = choice.site
    if site is None:
        return place
    if len(choice.ties) > 1:
        return replace(place, line=min(choice.ties), end_line=max(choice.ties), precision="aligned", ties=choice.ties)
    return replace(place, line=site.line, end_line=site.end_line, precision="aligned")


def _last_part(function: str) -> str:
    """The name of a function without that of its class."""
    return function.rsplit(".", 1)[-1]


def parsed(text: str) -> ast.Module | None:
    """The syntax tree of a source; None for another version of Python, or invalid code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # users know their own escapes
            with _PARSING:
                return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def function_spans(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, first and last line of each function of a source; empty if it is too large, or not Python."""
    if sum(1 for _ in WORD.finditer(text)) <= MOST_WORDS:
        yield from ((each.name, each.first, each.last) for each in _functions_of(text))


def _functions_of(text: str) -> Iterator[_Function]:
    tree = parsed(text)
    if tree is None:
        return
    for node in ast.walk(tree):
        name = FRAMES.get(type(node), getattr(node, "name", None) if isinstance(node, DEFINITIONS) else None)
        if name is not None:
            yield _Function(name, first_line(node), getattr(node, "end_lineno", None) or text.count("\n") + 1, node)


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
