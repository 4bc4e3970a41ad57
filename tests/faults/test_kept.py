"""What is kept, while calls fail: as it was or as it should be, never a part, and whoever asked is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tb_tidy_plugin.benchmarks.store import Measurements, StoreError, cached, keep, read_beside, save_beside
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import MuteChange, Mutes
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.system.files import DRAFT, write_whole
from tb_tidy_plugin.trace import cache as cache_module
from tb_tidy_plugin.trace.cache import Cache, key_of
from tb_tidy_plugin.words.errors import TidyError
from tests.faults.injected import Fault, faults, injected
from tests.support.measurements import A100, PAIR, measurement
from tests.support.whole_run import contents

Answer = TypeVar("Answer")

KEYS = [key_of(number) for number in range(4)]
OLD, NEW = b"x" * 1000, b"y" * 1000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    (tmp_path / "run").mkdir()
    return tmp_path


def tried(
    folder: Path, prepare: Callable[[], object], act: Callable[[], Answer], kinds: set[str]
) -> Iterator[tuple[Fault, Answer | str]]:
    """All faults, of which those of `kinds` are reached, and what `act` answers or complains of then."""
    reached = set()
    for fault in faults():
        prepare()
        answer: Answer | str
        with injected(fault, folder):
            try:
                answer = act()
            except TidyError as problem:
                answer = problem.error
        yield fault, answer
        reached |= {fault.kind} if fault.is_reached else set()
        assert not list(folder.rglob(f"{DRAFT}*")), str(fault)
    assert reached >= kinds


class TestCache:
    @pytest.fixture
    def cache(self, folder: Path) -> Cache:
        """With room for three entries."""
        return Cache(folder / "cache", 3 * 1100)

    @staticmethod
    def fill(cache: Cache) -> None:
        """Three entries, of which the first was unused longest."""
        cache_module.say_once.cache_clear()  # each time is a process to it
        cache.clear()
        for number, key in enumerate(KEYS[:3]):
            cache.keep("report", key, [OLD])
            os.utime(_file(cache, key), (1000 + number, 1000 + number))

    @staticmethod
    def content(cache: Cache) -> list[bytes | None]:
        found = (cache.load("report", key) for key in KEYS)
        return [None if content is None else bytes(content) for content in found]

    def test_what_is_loaded_is_whole_and_stays(self, folder: Path, cache: Cache) -> None:
        kinds = {"open", "close", "mmap"}
        for fault, found in tried(folder, lambda: self.fill(cache), lambda: self.content(cache), kinds):
            assert all(content in {None, OLD} for content in found), str(fault)
            assert self.content(cache) == [OLD, OLD, OLD, None], str(fault)

    def test_what_is_kept_is_there_or_it_is_said(
        self, folder: Path, cache: Cache, caplog: pytest.LogCaptureFixture
    ) -> None:
        kinds = {"open", "write", "close", "rename", "list", "unlink"}

        def fill() -> None:
            self.fill(cache)
            caplog.clear()

        for fault, _ in tried(folder, fill, lambda: cache.keep("report", KEYS[3], [NEW[:400], NEW[400:]]), kinds):
            *old, new = self.content(cache)
            assert all(content in {None, OLD} for content in old), str(fault)
            assert new in {None, NEW}, str(fault)
            assert new == NEW or os.strerror(fault.error) in caplog.text, str(fault)

    def test_the_first_one_makes_the_folder(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        for fault in faults(("mkdir", "stat", "mark")):
            cache = Cache(tmp_path / str(fault) / "cache")
            cache_module.say_once.cache_clear()  # each time is a process to it
            caplog.clear()
            with injected(fault, tmp_path):
                cache.keep("report", KEYS[3], [NEW])
            assert self.content(cache)[3] == NEW or os.strerror(fault.error) in caplog.text, str(fault)


def _file(cache: Cache, key: str) -> Path:
    assert cache.folder is not None
    return cache.folder / f"report-{key}.tidy"


class TestMeasurements:
    @pytest.fixture
    def trace(self, folder: Path) -> Path:
        return folder / "run" / "w.json"

    @pytest.fixture
    def store(self, folder: Path, trace: Path) -> Callable[[], object]:
        """Leaves one measurement beside the trace, and the same in the cache."""

        def stored() -> None:
            for path in folder.rglob("*.json"):
                path.unlink()
            save_beside(trace, [measurement()])
            keep(measurement())

        return stored

    def test_in_the_cache(self, folder: Path, store: Callable[[], object]) -> None:
        kinds = {"open", "write", "close", "fsync", "rename"}
        for fault, told in tried(folder, store, lambda: keep(measurement(on=A100)), kinds):
            found = cached("some-rule", PAIR)
            assert measurement() in found, str(fault)
            assert len(found) == 2 or os.strerror(fault.error) in str(told), str(fault)

    def test_beside_a_trace(self, folder: Path, trace: Path, store: Callable[[], object]) -> None:
        kinds = {"open", "read", "write", "close", "fsync", "rename"}
        for fault, told in tried(folder, store, lambda: save_beside(trace, [measurement(on=A100)]), kinds):
            found, problem = read_beside(trace)
            assert (measurement() in found, problem) == (True, None), str(fault)
            assert len(found) == 2 or os.strerror(fault.error) in str(told), str(fault)

    def test_those_of_a_later_version_are_not_overwritten(self, trace: Path) -> None:
        later = trace.with_name("w.json.tidy-bench.json")
        later.write_text('{"version": 2, "measurements": []}')
        with pytest.raises(StoreError, match="does not match the format") as caught:
            save_beside(trace, [measurement()])
        assert caught.value.advice == "Delete it, or move it away, and try again."
        assert later.read_text() == '{"version": 2, "measurements": []}'

    def test_what_is_not_found_is_told(self, folder: Path, trace: Path, store: Callable[[], object]) -> None:
        def found() -> tuple[object, str]:
            measurements = Measurements(trace, "cpu")
            return measurements.of("some-rule", PAIR), " ".join(each.said for each in measurements.unused)

        store()
        before = contents(folder)
        for fault, answer in tried(folder, lambda: None, found, {"open", "read", "list"}):
            assert answer[0] == measurement() or os.strerror(fault.error) in answer[1], str(fault)
            assert contents(folder) == before, str(fault)


def test_mutes(folder: Path) -> None:
    store = MuteStore([Logdir(str(folder / "run"))])

    def change(finding: str) -> object:
        nothing = Mutes(findings=[], rules=[])
        return store.change(MuteChange(mute=Mutes(findings=[finding], rules=[]), unmute=nothing))

    def prepare() -> None:
        (folder / "run" / ".torchtidy.json").unlink(missing_ok=True)
        change("a1")

    kinds = {"open", "read", "write", "close", "fsync", "rename"}
    for fault, told in tried(folder, prepare, lambda: change("b2"), kinds):
        muted = store.answer().mutes.findings
        assert muted in (["a1"], ["a1", "b2"]), str(fault)
        assert muted == ["a1", "b2"] or os.strerror(fault.error) in str(told), str(fault)


def test_nothing_is_renamed_before_the_disk_has_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash of the system would leave the new name, and nothing in it."""
    done: list[str] = []

    def noted(name: str) -> None:
        real = getattr(os, name)

        def call(*given: object) -> object:
            done.append(name)
            return real(*given)

        monkeypatch.setattr(os, name, call)

    noted("fsync")
    noted("replace")
    write_whole(folder / "run" / "mutes", b"text")
    assert done == ["fsync", "replace"]
