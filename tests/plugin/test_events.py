"""The evidence table: what a row says, and pages of rows in every order."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tidy_plugin.plugin.events import EventColumns, columns_of, events_page
from tb_tidy_plugin.plugin.models import EventRow
from tb_tidy_plugin.profile.events.inputs import InputSizes
from tb_tidy_plugin.profile.timeline.timeline import shapes_line
from tb_tidy_plugin.rulekit.testing import A100, draw, row_of
from tb_tidy_plugin.sources.places import place_of

PROFILE = draw(
    """
    ProfilerStep#9          0-499
      train.py(12): step    1-498
        aten::mm            100-200  dims=64x32,32x8  types=float,float  kernel=gemm@150-450
        aten::add           300-320  dims=8,  types=float,Scalar
    ProfilerStep#10         500-900
      train.py(12): step    501-899
        aten::mm            600-650  dims=64x32,32x8  types=float,float  kernel=gemm@640-800
    aten::mm                950-990  thread=2
    """,
    gpu=A100,
)


def columns() -> EventColumns:
    rows = PROFILE.named("aten::mm", "aten::add")
    rows = np.append(rows, row_of(PROFILE, "gemm"))
    rows = rows[np.argsort(PROFILE.table.start_ns[rows], kind="stable")]
    return columns_of(PROFILE, rows, lambda row, _: place_of(PROFILE, row))


def starts_us(order: str, *, descending: bool = False) -> list[int]:
    page = events_page(columns(), 0, 100, order, descending=descending)
    return [row.start_ns // 1000 for row in page.rows]


def test_a_row_of_the_host() -> None:
    assert events_page(columns(), 0, 1, "start", descending=False).rows == [
        EventRow(
            id=int(PROFILE.table.file_order[row_of(PROFILE, "aten::mm")]),
            name="aten::mm",
            start_ns=100_000,
            duration_ns=100_000,
            step="ProfilerStep#9",
            lane="Thread 1",
            shapes="64×32, 32×8",
            place="train.py:12",
        )
    ]


def test_a_row_of_a_device_belongs_to_the_step_and_line_that_launched_it() -> None:
    assert events_page(columns(), 1, 1, "start", descending=False).rows == [
        EventRow(
            id=int(PROFILE.table.file_order[row_of(PROFILE, "gemm")]),
            name="gemm",
            start_ns=150_000,
            duration_ns=300_000,
            step="ProfilerStep#9",
            lane="Device 0, stream 7",
            shapes="",
            place="train.py:12",
        )
    ]


def test_a_row_outside_all_steps_and_stacks() -> None:
    [row] = events_page(columns(), 4, 1, "start", descending=False).rows
    assert (row.step, row.lane, row.place, row.shapes) == (None, "Thread 2", "", "")


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("start", [100, 150, 300, 600, 950]),
        ("duration", [300, 950, 600, 100, 150]),
        ("step", [950, 100, 150, 300, 600]),  # by time, not by text: step 9 before step 10
        ("name", [300, 100, 600, 950, 150]),
        ("lane", [150, 100, 300, 600, 950]),
    ],
)
def test_order(order: str, expected: list[int]) -> None:
    assert starts_us(order) == expected


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("start", [950, 600, 300, 150, 100]),
        ("step", [600, 100, 150, 300, 950]),
        ("name", [150, 100, 600, 950, 300]),
        ("lane", [950, 100, 300, 600, 150]),
    ],
)
def test_descending_keeps_equal_rows_in_order_of_start(order: str, expected: list[int]) -> None:
    assert starts_us(order, descending=True) == expected


def test_pages_join_to_the_whole() -> None:
    pages = [events_page(columns(), offset, 2, "duration", descending=True) for offset in (0, 2, 4, 6)]
    assert [page.total for page in pages] == [5, 5, 5, 5]
    assert [len(page.rows) for page in pages] == [2, 2, 1, 0]
    joined = [row.start_ns // 1000 for page in pages for row in page.rows]
    assert joined == starts_us("duration", descending=True)


@pytest.mark.parametrize(
    ("dims", "text"),
    [
        ([()], ""),
        ([(4, 3), (), (3,)], "4×3, 3"),
        ([((4, 3), (2,)), (5,)], "[4×3, 2], 5"),
    ],
)
def test_shapes_in_one_line(dims: list[InputSizes], text: str) -> None:
    assert shapes_line(dims) == text
