"""The cache: what is kept is found, what is damaged, foreign or gone is not, and nobody is harmed by it."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tb_tidy_plugin.system.private import HAS_OWNERS
from tb_tidy_plugin.trace import cache as module
from tb_tidy_plugin.trace.cache import NOWHERE, Cache, default_folder, key_of, state_of
from tests.support.environments import same_imports
from tests.support.foreign import everybody_may_write, given_away, group_may_write, linked, piped

KEY = key_of("a question")


@pytest.fixture(autouse=True)
def _says_it_again() -> None:
    module.say_once.cache_clear()  # each test is a process to it


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "parent" / "cache")


def kept(cache: Cache, content: bytes = b"an answer", key: str = KEY) -> Path:
    """The file of a new entry."""
    cache.keep("report", key, [content])
    assert cache.folder is not None
    return cache.folder / f"report-{key}.tidy"


def test_what_was_kept_is_found_by_its_kind_and_key(cache: Cache) -> None:
    cache.keep("report", KEY, [b"an ", b"answer"])
    assert bytes(cache.load("report", KEY) or b"") == b"an answer"
    assert cache.load("columns", KEY) is None
    assert cache.load("report", key_of("another question")) is None


def test_nothing_is_kept_nowhere() -> None:
    NOWHERE.keep("report", KEY, [b"an answer"])
    assert NOWHERE.load("report", KEY) is None
    assert NOWHERE.entries() == []


def test_nobody_else_may_read_it(cache: Cache) -> None:
    file = kept(cache)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_it_is_where_caches_of_this_user_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "tb-tidy" / "analyses"


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:20],
        lambda content: content[:-1],
        lambda content: content + b"x",
        lambda content: content[:-1] + b"X",
        lambda content: b"PK\x03\x04" + content[4:],
        lambda content: content.replace(b"cache 1", b"cache 0"),
        lambda content: b"\x80\x04\x95" + b"a pickle" * 20,
    ],
    ids=["empty", "headless", "short", "long", "changed", "foreign", "older", "pickle"],
)
def test_what_is_damaged_is_not_found_and_gone_after_one_quiet_line(
    cache: Cache, damage: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(damage)
    file = kept(cache)
    file.write_bytes(damage(file.read_bytes()))
    with caplog.at_level(logging.INFO):
        assert cache.load("report", KEY) is None
        assert cache.load("report", KEY) is None
    assert not file.exists()
    (line,) = caplog.records
    assert (line.levelno, str(file) in line.getMessage()) == (logging.INFO, True)


def test_what_was_unused_longest_goes_first_where_there_is_no_room(cache: Cache) -> None:
    small = Cache(cache.folder, most_bytes=3 * 1100)
    files = {name: kept(small, b"x" * 1000, key_of(name)) for name in "abc"}
    for age, file in enumerate(files.values()):
        os.utime(file, (1000 + age, 1000 + age))
    assert small.load("report", key_of("a")) is not None  # used now
    files["d"] = kept(small, b"x" * 1000, key_of("d"))
    assert {name for name, file in files.items() if file.exists()} == {"a", "c", "d"}


def test_what_alone_is_too_large_is_not_kept_for_long(cache: Cache) -> None:
    assert not kept(Cache(cache.folder, most_bytes=100), b"x" * 1000).exists()


def test_it_may_be_deleted_while_it_is_used(cache: Cache) -> None:
    file = kept(cache, b"x" * 1_000_000)
    content = cache.load("report", KEY)
    assert content is not None
    file.unlink()
    file.parent.rmdir()
    assert bytes(content) == b"x" * 1_000_000
    assert cache.load("report", KEY) is None
    assert cache.entries() == []
    assert kept(cache).exists()


def test_clearing_deletes_what_is_ours_and_nothing_else(cache: Cache) -> None:
    file = kept(cache)
    others = [file.with_name("notes.txt"), file.with_name("report-1.tidy")]
    for other in others:
        other.write_text("mine")
    size = file.stat().st_size
    assert cache.clear() == size
    assert sorted(file.parent.iterdir()) == sorted(others)


def test_drafts_of_processes_that_were_killed_go_some_time_later(cache: Cache) -> None:
    draft = kept(cache).with_name(".tidy-draft-1-2")
    draft.write_bytes(b"half")
    kept(cache)
    assert draft.exists()
    os.utime(draft, (1000, 1000))
    kept(cache)
    assert not draft.exists()


def test_a_folder_that_cannot_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = Cache(tmp_path / "file" / "cache")
    for _ in range(3):
        cache.keep("report", KEY, [b"an answer"])
        assert cache.load("report", KEY) is None
    (line,) = caplog.records
    assert line.getMessage() == f"Nothing is cached in {cache.folder}: Not a directory. Everything else works."


def test_a_full_disk_leaves_nothing_behind(cache: Cache, caplog: pytest.LogCaptureFixture) -> None:
    def filling() -> object:
        yield b"x" * 100
        raise OSError(28, "No space left on device")

    before = kept(cache)
    cache.keep("report", key_of("large"), filling())  # type: ignore[arg-type]
    assert "No space left on device" in caplog.text
    assert list(before.parent.iterdir()) == [before]


POSIX = pytest.mark.skipif(not HAS_OWNERS, reason="this system has no owners and permissions of this kind")


def foldered(path: Path) -> None:
    path.unlink()
    path.mkdir(0o700)


def says(caplog: pytest.LogCaptureFixture) -> str:
    """The one warning that there was."""
    (line,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    return line.getMessage()


@POSIX
@pytest.mark.parametrize(
    ("change", "reason", "advice"),
    [
        (given_away, "it belongs to another user (number 65534).", "Delete it."),
        (group_may_write, "others may write it (mode 620).", "Run `chmod go-w` on it, or delete it."),
        (everybody_may_write, "others may write it (mode 602).", "Run `chmod go-w` on it, or delete it."),
        (linked, "it is not a regular file.", "Delete it."),
        (piped, "it is not a regular file.", "Delete it."),
        (foldered, "it is not a regular file.", "Delete it."),
    ],
)
def test_an_entry_that_others_may_have_written_is_not_found_and_stays(
    cache: Cache, caplog: pytest.LogCaptureFixture, change: Callable[[Path], None], reason: str, advice: str
) -> None:
    file = kept(cache)
    change(file)
    before = file.lstat()
    for _ in range(2):
        assert cache.load("report", KEY) is None
    assert says(caplog) == f"`{file}` is ignored: {reason} {advice}"
    assert file.lstat() == before


@POSIX
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (given_away, "it belongs to another user (number 65534). Name one of your own"),
        (group_may_write, "others may write there (mode 720). Run `chmod go-w` on it"),
        (everybody_may_write, "others may write there (mode 1702). Run `chmod go-w` on it"),
        (linked, "it is a link. Name the folder that it leads to"),
    ],
)
def test_nothing_is_read_from_or_kept_in_a_folder_that_others_may_write(
    cache: Cache, caplog: pytest.LogCaptureFixture, change: Callable[[Path], None], reason: str
) -> None:
    file = kept(cache)
    folder = file.parent
    change(folder)
    assert cache.load("report", KEY) is None
    cache.keep("report", key_of("another"), [b"an answer"])
    assert cache.usable() is NOWHERE
    assert says(caplog).startswith(f"The folder `{folder}` is not used: {reason}")
    assert [path.name for path in folder.iterdir()] == [file.name]


def test_a_folder_of_this_users_alone_is_used(cache: Cache) -> None:
    assert cache.usable() is cache, "one that is not there yet is made so"
    assert kept(cache).exists()
    assert cache.usable() is cache
    assert NOWHERE.usable() is NOWHERE


@POSIX
def test_folders_above_may_be_links(tmp_path: Path) -> None:
    """As where a home's cache is on another disk."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    cache = Cache(tmp_path / "home" / "cache")
    assert kept(cache).exists()
    assert cache.load("report", KEY) is not None


@POSIX
def test_another_users_entry_is_neither_replaced_nor_cleared(cache: Cache, caplog: pytest.LogCaptureFixture) -> None:
    file = kept(cache)
    given_away(file)
    before = file.read_bytes()
    cache.keep("report", KEY, [b"another answer"])
    assert (cache.entries(), cache.clear()) == ([], 0)
    assert file.read_bytes() == before
    assert says(caplog) == f"`{file}` is not written: another user's file has the name. Delete it."


@POSIX
@pytest.mark.parametrize("change", [linked, piped])
def test_what_takes_the_place_of_an_entry_is_replaced_and_never_written_through(
    cache: Cache, change: Callable[[Path], None]
) -> None:
    file = kept(cache)
    change(file)
    assert kept(cache, b"anew") == file
    assert bytes(cache.load("report", KEY) or b"") == b"anew"
    elsewhere = file.with_name("elsewhere")
    assert not elsewhere.exists() or elsewhere.read_bytes().endswith(b"an answer")


@pytest.mark.parametrize("size", [0, 1, 60])
def test_no_byte_can_be_another_one(cache: Cache, size: int) -> None:
    """Neither a changed byte nor a cut is ever an error, or another answer."""
    content = bytes(range(size))
    file = kept(cache, content)
    whole = file.read_bytes()
    damaged = [whole[:at] for at in range(len(whole))]
    damaged += [whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :] for at in range(len(whole)) for bit in (1, 128)]
    for each in damaged:
        file.write_bytes(each)
        found = cache.load("report", KEY)
        assert found is None or bytes(found) == content
        assert (found is None) == (not file.exists())
        file.touch(0o600)


def test_processes_that_write_read_and_clear_at_once_never_see_a_part(cache: Cache) -> None:
    code = (
        "import sys; from pathlib import Path; from tb_tidy_plugin.trace.cache import Cache, key_of\n"
        "cache, letter = Cache(Path(sys.argv[1])), sys.argv[2].encode()\n"
        "for n in range(60):\n"
        "    cache.keep('report', key_of(n % 3), [letter * 100_000])\n"
        "    found = bytes(cache.load('report', key_of(n % 3)) or b'')\n"
        "    assert len(found) in (0, 100_000) and len(set(found)) < 2, found[:10]\n"
        "    n % 20 or cache.clear()\n"
    )
    environment = same_imports()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(cache.folder), letter], env=environment, stderr=subprocess.PIPE
        )
        for letter in "abc"
    ]
    complaints = [process.communicate(timeout=600)[1] for process in processes]
    assert complaints == [b"", b"", b""]
    assert [process.returncode for process in processes] == [0, 0, 0]


def test_the_state_of_a_file_changes_with_it(tmp_path: Path) -> None:
    file = tmp_path / "w.pt.trace.json"
    assert state_of(file) == ()
    file.write_bytes(b"one")
    os.utime(file, (1000, 1000))
    states = [state_of(file)]
    assert state_of(file) == states[0]
    (tmp_path / "new").write_bytes(b"two")
    os.utime(tmp_path / "new", (1000, 1000))  # of the same size and time
    (tmp_path / "new").replace(file)
    states.append(state_of(file))
    os.utime(file, (2000, 2000))
    states.append(state_of(file))
    file.write_bytes(b"three")
    states.append(state_of(file))
    assert len(set(states)) == 4
