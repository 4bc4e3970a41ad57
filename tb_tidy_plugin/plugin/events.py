"""The matched events of a finding: columns with each text stored once, and pages of them in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from tb_tidy_plugin.plugin.models import EventRow, EventsAnswer

if TYPE_CHECKING:
    from tb_tidy_plugin.analysis.findings import Locate
    from tb_tidy_plugin.profile.profile import Profile
    from tb_tidy_plugin.sources.frames import Frame
    from tb_tidy_plugin.trace.columns import Rows

ORDERS = ("start", "duration", "name", "step", "lane")

NO_STEP = -1


class EventColumns(msgspec.Struct, frozen=True):
    """Events in order of start. A text is a position in `texts`; `step` is one in `steps`, -1 outside all steps."""

    texts: list[str]
    steps: list[str]
    id: list[int]
    start_ns: list[int]
    duration_ns: list[int]
    step: list[int]
    name: list[int]
    lane: list[int]
    shapes: list[int]
    place: list[int]


def columns_of(profile: Profile, rows: Rows, locate: Locate) -> EventColumns:
    """The columns of `rows`, which are in order of start; `locate` gives the place of an event."""
    from tb_tidy_plugin.trace.strings import NumberTable

    table = profile.table
    texts: NumberTable[str] = NumberTable()

    def numbers(values: Sequence[str]) -> list[int]:
        return [texts.number(value) for value in values]

    return EventColumns(
        id=table.file_order[rows].tolist(),
        start_ns=table.start_ns[rows].tolist(),
        duration_ns=table.durations_of(rows).tolist(),
        step=profile.step_of(rows).tolist(),
        name=numbers([table.names[number] for number in table.name[rows].tolist()]),
        lane=numbers(_lanes(profile, rows)),
        shapes=numbers(_shapes(profile, rows)),
        place=numbers([_place_text(locate(row, ())) for row in rows.tolist()]),
        texts=list(texts.values()),
        steps=[step.name for step in profile.steps.items],
    )


def _lanes(profile: Profile, rows: Rows) -> list[str]:
    """The host thread or device stream each event ran on, in words."""
    from tb_tidy_plugin.profile.timeline.timeline import stream_name, thread_name
    from tb_tidy_plugin.trace.columns import DEVICE_WORK

    table = profile.table
    on_device = table.is_category(DEVICE_WORK)[rows].tolist()
    columns = (table.thread[rows].tolist(), table.device[rows].tolist(), table.stream[rows].tolist())
    return [
        stream_name(table.threads[thread], device, stream) if is_device else thread_name(table.threads[thread])
        for is_device, thread, device, stream in zip(on_device, *columns, strict=True)
    ]


def _shapes(profile: Profile, rows: Rows) -> list[str]:
    from tb_tidy_plugin.profile.timeline.timeline import shapes_line
    from tb_tidy_plugin.trace.columns import Category

    operators = (profile.table.category[rows] == Category.OPERATOR).nonzero()[0]
    found = [""] * len(rows)
    for at, inputs in zip(operators.tolist(), profile.inputs_of(rows[operators]), strict=True):
        found[at] = shapes_line(inputs.dims)
    return found


def _place_text(frame: Frame | None) -> str:
    from tb_tidy_plugin.report.generated import generated_of, place_text

    return place_text(frame.file, frame.line, generated_of(frame)) if frame else ""


def events_page(columns: EventColumns, offset: int, limit: int, order: str, *, descending: bool) -> EventsAnswer:
    """`limit` rows from `offset`, sorted by one of `ORDERS`; equal ones stay in order of start in both directions."""
    at = sorted(range(len(columns.start_ns)), key=_sort_key(columns, order), reverse=descending)
    return EventsAnswer(total=len(at), offset=offset, rows=[_row(columns, row) for row in at[offset : offset + limit]])


def _sort_key(columns: EventColumns, order: str) -> Callable[[int], int | str]:
    texts, name, lane = columns.texts, columns.name, columns.lane
    keys: dict[str, Callable[[int], int | str]] = {
        "start": columns.start_ns.__getitem__,
        "duration": columns.duration_ns.__getitem__,
        "step": columns.step.__getitem__,
        "name": lambda row: texts[name[row]],
        "lane": lambda row: texts[lane[row]],
    }
    return keys[order]


def _row(columns: EventColumns, row: int) -> EventRow:
    texts, step = columns.texts, columns.step[row]
    return EventRow(
        id=columns.id[row],
        name=texts[columns.name[row]],
        start_ns=columns.start_ns[row],
        duration_ns=columns.duration_ns[row],
        step=None if step == NO_STEP else columns.steps[step],
        lane=texts[columns.lane[row]],
        shapes=texts[columns.shapes[row]],
        place=texts[columns.place[row]],
    )
