"""Answers stay within their tokens, and pages put together are the whole answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tb_tidy_plugin.ask.arguments import RunsQuestion
from tb_tidy_plugin.ask.pages import CursorError, TokensError, WholeAnswer, columns, if_known, page, picked, tokens_in
from tb_tidy_plugin.report.figures import DeviceKernelRow, OperatorRow
from tb_tidy_plugin.report.model import Finding
from tb_tidy_plugin.words.causes import Kind


def found(rows: int, text: str = "x" * 40) -> WholeAnswer:
    numbered = [{"number": at, "text": text} for at in range(rows)]
    return WholeAnswer({"rows_there": rows}, {"number": "", "text": ""}, numbered)


def read(text: bytes) -> Any:  # noqa: ANN401 - JSON
    return json.loads(text)


@pytest.mark.parametrize("tokens", [500, 777, 2_000])
@pytest.mark.parametrize("text", ["x" * 40, "é" * 300, '"\\'])
def test_pages_put_together_are_all_rows(tokens: int, text: str) -> None:
    numbers: list[int] = []
    cursor, pages = "", 0
    while True:
        answer = page(RunsQuestion(tokens=tokens, cursor=cursor), found(1_000, text))
        assert tokens_in(answer) <= tokens
        shown = read(answer)
        numbers += [row[0] for row in shown["rows"]]
        assert shown.get("left", 0) == 1_000 - len(numbers)
        pages += 1
        if "next" not in shown:
            break
        cursor = shown["next"]
    assert numbers == list(range(1_000))
    assert pages > 1


def test_a_page_is_full() -> None:
    answer = page(RunsQuestion(tokens=500), found(300))
    row = len('[0,""],') + 40 + 2
    assert 500 * 4 - len(answer) < 2 * row


def test_what_has_room_is_on_one_page() -> None:
    shown = read(page(RunsQuestion(), found(2)))
    assert list(shown) == ["marks", "rows_there", "columns", "rows"]
    assert shown["rows"] == [[0, "x" * 40], [1, "x" * 40]]
    assert shown["columns"] == ["number", "text"]


def test_an_empty_answer_has_no_rows() -> None:
    assert read(page(RunsQuestion(), found(0)))["rows"] == []


@pytest.mark.parametrize("cursor", ["1", "1.", "x.{}", "-1.{}", "301.{}", "٣.{}", "1.00000000"])
def test_a_cursor_of_something_else_is_refused(cursor: str) -> None:
    digest = read(page(RunsQuestion(tokens=500), found(300)))["next"].partition(".")[2]
    with pytest.raises(CursorError):
        page(RunsQuestion(tokens=500, cursor=cursor.format(digest)), found(300))


@pytest.mark.parametrize(("asked", "there"), [(RunsQuestion(path="other"), found(300)), (RunsQuestion(), found(301))])
def test_a_cursor_of_another_question_or_other_recordings_is_refused(asked: RunsQuestion, there: WholeAnswer) -> None:
    cursor = read(page(RunsQuestion(tokens=500), found(300)))["next"]
    other = RunsQuestion(path=asked.path, cursor=cursor)
    with pytest.raises(CursorError, match="another answer"):
        page(other, there)


def test_the_next_page_may_have_another_size() -> None:
    cursor = read(page(RunsQuestion(tokens=500), found(300)))["next"]
    first = int(cursor.partition(".")[0])
    assert read(page(RunsQuestion(tokens=2_000, cursor=cursor), found(300)))["rows"][0][0] == first


def test_a_row_that_is_too_long_says_how_many_tokens_it_takes() -> None:
    long = found(1, "x" * 4_000)
    with pytest.raises(TokensError) as problem:
        page(RunsQuestion(tokens=500), long)
    needed = int("".join(filter(str.isdigit, problem.value.advice)))
    answer = page(RunsQuestion(tokens=needed), long)
    assert len(read(answer)["rows"]) == 1
    assert tokens_in(answer) <= needed


KERNEL = DeviceKernelRow(
    key="k", family=Kind.MATRIX, operator="aten::«mm»", name="x" * 200, count=2, total_ns=12_345, share=1 / 3,
    mean_ns=6_172, flops_per_second=None, bytes_per_second=None, roofline=0.12345, tensor_cores=True, replayed=0,
)  # fmt: skip


class TestPicked:
    """A column has the unit that its name says, and text that may be of a recording stands in quotes."""

    def test_units_quotes_and_figures(self) -> None:
        wanted = columns(
            DeviceKernelRow, "family operator count total_us=total_ns share roofline tensor_cores known_by"
        )
        row = picked(wanted, KERNEL)
        quoted = "«aten::\ufffdmm\ufffd»"
        assert list(row.values()) == [Kind.MATRIX, quoted, 2, 12.3, 0.3333, 0.123, True, None]
        assert list(row) == list(wanted)

    def test_names_are_cut(self) -> None:
        assert picked(columns(DeviceKernelRow, "name"), KERNEL) == {"name": f"«{'x' * 119}…»"}

    def test_no_value_has_no_fields(self) -> None:
        assert picked({"low_us": "saving.low_ns"}, None) == {"low_us": None}

    def test_what_is_computed_stands_in_its_place(self) -> None:
        wanted = columns(DeviceKernelRow, "count trace= total_us=total_ns")
        assert list(picked(wanted, KERNEL, trace="t-1").items()) == [("count", 2), ("trace", "t-1"), ("total_us", 12.3)]

    @pytest.mark.parametrize("kind", [DeviceKernelRow, OperatorRow, Finding])
    def test_a_column_of_no_field_is_refused(self, kind: type) -> None:
        with pytest.raises(AssertionError, match="has no no_such_field"):
            columns(kind, "name=no_such_field")

    def test_a_saving_of_nothing_is_known(self) -> None:
        assert if_known(low_us=0.0, speedup=None, ranks=[], trace="", left_out=0) == {"low_us": 0.0, "left_out": 0}
