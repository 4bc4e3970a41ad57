"""Measurements kept in the cache and beside traces, and what is made of files that somebody else wrote."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tb_tidy_plugin.benchmarks import store
from tb_tidy_plugin.benchmarks.store import Measurements, StoreError, cached, keep, read_beside, save_beside
from tb_tidy_plugin.system.private import HAS_OWNERS
from tb_tidy_plugin.trace.cache import say_once
from tests.support.foreign import given_away, group_may_write, linked, piped
from tests.support.measurements import A100, PAIR, THIS_CPU, measurement


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


class TestCache:
    def test_gives_back_what_was_kept_for_the_very_statements(self) -> None:
        keep(measurement())
        assert cached("some-rule", PAIR) == [measurement()]
        assert cached("another-rule", PAIR) == []
        assert cached("some-rule", replace(PAIR, setup=PAIR.setup + "\n")) == []

    def test_a_later_measurement_takes_the_place_of_an_earlier_one_on_the_same_device(self) -> None:
        keep(measurement(ratio=(0.5, 0.4, 0.6)))
        keep(measurement(ratio=(0.7, 0.6, 0.8)))
        keep(measurement(on=A100))
        assert sorted(each.ratio for each in cached("some-rule", PAIR)) == [0.5, 0.7]

    def test_files_that_are_none_of_ours_are_passed_over(self, own_cache: Path) -> None:
        keep(measurement())
        (file,) = own_cache.rglob("*.json")
        file.write_text("{}")
        assert cached("some-rule", PAIR) == []
        file.write_bytes(msgspec.json.encode(measurement(rule="another-rule")))
        assert cached("some-rule", PAIR) == []

    def test_nobody_else_may_read_it_whatever_the_umask(self, own_cache: Path) -> None:
        before = os.umask(0)
        try:
            keep(measurement())
        finally:
            os.umask(before)
        (file,) = own_cache.rglob("*.json")
        assert [stat.S_IMODE(each.stat().st_mode) for each in (file, file.parent)] == [0o600, 0o700]
        assert cached("some-rule", PAIR) == [measurement()]

    @pytest.mark.skipif(not HAS_OWNERS, reason="this system has no permissions of this kind")
    @pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
    @pytest.mark.parametrize("change", [group_may_write, linked, given_away])
    def test_what_others_may_have_written_is_passed_over_and_left_alone(
        self, own_cache: Path, change: Callable[[Path], None], is_folder: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        say_once.cache_clear()
        keep(measurement())
        (file,) = own_cache.rglob("*.json")
        place = file.parent if is_folder else file
        change(place)
        before = place.lstat()
        assert [cached("some-rule", PAIR), cached("some-rule", PAIR)] == [[], []]
        assert [str(place) in line.getMessage() for line in caplog.records] == [True]
        if is_folder:
            with pytest.raises(StoreError, match="is not used"):
                keep(measurement())
        assert place.lstat().st_ino == before.st_ino

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
    def test_a_pipe_is_not_waited_for(self, own_cache: Path) -> None:
        keep(measurement())
        (file,) = own_cache.rglob("*.json")
        piped(file)
        assert cached("some-rule", PAIR) == []

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind this user")
    def test_a_cache_that_cannot_be_written_is_told(self, own_cache: Path) -> None:
        own_cache.mkdir(mode=0o500)
        with pytest.raises(StoreError, match="could not be written"):
            keep(measurement())

    def test_a_cache_that_is_a_file_is_told(self, own_cache: Path) -> None:
        own_cache.write_text("")
        with pytest.raises(StoreError, match="could not be written"):
            keep(measurement())
        assert cached("some-rule", PAIR) == []


class TestBesideATrace:
    def test_what_is_saved_adds_up_and_leaves_nothing_else(self, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        folder.mkdir()
        trace = folder / "w.1.pt.trace.json.gz"
        assert save_beside(trace, [measurement()]).name == "w.1.pt.trace.json.gz.tidy-bench.json"
        save_beside(trace, [measurement(on=A100), measurement(ratio=(0.7, 0.6, 0.8))])
        found, complaint = read_beside(trace)
        assert complaint is None
        assert [(each.on.kind, each.ratio) for each in found] == [("cpu", 0.7), ("cuda", 0.5)]
        assert [path.name for path in folder.iterdir()] == ["w.1.pt.trace.json.gz.tidy-bench.json"]

    def test_nothing_there_is_no_complaint(self, tmp_path: Path) -> None:
        assert read_beside(tmp_path / "w.json") == ([], None)

    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"{",
            b"\xff",
            b"[" * 100_000,
            b'{"version": 2, "measurements": []}',
            b'{"version": 1, "measurements": [{}]}',
        ],
    )
    def test_what_cannot_be_read_is_not_used_and_told(self, tmp_path: Path, text: bytes) -> None:
        (tmp_path / "w.json.tidy-bench.json").write_bytes(text)
        found, complaint = read_beside(tmp_path / "w.json")
        assert found == []
        assert complaint is not None
        assert complaint.said.startswith("`w.json.tidy-bench.json` is not used: it does not match the format.")

    def test_too_large_a_file_is_not_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        save_beside(tmp_path / "w.json", [measurement()])
        monkeypatch.setattr(store, "MOST_MEASUREMENTS_BYTES", 100)
        found, complaint = read_beside(tmp_path / "w.json")
        assert (found, complaint and complaint.reason) == ([], "it is too large")

    @pytest.mark.parametrize(
        "change",
        [{"ratio": -1}, {"before_ns": 1e30}, {"before_samples_ns": [1.0] * 101}, {"verdict": "great"}, {"more": 1}],
    )
    def test_numbers_that_no_measurement_gives_do_not_fit(self, tmp_path: Path, change: dict[str, object]) -> None:
        given = json.loads(msgspec.json.encode(measurement())) | change
        (tmp_path / "w.json.tidy-bench.json").write_text(json.dumps({"version": 1, "measurements": [given]}))
        assert read_beside(tmp_path / "w.json")[1] is not None

    def test_one_that_contradicts_itself_is_left_out(self, tmp_path: Path) -> None:
        given = json.loads(msgspec.json.encode(measurement())) | {"low": 0.9}
        (tmp_path / "w.json.tidy-bench.json").write_text(json.dumps({"version": 1, "measurements": [given]}))
        assert read_beside(tmp_path / "w.json") == ([], None)


class TestWhichIsShown:
    def test_that_of_the_recordings_kind_of_device(self, tmp_path: Path) -> None:
        save_beside(tmp_path / "w.json", [measurement(on=A100, measured_at="2020")])
        keep(measurement(on=THIS_CPU, measured_at="2026"))
        found = Measurements(tmp_path / "w.json", "cuda").of("some-rule", PAIR)
        assert found is not None
        assert found.on == A100

    def test_of_several_a_trusted_one_and_the_latest(self, tmp_path: Path) -> None:
        keep(measurement(on=msgspec.structs.replace(THIS_CPU, torch="2.11"), measured_at="2024"))
        keep(measurement(on=msgspec.structs.replace(THIS_CPU, torch="2.12"), measured_at="2025"))
        keep(measurement(on=msgspec.structs.replace(THIS_CPU, torch="2.13"), measured_at="2026", doubts=("Why.",)))
        found = Measurements(tmp_path / "w.json", "cpu").of("some-rule", PAIR)
        assert found is not None
        assert found.on.torch == "2.12"

    def test_none_where_there_is_none(self, tmp_path: Path) -> None:
        assert Measurements(tmp_path / "w.json", "cpu").of("some-rule", PAIR) is None
