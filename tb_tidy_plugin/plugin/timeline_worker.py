"""Timelines in a process of their own, which answers questions about windows of traces, and keeps recent timelines.

It reads one `FileQuestion` a line from its input and writes one `Answered` or `Unreadable` a line, until its input
ends.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from tb_tidy_plugin.analysis.timeline import read_timeline
from tb_tidy_plugin.configuration.limits import limits_in
from tb_tidy_plugin.plugin.analysis_worker import OUT_OF_MEMORY, printable
from tb_tidy_plugin.system import allocator, allowance, child
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.cache import Cache
from tb_tidy_plugin.trace.limits import Limits, held_to
from tb_tidy_plugin.trace.remote import path_or_url
from tb_tidy_plugin.words.errors import ConfigurationError, TraceError

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.timeline.timeline import Timeline

TIMELINE_WORK = "timeline"
_KEPT_BYTES = 512 << 20  # of timelines: 60 bytes per event, so that eight of the largest traces fit


class LanesQuestion(msgspec.Struct, frozen=True, tag="lanes"):
    """Arguments of `timeline_answers.lanes_answer`."""


class SliceQuestion(msgspec.Struct, frozen=True, tag="slice"):
    """Arguments of `timeline_answers.slice_answer`; `marked` are ids of events."""

    from_ns: int
    to_ns: int
    width: int
    lanes: list[int]
    marked: msgspec.Raw


class EventQuestion(msgspec.Struct, frozen=True, tag="event"):
    """Arguments of `timeline_answers.event_answer`."""

    event: int


class MarksQuestion(msgspec.Struct, frozen=True, tag="marks"):
    """Arguments of `timeline_answers.marks_answer`."""

    from_ns: int
    to_ns: int
    width: int
    marked: msgspec.Raw


class FindQuestion(msgspec.Struct, frozen=True, tag="find"):
    """Arguments of `timeline_answers.found_answer`; `event` is -1 for none."""

    text: str
    from_ns: int
    event: int
    back: bool


class Crop(msgspec.Struct, frozen=True, tag="crop"):
    """Arguments of `timeline_crop.cropped_trace`."""

    from_ns: int
    to_ns: int
    around_ns: int


About: TypeAlias = LanesQuestion | SliceQuestion | EventQuestion | MarksQuestion | FindQuestion | Crop


class FileQuestion(msgspec.Struct, frozen=True):
    """A question about the file `path` (in bytes, since a path need not be text), in the state of `stamp`.

    `cache` is the folder that may hold its columns, `configuration` the file with the limits of a trace.
    """

    path: bytes
    stamp: str
    about: About
    cache: bytes | None = None
    configuration: bytes | None = None


class Answered(msgspec.Struct, frozen=True, tag="answered"):
    """The answer as JSON, null if there is no such event."""

    answer: msgspec.Raw


class Unreadable(msgspec.Struct, frozen=True, tag="refused"):
    """The trace could not be read."""

    error: str
    advice: str


Reply: TypeAlias = Answered | Unreadable


def main() -> None:
    """Answers until the input ends."""
    output = child.private_output()
    child.step_back()
    allowance.enforce()
    allocator.spare_memory()
    shelf = Shelf()
    for line in child.questions():
        output.write(msgspec.json.encode(shelf.reply(decode(line, FileQuestion))) + b"\n")
        output.flush()


class Shelf:
    """The most recently used timelines."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[bytes, str], Timeline] = OrderedDict()

    def reply(self, question: FileQuestion) -> Reply:
        """The answer, or the reason if there is none."""
        try:
            limits = limits_in(None if question.configuration is None else Path(os.fsdecode(question.configuration)))
            with held_to(limits, TIMELINE_WORK):
                return Answered(answer_to(question.about, self._timeline(question, limits)))
        except (ConfigurationError, TraceError) as problem:
            return Unreadable(printable(problem.error), printable(problem.advice))
        except MemoryError:
            return Unreadable(OUT_OF_MEMORY.error, OUT_OF_MEMORY.advice)

    def _timeline(self, question: FileQuestion, limits: Limits) -> Timeline:
        key = (question.path, question.stamp)
        if key not in self._known:
            self._make_room(question.path)
            cache = Cache(None if question.cache is None else Path(os.fsdecode(question.cache)))
            self._known[key] = read_timeline(path_or_url(os.fsdecode(question.path)), cache, limits)
        self._known.move_to_end(key)
        return self._known[key]

    def _make_room(self, path: bytes) -> None:
        """Evicts earlier states of the file, and the least recently used timelines."""
        for key in [key for key in self._known if key[0] == path]:
            del self._known[key]
        while sum(timeline.size for timeline in self._known.values()) > _KEPT_BYTES:
            self._known.popitem(last=False)


def answer_to(about: About, timeline: Timeline) -> msgspec.Raw:
    """The answer as JSON."""
    from tb_tidy_plugin.plugin import timeline_answers as answers
    from tb_tidy_plugin.plugin.timeline_crop import cropped_trace

    match about:
        case LanesQuestion():
            return answers.encoded(answers.lanes_answer(timeline))
        case SliceQuestion(from_ns, to_ns, width, lanes, marked):
            return answers.encoded(answers.slice_answer(timeline, from_ns, to_ns, width, lanes, _ids(marked)))
        case EventQuestion(event):
            found = answers.event_answer(timeline, event)
            return msgspec.Raw(b"null") if found is None else answers.encoded(found)
        case MarksQuestion(from_ns, to_ns, width, marked):
            return answers.encoded(answers.marks_answer(timeline, from_ns, to_ns, width, _ids(marked)))
        case FindQuestion(text, from_ns, event, back):
            return answers.encoded(answers.found_answer(timeline, text, from_ns, event, back=back))
        case Crop(from_ns, to_ns, around_ns):
            return msgspec.Raw(cropped_trace(timeline, from_ns, to_ns, around_ns))


def _ids(marked: msgspec.Raw) -> list[int]:
    return decode(marked, list[int])


if __name__ == "__main__":
    main()
