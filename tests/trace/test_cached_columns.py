"""Columns from the cache are those of the trace."""

from __future__ import annotations

import shutil
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest

from tb_tidy_plugin.report.engines import Engine
from tb_tidy_plugin.report.json import to_json
from tb_tidy_plugin.report.paths import analyze_path
from tb_tidy_plugin.trace import cached_columns
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.cache import Cache
from tb_tidy_plugin.trace.cached_columns import columns_key, keep_columns, load_columns
from tb_tidy_plugin.trace.files import find_traces
from tests.support.logdirs import trace

SAMPLES = Path(__file__).resolve().parents[2] / "sample_runs"


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
    elif is_dataclass(one):
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


def test_columns_are_mapped_and_not_read(cache: Cache, tmp_path: Path) -> None:
    path = trace(tmp_path / "w.pt.trace.json")
    read_with_side_files(path, cache=cache)
    again = read_with_side_files(path, cache=cache)
    assert not again.start_ns.flags.owndata
    assert not again.start_ns.flags.writeable


def test_the_report_from_kept_columns_is_the_same(cache: Cache) -> None:
    """Reports are kept, too: those are deleted in between."""
    engine = Engine(jobs=1, cache=cache)
    first = to_json(analyze_path(SAMPLES, engine=engine))
    for entry in cache.entries():
        assert entry.kind != "report" or entry.delete()
    assert {entry.kind for entry in cache.entries()} == {"columns"}
    assert to_json(analyze_path(SAMPLES, engine=engine)) == first


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
    cache.keep("columns", "0" * 40, [content])
    assert load_columns(cache, "0" * 40) is None
