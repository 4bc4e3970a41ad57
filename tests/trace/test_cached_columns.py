"""Columns from the cache are those of the trace."""

from __future__ import annotations

import json
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import fields

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.estimate.saving import SavingEstimates
from tb_tidy_plugin.profile.events.nesting import nest
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.json import to_json
from tb_tidy_plugin.system import threads
from tb_tidy_plugin.trace import beside, cached_columns
from tb_tidy_plugin.trace.beside import read_before_keeping, read_with_side_files
from tb_tidy_plugin.trace.cache import Cache
from tb_tidy_plugin.trace.cached_columns import columns_key, keep_columns, load_columns
from tb_tidy_plugin.trace.columns import ROW_COLUMNS, EventTable
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.limits import MOST_DEVICES
from tb_tidy_plugin.trace.remote import AnyPath
from tests.support.logdirs import trace
from tests.support.made_up_device import operator, side_file, traced

SAMPLES = Path(__file__).resolve().parents[2] / "sample_runs"
KEY = "0" * 40


@pytest.fixture(autouse=True)
def _keeps_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_columns, "WORTH_KEEPING", 0)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def assert_same(one: object, other: object) -> None:
    """The same values all the way down."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    elif isinstance(one, msgspec.Struct):
        for column in fields(one):
            assert_same(getattr(one, column.name), getattr(other, column.name))
    else:
        assert one == other


@pytest.mark.parametrize("number", range(3))
def test_every_column_comes_back(cache: Cache, number: int) -> None:
    path = find_traces(SAMPLES)[number].path
    table = read_with_side_files(path)
    key = columns_key(path)
    assert key is not None
    keep_columns(cache, key, table)
    again = load_columns(cache, key)
    assert again is not None
    for column in fields(table):
        if column.name == "dropped":
            assert dict(again.dropped) == dict(table.dropped)
        else:
            assert_same(getattr(table, column.name), getattr(again, column.name))


def test_those_with_a_device_from_a_side_file_come_back(cache: Cache, tmp_path: Path) -> None:
    path = traced(tmp_path, [operator("aten::mm", at, at + 50, at) for at in range(100, 1000, 100)])
    device = {"kind": "npu", "name": "Acme X1", "index": MOST_DEVICES}
    side_file(path, [("aten::mm", at, 1, 30_000) for at in range(100, 1000, 100)], device=device)
    table = read_with_side_files(path)
    assert len(table) > 9
    keep_columns(cache, KEY, table)
    again = load_columns(cache, KEY)
    assert again is not None
    assert_same(table.device, again.device)
    assert again.device.max() == MOST_DEVICES


def test_columns_are_mapped_and_not_read(cache: Cache, tmp_path: Path) -> None:
    path = trace(tmp_path / "w.pt.trace.json")
    read_with_side_files(path, cache=cache)
    again = read_with_side_files(path, cache=cache)
    assert not again.start_ns.flags.owndata
    assert not again.start_ns.flags.writeable


def test_columns_are_stored_once_when_that_is_asked(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[EventTable] = []
    monkeypatch.setattr(beside, "keep_columns", lambda _cache, _key, table: stored.append(table))
    read = read_before_keeping(trace(tmp_path / "w.pt.trace.json"), cache=cache)
    assert stored == []
    table = read.taken()
    read.keep()
    read.keep()
    (kept,) = stored
    assert_same(kept.start_ns, table.start_ns)


def test_a_trace_that_changes_before_its_columns_are_stored_has_none(cache: Cache, tmp_path: Path) -> None:
    path = trace(tmp_path / "w.pt.trace.json")
    read = read_before_keeping(path, cache=cache)
    trace(path, operators=4)
    read.keep()
    assert cache.entries() == []


@pytest.mark.parametrize("most_cores", [None, 1])
def test_an_analysis_stores_the_columns_that_were_read(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_cores: int | None
) -> None:
    """Also while it builds the profile: nothing of that changes what is stored."""
    monkeypatch.setattr(threads.ThisProcess, "most_cores", most_cores)
    path = trace(tmp_path / "w.pt.trace.json")
    expected = read_with_side_files(path)
    _ = read_file(find_traces(path)[0], Job(cache=cache)).report
    again = load_columns(cache, columns_key(path) or "")
    assert again is not None
    for name in ROW_COLUMNS:
        assert_same(getattr(again, name), getattr(expected, name))


def test_the_report_from_kept_columns_is_the_same(cache: Cache) -> None:
    """Reports and changes of code are kept, too: those are deleted in between."""
    job = Job(cache=cache)
    first = to_json(analyze_path(SAMPLES, job))
    for entry in cache.entries():
        assert entry.kind == "columns" or entry.delete()
    assert {entry.kind for entry in cache.entries()} == {"columns"}
    assert to_json(analyze_path(SAMPLES, job)) == first


def test_a_side_file_or_another_state_of_the_trace_makes_another_entry(tmp_path: Path) -> None:
    path = trace(tmp_path / "w.pt.trace.json")
    keys = [columns_key(path)]
    side_file = path.with_name(path.name + ".device_events.json")
    side_file.write_text("{}")
    keys.append(columns_key(path))
    side_file.unlink()
    assert columns_key(path) == keys[0]
    trace(path, operators=4)
    keys.append(columns_key(path))
    shutil.copy(path, tmp_path / "other.pt.trace.json")
    keys.append(columns_key(tmp_path / "other.pt.trace.json"))
    assert len(set(keys)) == 4


def test_small_traces_are_not_worth_it(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_columns, "WORTH_KEEPING", 1 << 20)
    read_with_side_files(trace(tmp_path / "w.pt.trace.json"), cache=cache)
    assert cache.entries() == []


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 8, b"\xff" * 100, (2).to_bytes(8, "little") + b"{}"], ids=["empty", "none", "long", "bare"]
)
def test_an_entry_that_holds_something_else_is_no_table(cache: Cache, content: bytes) -> None:
    cache.keep("columns", KEY, [content])
    assert load_columns(cache, KEY) is None


class Kept:
    """The columns of a small trace in a cache, which somebody has written who knows how."""

    def __init__(self, cache: Cache, path: AnyPath) -> None:
        self._cache = cache
        cache.keep("columns", KEY, cached_columns._pieces(read_with_side_files(path)))  # noqa: SLF001 - as it keeps them
        content = bytes(cache.load("columns", KEY) or b"")
        end = 8 + int.from_bytes(content[:8], "little")
        self.head = json.loads(content[8:end])
        self.columns = bytearray(content[-(-end // 64) * 64 :])

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """A column as it lies there, to be written into."""
        (array,) = [each for each in self.head["arrays"] if each["name"] == name]
        count = 1 if array["repeated"] else array["count"]
        start = array["start"]
        size = count * np.dtype(array["dtype"]).itemsize
        return np.frombuffer(memoryview(self.columns)[start : start + size], array["dtype"])

    def loaded(self) -> EventTable | None:
        """What is made of it, with a checksum that fits."""
        head = json.dumps(self.head).encode()
        size = 8 + len(head)
        pieces = [len(head).to_bytes(8, "little"), head, bytes(-size % 64), bytes(self.columns)]
        self._cache.keep("columns", KEY, pieces)
        return load_columns(self._cache, KEY)


@pytest.fixture
def forged(cache: Cache, tmp_path: Path) -> Kept:
    return Kept(cache, find_traces(SAMPLES)[0].path)


def test_what_is_written_the_same_is_loaded(forged: Kept) -> None:
    assert forged.loaded() is not None


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("name", 1 << 30), ("name", -1), ("thread", 1 << 20), ("thread", -1), ("inputs", 1 << 30), ("inputs", -1),
        ("category", 11), ("category", -1), ("forward_thread", 1 << 30), ("forward_thread", -2),
        ("args.number", 1 << 30), ("args.number", -1), ("args.ends", 1 << 40), ("args.ends", -1),
        ("flows.kind", 1 << 30), ("flows.thread", -1), ("end_ns", -(1 << 60)),
    ],
)  # fmt: skip
def test_numbers_of_nothing_are_no_table(forged: Kept, name: str, number: int) -> None:
    column = forged.column(name)
    if not len(column):
        pytest.skip("this trace has none")
    column[-1] = number
    assert forged.loaded() is None


@pytest.mark.parametrize(
    ("key", "value"),
    [*(("count", value) for value in (-1, 0, 1, 3, 1 << 30, 1 << 40, 1 << 62, 1 << 70)),
     *(("start", value) for value in (-1, -64, 1, 3, 1 << 30, 1 << 40, 1 << 62, 1 << 70))],
)  # fmt: skip
def test_columns_of_another_length_or_place_are_no_table(forged: Kept, key: str, value: int) -> None:
    for array in forged.head["arrays"]:
        if array["name"] in {"start_ns", "args.number", "flows.time_ns"}:
            before, array[key] = array[key], value
            assert before == value or forged.loaded() is None, array
            array[key] = before


@pytest.mark.parametrize("dtype", ["<f8", "<i2", "|O", "<U8", "i8,i8", "V8", "no dtype", "<M8[ns]", ">i8"])
def test_columns_of_another_type_are_no_table(forged: Kept, dtype: str) -> None:
    for array in forged.head["arrays"]:
        before, array["dtype"] = array["dtype"], dtype
        assert forged.loaded() is None, array
        array["dtype"] = before


def test_a_few_bytes_are_not_read_as_any_number_of_events(forged: Kept) -> None:
    """Each column one value again and again: no memory at all, until somebody works with it."""
    for array in forged.head["arrays"]:
        if "." not in array["name"] or array["name"] == "args.number":
            array.update(count=1 << 40, repeated=True)
    assert forged.loaded() is None


@pytest.mark.parametrize("claimed", [0, 1, 1 << 20, 1 << 40, 1 << 47])
def test_args_are_unpacked_to_the_size_that_they_have(forged: Kept, claimed: int) -> None:
    forged.head["texts"][0] = claimed
    assert forged.loaded() is None


@pytest.mark.parametrize("key", ["threads", "metadata", "names", "arrays"])
def test_a_head_nested_beyond_all_measure_is_no_table(forged: Kept, cache: Cache, key: str) -> None:
    text = json.dumps(forged.head | {key: "HERE"}).replace('"HERE"', "[" * 100_000 + "]" * 100_000).encode()
    cache.keep("columns", KEY, [len(text).to_bytes(8, "little"), text, bytes(64), bytes(forged.columns)])
    assert load_columns(cache, KEY) is None


def test_whatever_is_written_into_columns_ends_no_process(forged: Kept) -> None:
    """What gets by is worked with, in loops without the interpreter, too: it may be refused, and nothing else."""
    chance = random.Random(7)
    whole = bytes(forged.columns)
    names = [array["name"] for array in forged.head["arrays"]]
    loaded = 0
    for _ in range(40):
        forged.columns = bytearray(whole)
        for _ in range(3):
            column = forged.column(chance.choice(names))
            if len(column):
                at, most = chance.randrange(len(column)), 1 if column.dtype == bool else np.iinfo(column.dtype).max
                column[at] = chance.choice([0, 1, 2, most, chance.randrange(most + 1)])
        if (table := forged.loaded()) is not None:
            loaded += 1
            with suppress(IndexError, ValueError, OverflowError, KeyError):
                profile = Profile(table)
                nest(table, np.arange(len(table.names), dtype=np.int32))
                SavingEstimates(profile)
    assert loaded > 5
