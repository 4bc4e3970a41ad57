"""Answers about the timeline, computed by a separate process and passed on unchanged."""

from __future__ import annotations

import re

from tb_tidy_plugin.plugin.answers import BadQueryError
from tb_tidy_plugin.plugin.queries import (
    LANES,
    MOST_LANES,
    CropQuery,
    EventQuery,
    FindQuery,
    MarksQuery,
    ProfileQuery,
    SliceQuery,
    WindowQuery,
    given,
)
from tb_tidy_plugin.plugin.served import ANALYSIS_PATIENCE_S, Served
from tb_tidy_plugin.plugin.timeline_worker import (
    About,
    Crop,
    EventQuestion,
    FindQuestion,
    LanesQuestion,
    MarksQuestion,
    SliceQuestion,
)
from tb_tidy_plugin.words.errors import NotFoundError


def lanes(served: Served, asked: ProfileQuery) -> bytes:
    """Lanes, steps and length of a recording."""
    return _answer(served, asked, LanesQuestion())


def timeline(served: Served, asked: SliceQuery) -> bytes:
    """Bars and arrows of a window."""
    from_ns, to_ns = _window(asked)
    numbers = _lane_numbers(asked.lanes)
    marked = served.timelines.marked(asked.key, asked.finding, ANALYSIS_PATIENCE_S)
    return _answer(served, asked, SliceQuestion(from_ns, to_ns, asked.width, numbers, marked))


def event(served: Served, asked: EventQuery) -> bytes:
    """One event."""
    return _answer(served, asked, EventQuestion(asked.event))


def found(served: Served, asked: FindQuery) -> bytes:
    """The next event of a name, or the previous one."""
    event = given(asked.event)
    about = FindQuestion(asked.q, asked.from_ns, -1 if event is None else event, asked.direction == "previous")
    return _answer(served, asked, about)


def marks(served: Served, asked: MarksQuery) -> bytes:
    """Positions of a finding's events in a window."""
    from_ns, to_ns = _window(asked)
    marked = served.timelines.marked(asked.key, asked.finding, ANALYSIS_PATIENCE_S)
    return _answer(served, asked, MarksQuestion(from_ns, to_ns, asked.width, marked))


def cropped(served: Served, asked: CropQuery) -> bytes:
    """A part of the recording as a separate trace."""
    from_ns, to_ns = _window(asked)
    around_ns = given(asked.around_ns)
    return _answer(served, asked, Crop(from_ns, to_ns, (from_ns + to_ns) // 2 if around_ns is None else around_ns))


def _answer(served: Served, asked: ProfileQuery, about: About) -> bytes:
    text = served.timelines.answer(asked.key, about, ANALYSIS_PATIENCE_S)
    if text is None:
        raise NotFoundError("This profile has no such event, or it is not drawn.", "Reload the report.")
    return text


def _window(asked: WindowQuery) -> tuple[int, int]:
    if asked.to_ns <= asked.from_ns:
        raise BadQueryError("The window ends before it begins.", "Ask for `to_ns` above `from_ns`.")
    return asked.from_ns, asked.to_ns


def _lane_numbers(text: str) -> list[int]:
    """Numbers of lanes; empty for all of them."""
    numbers = [int(each) for each in text.split(",") if each] if re.fullmatch(LANES, text) else None
    if numbers is None or len(numbers) > MOST_LANES:
        raise BadQueryError(f"`lanes={text[:60]}` is not a list of lanes.", f"Name at most {MOST_LANES}: `lanes=0,3`.")
    return numbers
