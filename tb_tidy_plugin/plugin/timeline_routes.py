"""The routes of the timeline. Each answer is that of a process of its own, passed on as it is."""

from __future__ import annotations

import re

import msgspec
from flask import Blueprint, Response, request

from tb_tidy_plugin.errors import NotFoundError
from tb_tidy_plugin.plugin.answers import JSON, BadQueryError
from tb_tidy_plugin.plugin.queries import number, profile_key
from tb_tidy_plugin.plugin.timeline_worker import About, Crop, Event, Lanes, Marks, Slice
from tb_tidy_plugin.plugin.timelines import Timelines

PATIENCE_S = 20.0
MOST_PIXELS = 4_096
MOST_LANES = 500
LANES = re.compile(r"(\d{1,6}(,\d{1,6})*)?", re.ASCII)
CROP_NAME = "torchtidy-crop.pt.trace.json"


def add_timeline(api: Blueprint, timelines: Timelines) -> None:
    """Adds the routes to `api`."""

    def answer(about: About) -> Response:
        text = timelines.answer(profile_key(), about, PATIENCE_S)
        if text is None:
            raise NotFoundError("This profile has no such event, or it is not drawn.", "Reload the report.")
        return Response(text, mimetype=JSON)

    def marked() -> msgspec.Raw:
        return timelines.marked(profile_key(), request.args.get("finding", ""), PATIENCE_S)

    @api.get("/timeline/lanes")
    def timeline_lanes() -> Response:
        return answer(Lanes())

    @api.get("/timeline")
    def timeline() -> Response:
        from_ns, to_ns = _window()
        return answer(Slice(from_ns, to_ns, _width(), _lanes(), marked()))

    @api.get("/timeline/event")
    def timeline_event() -> Response:
        return answer(Event(number("event")))

    @api.get("/timeline/marks")
    def timeline_marks() -> Response:
        from_ns, to_ns = _window()
        return answer(Marks(from_ns, to_ns, _width(), marked()))

    @api.get("/timeline/trace")
    def timeline_trace() -> Response:
        from_ns, to_ns = _window()
        found = answer(Crop(from_ns, to_ns, number("around_ns", (from_ns + to_ns) // 2)))
        found.headers["Content-Disposition"] = f'attachment; filename="{CROP_NAME}"'
        return found


def _window() -> tuple[int, int]:
    from_ns, to_ns = number("from_ns"), number("to_ns")
    if to_ns <= from_ns:
        raise BadQueryError("The window ends before it begins.", "Ask for `to_ns` above `from_ns`.")
    return from_ns, to_ns


def _width() -> int:
    width = number("width", 1024)
    if not 0 < width <= MOST_PIXELS:
        raise BadQueryError(f"`width={width}` must be a number of pixels from 1 to {MOST_PIXELS}.", "Ask for fewer.")
    return width


def _lanes() -> list[int]:
    """Numbers of lanes, none for all of them."""
    text = request.args.get("lanes", "")
    lanes = [int(each) for each in text.split(",") if each] if LANES.fullmatch(text) else None
    if lanes is None or len(lanes) > MOST_LANES:
        raise BadQueryError(f"`lanes={text[:60]}` is not a list of lanes.", f"Name at most {MOST_LANES}: `lanes=0,3`.")
    return lanes
