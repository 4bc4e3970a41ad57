"""From an event to the line of the user's code that caused it, though the recording names only functions.

The children of a function's frame are one sentence of the automaton that the function's body is; the best reading gives
each child its line. Where readings on other lines are as good, all of them are named; where none is good enough, or the
source cannot be read or does not fit, the place stays the function.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import takewhile
from threading import Lock
from typing import TypeAlias

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.automaton import automaton_of, first_line
from tb_tidy_plugin.sources.frames import Frame, called_from, parse_frame, place_of, stack_of
from tb_tidy_plugin.sources.observed import Observation, Observer
from tb_tidy_plugin.sources.paths import Choice, Paths
from tb_tidy_plugin.sources.sites import Site, TooLargeError
from tb_tidy_plugin.trace.columns import Category

Sources: TypeAlias = Callable[[str], Sequence[str] | None]
"""Gives the lines of a source file by the name that the recording has for it, None where it may or can not be read."""

TIE = 0.15
"""Readings that cost so little more are as good: a few attributes passed in silence make that much of a difference."""

LONGEST_TEXT = 200
"""Letters of a line that are kept."""

POOREST = 1.0
"""Cost per observation from which on a source does not belong to the recording: right ones cost 0.9 at most, 19 in 20
wrong ones more than this (measured on 156 frames of 17 programs)."""

FRAMES = {
    ast.Lambda: "<lambda>", ast.ListComp: "<listcomp>", ast.SetComp: "<setcomp>", ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>", ast.Module: "<module>",
}  # fmt: skip
"""Names of frames whose code has none of its own."""


_PARSING = Lock()
"""Two threads that parse at once make CPython up to 3.11 raise SystemError (cpython issue 106905)."""


@dataclass(frozen=True, slots=True)
class _Function:
    """One piece of code that has frames of its own."""

    name: str
    first: int
    last: int
    node: ast.AST


class Aligner:
    """Places of one profile's events. Everything is worked out once, and only for what is asked."""

    def __init__(self, profile: Profile, sources: Sources) -> None:
        self._profile = profile
        self._sources = cache(sources)
        self._observer = Observer(profile)
        self._functions: dict[str, list[_Function]] = {}
        self._paths: dict[int, Paths | None] = {}
        self._read: dict[tuple[str, tuple[Observation, ...], bool], list[Choice] | None] = {}
        self._frames: dict[int, dict[int, Choice]] = {}

    def place_of(self, row: int, events: Sequence[int] = ()) -> Frame | None:
        """The user's own frame behind an event, as `frames.place_of`, with the line in it where that can be told.

        Where `row` is the frame itself, its lines are those on which it called what led to `events`.
        """
        profile = self._profile
        place = place_of(profile, row)
        cause = row if row < profile.tree.size else int(profile.launched_by[row])
        if place is None or place.precision != "definition" or not place.own_code or cause < 0:
            return place
        at, _, child = next(self._ways_up(cause), (None, None, None))
        if at is None:
            return place
        return self._with_text(self._span(at, place, events) if child is None else self._line_to(at, place, child))

    def stack_of(self, row: int) -> list[Frame]:
        """The user's own frames around an event, innermost first, each with the line that leads to the event."""
        profile = self._profile
        cause = row if row < profile.tree.size else int(profile.launched_by[row])
        if cause < 0:
            return []
        found = [self._line_to(at, frame, child) for at, frame, child in self._ways_up(cause)]
        return found or [frame for frame in stack_of(profile, cause) if frame.own_code]

    def _line_to(self, row: int, frame: Frame, child: int | None) -> Frame:
        """A frame with the line on which it calls `child`, where that can be told."""
        if frame.precision != "definition" or child is None:
            return frame
        line = called_from(self._profile, row, child)
        if line is not None:
            return replace(frame, line=line, precision="exact")
        choice = self._choices(row, frame).get(child)
        return frame if choice is None else _placed(frame, choice)

    def _with_text(self, place: Frame) -> Frame:
        """With what the source says on the line; that of a definition says nothing of the call."""
        lines = None if place.precision == "definition" else self._sources(place.file)
        known = lines is not None and place.line <= len(lines)
        return replace(place, text=lines[place.line - 1].strip()[:LONGEST_TEXT]) if lines and known else place

    def _span(self, frame: int, place: Frame, events: Sequence[int]) -> Frame:
        """The lines of `frame` from the first to the last that led to one of `events`."""
        below = [row for row in events if row in self._profile.subtree(frame)]
        calls = dict(self.calls_in(frame, place)) if below else {}
        known = [calls[row] for row in map(partial(self._child, frame), below) if row in calls]
        if not known:
            return place
        first, last = min(call.line for call in known), max(call.end_line or call.line for call in known)
        return replace(place, line=first, end_line=last, precision="aligned")

    def _child(self, frame: int, row: int) -> int:
        """The child of `frame`, annotations looked through, that leads to `row`; `frame` itself for itself."""
        way = takewhile(lambda above: above != frame, (row, *self._profile.ancestors(row)))
        events = [at for at in way if self._profile.category(at) is not Category.ANNOTATION]
        return events[-1] if events else frame

    def calls_in(self, row: int, frame: Frame) -> Iterator[tuple[int, Frame]]:
        """What one of the user's own frames called, with the line; without what has none, and without annotations."""
        choices = self._choices(row, frame)
        for child in self._observer.children(row):
            line, choice = called_from(self._profile, row, child), choices.get(child)
            if line is not None:
                yield child, replace(frame, line=line, precision="exact")
            elif choice and choice.site is not None and self._profile.category(child) is not Category.ANNOTATION:
                yield child, _placed(frame, choice)

    def _ways_up(self, row: int) -> Iterator[tuple[int, Frame, int | None]]:
        """The user's frames around an event, innermost first, each with its child that leads there.

        Annotations are looked through.
        """
        child: int | None = None
        for at in (row, *self._profile.ancestors(row)):
            category = self._profile.category(at)
            if category is Category.PYTHON:
                frame = parse_frame(self._profile.name(at))
                if frame is not None and frame.own_code:
                    yield at, frame, child
            if category is not Category.ANNOTATION:
                child = at

    def _choices(self, row: int, frame: Frame) -> dict[int, Choice]:
        """What explains each child of a frame."""
        if row not in self._frames:
            children = self._observer.children(row)
            seen = tuple(self._observer.observation(child) for child in children)
            is_open = self._profile.parent(row) is None
            key = (self._profile.name(row), seen, is_open)
            if key not in self._read:
                self._read[key] = self._reading(frame, seen, is_open=is_open)
            found = self._read[key]
            self._frames[row] = dict(zip(children, found, strict=True)) if found else {}
        return self._frames[row]

    def _reading(self, frame: Frame, seen: Sequence[Observation], *, is_open: bool) -> list[Choice] | None:
        """The best reading by any function that the frame may be of; None where none fits."""
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
        """Functions of this name that begin on the frame's line, else those that hold it: it was open, or resumed."""
        if frame.file not in self._functions:
            self._functions[frame.file] = list(_functions_in(self._sources(frame.file)))
        name = frame.function.rsplit(".", 1)[-1]
        named = [each for each in self._functions[frame.file] if each.name == name]
        exact = [each for each in named if each.first == frame.line]
        return exact or [each for each in named if each.first <= frame.line <= each.last]

    def _paths_of(self, function: _Function) -> Paths | None:
        """The ways through a function; None where it is too large or too deep."""
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


def _functions_in(lines: Sequence[str] | None) -> Iterator[_Function]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is not our place to tell users of their own escapes
            with _PARSING:
                tree = ast.parse("\n".join(lines or ()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # of another Python, or no Python at all
        return
    for node in ast.walk(tree):
        name = FRAMES.get(type(node), getattr(node, "name", None) if isinstance(node, DEFINITIONS) else None)
        if name is not None:
            yield _Function(name, first_line(node), getattr(node, "end_lineno", None) or len(lines or ()), node)


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
