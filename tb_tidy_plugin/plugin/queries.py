"""Queries of the web API, one struct for each form, and their parser.

A field without a default must be given, though it may be empty. Other parameters of an address are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType, inspect

from tb_tidy_plugin.plugin.answers import BadQueryError
from tb_tidy_plugin.plugin.events import ORDERS
from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.report.chosen import KERNEL_ORDERS, OPERATOR_ORDERS
from tb_tidy_plugin.report.figures import CallKind, OperatorGroup
from tb_tidy_plugin.system.decoders import type_info
from tb_tidy_plugin.words.causes import Kind

MOST_DIGITS = 15
_MOST_ROWS = 500
USUAL_ROWS = 100
MOST_LETTERS = 200
MOST_PIXELS = 4_096
USUAL_PIXELS = 1_024
MOST_LANES = 500
LANES = r"^([0-9]{1,6}(,[0-9]{1,6})*)?$"

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=10**MOST_DIGITS - 1)]
RowCount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_MOST_ROWS)]
Pixels: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MOST_PIXELS)]
LaneNumbers: TypeAlias = Annotated[str, msgspec.Meta(pattern=LANES)]


def _sorts(columns: Sequence[str]) -> msgspec.Meta:
    """Columns to sort by; a `-` before one puts the largest first."""
    return msgspec.Meta(extra_json_schema={"enum": [sign + column for column in columns for sign in ("", "-")]})


EventSort: TypeAlias = Annotated[str, _sorts(ORDERS)]
OperatorSort: TypeAlias = Annotated[str, _sorts(OPERATOR_ORDERS)]
KernelSort: TypeAlias = Annotated[str, _sorts(KERNEL_ORDERS)]


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all queries, and the query of routes without parameters."""


class RunQuery(Query, frozen=True):
    """Names a run."""

    run: str


class RunsQuery(Query, frozen=True):
    """Query for the content of the logdir: looked up `now`, or `calm`ly, only if that is cheap."""

    look: Literal["now", "calm"] = "now"


class BoardQuery(Query, frozen=True):
    """All runs; `analyse=all` also analyses the unknown ones."""

    analyse: Literal["few", "all"] = "few"


class ProfileQuery(RunQuery, frozen=True):
    """Names one trace of a run."""

    worker: str
    span: str

    @property
    def key(self) -> Key:
        """The trace's key among all profiles."""
        return Key(self.run, self.worker, self.span)


class ReportQuery(RunQuery, frozen=True):
    """Names the traces of a run, of one worker and of one span if these are given, though empty.

    With `ranks=all` the run's other ranks are analysed, too.
    """

    worker: str | UnsetType = UNSET
    span: str | UnsetType = UNSET
    ranks: Literal["known", "all"] = "known"


class ExportQuery(ProfileQuery, frozen=True):
    """`muted` are ids of findings, separated by commas."""

    muted: str = ""


class FileQuery(ProfileQuery, frozen=True):
    """`file` is the name of a source file, as in the trace."""

    file: str


class StackQuery(ProfileQuery, frozen=True):
    """`place` is the position of one of the finding's places."""

    finding: str
    place: _Count = 0


class PageQuery(ProfileQuery, frozen=True, kw_only=True):
    """A page of a table, sorted by a column; a `-` before it puts the largest first."""

    offset: _Count = 0
    limit: RowCount = USUAL_ROWS
    sort: str

    @property
    def order(self) -> str:
        """The column to sort by."""
        return self.sort.removeprefix("-")

    @property
    def descends(self) -> bool:
        """True if the largest comes first."""
        return self.sort.startswith("-")


class EventsQuery(PageQuery, frozen=True, kw_only=True):
    """The events of a finding."""

    finding: str
    sort: EventSort = "start"


class OperatorsQuery(PageQuery, frozen=True, kw_only=True):
    """`filter` is a part of a name, a shape, a place or a module, in any case, or the key of one row."""

    group: OperatorGroup = "name"
    kind: Literal["", CallKind] = ""
    filter: str = ""
    sort: OperatorSort = "-host_self_ns"


class KernelsQuery(PageQuery, frozen=True, kw_only=True):
    """`filter` is a part of a name, an operator or a family, in any case, or the key of one row."""

    family: Kind | None = None
    filter: str = ""
    sort: KernelSort = "-total_ns"


class IdleQuery(ProfileQuery, frozen=True):
    """`at_ns` is a time in ns since the recording's start."""

    at_ns: _Count


class EventQuery(ProfileQuery, frozen=True):
    """`event` is the id of an event on the timeline."""

    event: _Count


class FindQuery(ProfileQuery, frozen=True):
    """`q` is part of an event's name; the search continues at `event`, else at `from_ns`."""

    q: Annotated[str, msgspec.Meta(max_length=MOST_LETTERS)]
    from_ns: _Count = 0
    event: _Count | UnsetType = UNSET
    direction: Literal["next", "previous"] = "next"


class WindowQuery(ProfileQuery, frozen=True):
    """Part of a recording: from `from_ns` to before `to_ns`, in ns since its start."""

    from_ns: _Count
    to_ns: _Count


class CropQuery(WindowQuery, frozen=True):
    """`around_ns` is the time whose step is always kept, by default the middle of the window."""

    around_ns: _Count | UnsetType = UNSET


class MarksQuery(WindowQuery, frozen=True):
    """A window that is `width` pixels wide, with the events of `finding` marked."""

    width: Pixels = USUAL_PIXELS
    finding: str = ""


class SliceQuery(MarksQuery, frozen=True):
    """`lanes` are numbers separated by commas; empty for all."""

    lanes: LaneNumbers = ""


class CompareQuery(Query, frozen=True, kw_only=True):
    """Two sides, each a run, one of its ranks, spans and a range of steps; and a page of the differences."""

    base: str
    base_rank: str = ""
    base_span: str = ""
    base_steps: str = ""
    candidate: str
    candidate_rank: str = ""
    candidate_span: str = ""
    candidate_steps: str = ""
    q: str = ""
    offset: _Count = 0
    limit: RowCount = USUAL_ROWS


class JobQuery(Query, frozen=True):
    """`job` is the number of a benchmark."""

    job: _Count


_Query = TypeVar("_Query", bound=Query)
_Value = TypeVar("_Value")


def given(value: _Value | UnsetType) -> _Value | None:
    """The value; None if the address does not contain it."""
    return None if isinstance(value, UnsetType) else value


def read_query(kind: type[_Query], address: Mapping[str, str]) -> _Query:
    """The query in an address.

    Raises:
        BadQueryError: a field is missing or invalid.
    """
    values: dict[str, object] = {}
    for field in _fields(kind):
        text = address.get(field.name)
        if text is not None:
            values[field.name] = _value(field.name, text, field.type)
        elif field.required:
            raise BadQueryError(
                f"The query has no `{field.name}`.",
                f"Add `{field.name}=…`, with no value if it has no name.",
            )
    return kind(**values)


@cache
def _fields(kind: type[Query]) -> tuple[inspect.Field, ...]:
    described = type_info(kind)
    assert isinstance(described, inspect.StructType)
    return described.fields


def _value(name: str, text: str, kind: inspect.Type) -> object:
    match kind:
        case inspect.IntType(ge=least, le=most):
            return _number(name, text, least or 0, most)
        case inspect.LiteralType(values=known) | inspect.Metadata(extra_json_schema={"enum": known}):
            return _one_of(name, text, [str(each) for each in known])
        case inspect.UnionType(types=(inspect.EnumType(cls=words), inspect.NoneType())):
            return words(_one_of(name, text, [each.value for each in words]))
        case _:
            return text


def _number(name: str, text: str, least: int, most: int | None) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS) or int(text) < least:
        raise BadQueryError(
            f"`{name}={text}` must be a whole number, {least} or greater.", "Remove it for the default."
        )
    if most is not None and int(text) > most:
        raise BadQueryError(f"`{name}` is larger than {most}.", "Request smaller parts, one after the other.")
    return int(text)


def _one_of(name: str, text: str, known: Sequence[str]) -> str:
    if text in known:
        return text
    plain = [each for each in known if each and not each.startswith("-")]
    also = ", each also with `-`" if any(each.startswith("-") for each in known) else ""
    raise BadQueryError(f"`{name}={text}` is not known.", f"Known: {', '.join(plain)}{also}.")
