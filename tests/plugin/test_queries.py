"""Queries as addresses hold them: what is given and what is not, numbers, choices, orders; what is said of the rest."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from tb_tidy_plugin.plugin.answers import BadQueryError
from tb_tidy_plugin.plugin.queries import (
    CropQuery,
    EventQuery,
    EventsQuery,
    JobQuery,
    OperatorsQuery,
    ProfileQuery,
    Query,
    ReportQuery,
    SliceQuery,
    given,
    read_query,
)
from tb_tidy_plugin.plugin.scan import Key

PROFILE = {"run": "run", "worker": "w", "span": ""}
WINDOW = {"from_ns": "0", "to_ns": "10"}


def refused(kind: type[Query], address: dict[str, str]) -> str:
    with pytest.raises(BadQueryError) as refusal:
        read_query(kind, address)
    return f"{refusal.value.error} {refusal.value.advice}"


def test_what_is_empty_is_given_and_what_is_absent_is_not() -> None:
    assert read_query(ProfileQuery, PROFILE).key == Key("run", "w", "")
    assert refused(ProfileQuery, {"run": "run", "worker": "w"}) == (
        "The query has no `span`. Add `span=…`, with no value if it has no name."
    )
    asked = read_query(ReportQuery, {"run": "run", "worker": ""})
    assert (given(asked.worker), given(asked.span), asked.ranks) == ("", None, "known")
    assert read_query(CropQuery, PROFILE | WINDOW).around_ns is UNSET
    assert read_query(CropQuery, PROFILE | WINDOW | {"around_ns": "0"}).around_ns == 0


def test_what_no_field_is_named_after_is_ignored() -> None:
    assert read_query(Query, {"_": "1"}) == Query()
    assert read_query(ProfileQuery, PROFILE | {"key": "x"}) == read_query(ProfileQuery, PROFILE)


@pytest.mark.parametrize("text", ["0", "7", "007", "9" * 15])
def test_numbers_are_decimals_of_up_to_fifteen_digits(text: str) -> None:
    assert read_query(JobQuery, {"job": text}).job == int(text)


@pytest.mark.parametrize(
    "text", ["", " 7", "7 ", "+7", "-1", "1.0", "1e3", "0x7", "1_0", "٣", "²", "ten", "true", "9" * 16]
)
def test_nothing_else_is_a_number(text: str) -> None:
    said = f"`event={text}` must be a whole number, 0 or greater. Remove it for the default."
    assert refused(EventQuery, PROFILE | {"event": text}) == said


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("limit", "501", "`limit` is larger than 500. Request smaller parts, one after the other."),
        ("width", "4097", "`width` is larger than 4096. Request smaller parts, one after the other."),
        ("width", "0", "`width=0` must be a whole number, 1 or greater. Remove it for the default."),
    ],
)
def test_numbers_have_bounds(name: str, text: str, said: str) -> None:
    kind = SliceQuery if name == "width" else EventsQuery
    assert refused(kind, PROFILE | WINDOW | {"finding": "", name: text}) == said


@pytest.mark.parametrize(
    ("sort", "order", "descends"), [("-calls", "calls", True), ("calls", "calls", False), (None, "host_self_ns", True)]
)
def test_a_minus_puts_the_largest_first(sort: str | None, order: str, descends: bool) -> None:
    asked = read_query(OperatorsQuery, PROFILE | ({} if sort is None else {"sort": sort}))
    assert (asked.order, asked.descends) == (order, descends)


@pytest.mark.parametrize("sort", ["", "-", "--start", "-color", "start,duration"])
def test_only_known_columns_sort(sort: str) -> None:
    assert refused(EventsQuery, PROFILE | {"finding": "x", "sort": sort}) == (
        f"`sort={sort}` is not known. Known: start, duration, name, step, lane, each also with `-`."
    )


def test_a_choice_is_one_of_what_is_known() -> None:
    assert read_query(OperatorsQuery, PROFILE | {"kind": ""}).kind == ""
    assert refused(OperatorsQuery, PROFILE | {"kind": "color"}) == (
        "`kind=color` is not known. Known: annotation, mixed, operator, runtime."
    )
    assert "`group=` is not known." in refused(OperatorsQuery, PROFILE | {"group": ""})
