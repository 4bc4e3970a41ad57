"""Rules for calls of library functions: a page, a pattern of the functions' frames, and words make such a rule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

import msgspec

from tb_tidy_plugin.profile.host.callers import calls_in_steps, usual_calls
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.serving.iterations import functions_that_hold_up, share_held_up
from tb_tidy_plugin.rulekit.evidence import E
from tb_tidy_plugin.rulekit.rule import Match, Rule
from tb_tidy_plugin.rulekit.thresholds import Threshold
from tb_tidy_plugin.trace.columns import Rows
from tb_tidy_plugin.words.units import Nanoseconds, Share, times


class CallRule(Rule[E]):
    """Calls of library functions in marked steps, found by their Python frames, with evidence of the rule's own.

    Attributes:
        frames: regular expression for the names of the functions' frames.
        in_most_steps: True if calls count only where at least half of two or more steps have one. Rarer calls are
            deliberate.
    """

    needs = frozenset({"stacks"})
    frames: ClassVar[str]
    in_most_steps: ClassVar[bool] = True

    def detect(self, profile: Profile) -> Iterator[Match[E]]:
        found = usual_calls if self.in_most_steps else calls_in_steps
        rows = self.chosen(profile, found(profile, self.frames))
        if len(rows):
            yield from self.matches(profile, rows)

    def chosen(self, profile: Profile, rows: Rows) -> Rows:
        """Those of the calls `rows` that count, by default all; in row order."""
        return rows

    @abstractmethod
    def matches(self, profile: Profile, rows: Rows) -> Iterator[Match[E]]:
        """The matches of the calls `rows`: at least one, none nested, in row order."""


class LibraryCalls(msgspec.Struct, frozen=True):
    """Evidence of calls of a library function.

    Attributes:
        count: number of calls in the profile. steps: number of steps.
        per_step: number of calls per step. time: of the calls per step.
    """

    count: int
    steps: int
    per_step: float
    time: Nanoseconds

    @property
    def times(self) -> str:
        """Number of calls per step in words."""
        return times(self.per_step)

    @property
    def calls(self) -> int:
        """Number of calls per step, rounded."""
        return round(self.per_step)


class LibraryCallRule(CallRule[LibraryCalls]):
    """Calls of a library function, each of which is a match."""

    def matches(self, profile: Profile, rows: Rows) -> Iterator[Match[LibraryCalls]]:
        time = Nanoseconds(profile.per_step_ns(rows))
        calls = LibraryCalls(len(rows), len(profile.steps.items), profile.per_step_count(rows), time)
        if self.is_worth(calls):
            yield from (Match(row, (row,), calls) for row in rows.tolist())

    def is_worth(self, calls: LibraryCalls) -> bool:
        """True if the calls reach the rule's thresholds."""
        return True


class EngineFunction(msgspec.Struct, frozen=True):
    """Evidence of calls of one function on the thread of a server's engine.

    Attributes:
        part: of the engine. function: its file and name. calls: number of calls that the device waits for.
        time: total waiting time.
        share: of the serving time, for all functions of the part.
    """

    part: str
    function: str
    calls: int
    time: Nanoseconds
    share: Share

    @property
    def how_often(self) -> str:
        """The number of calls that the device waits for."""
        return times(self.calls)


class EngineFunctionRule(Rule[EngineFunction]):
    """Python functions on the thread of a server's engine that its device waits for.

    Attributes:
        parts: regular expression for the names of the functions, by part of the engine.
        inside: True if calls inside an iteration's mark also count.
        min_waiting: the share of the serving time that all functions of a part must exceed together.
    """

    needs = frozenset({"stacks", "device"})
    parts: ClassVar[Mapping[str, str]]
    inside: ClassVar[bool]
    min_waiting: ClassVar[Threshold]

    def detect(self, profile: Profile) -> Iterator[Match[EngineFunction]]:
        for part, files in self.parts.items():
            functions = functions_that_hold_up(profile, files, inside=self.inside)
            share = share_held_up(profile, functions)
            if share <= self.min_waiting:
                continue
            for function in functions:
                time = Nanoseconds(function.waits_ns)
                evidence = EngineFunction(part, function.name, len(function.calls), time, Share(share))
                for row, spans in function.calls.items():
                    yield Match(row, (row,), evidence, subject=part, confidence="medium", lost=spans)
