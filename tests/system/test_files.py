"""Files written whole or not at all."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from tb_tidy_plugin.system.files import drafted, write_whole

BEFORE = b"before"


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def fail_half_way(path: Path) -> None:
    with drafted(path) as draft:
        draft.write_bytes(b"af")
        raise OSError(28, "No space left on device")


def test_what_was_there_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    write_whole(tmp_path / "file", BEFORE)
    assert write_whole(tmp_path / "file", b"after") == tmp_path / "file"
    assert (tmp_path / "file").read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_what_was_there_stays_until_the_new_file_is_whole(tmp_path: Path) -> None:
    write_whole(tmp_path / "file", BEFORE)
    with drafted(tmp_path / "file") as draft:
        draft.write_bytes(b"af")
        assert (tmp_path / "file").read_bytes() == BEFORE
        draft.write_bytes(b"after")
    assert (tmp_path / "file").read_bytes() == b"after"


def test_what_was_there_stays_where_writing_fails(tmp_path: Path) -> None:
    write_whole(tmp_path / "file", BEFORE)
    with pytest.raises(OSError, match="No space left"):
        fail_half_way(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == BEFORE
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_permissions_are_the_usual_ones_or_those_that_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    assert permissions(write_whole(tmp_path / "file", BEFORE)) == permissions(tmp_path / "usual")
    assert permissions(write_whole(tmp_path / "file", BEFORE, 0o600)) == 0o600
    assert permissions(write_whole(tmp_path / "file", BEFORE, 0o644)) == 0o644


def test_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    texts = [bytes([letter]) * 1_000_000 for letter in b"abcdefgh"]
    threads = [threading.Thread(target=write_whole, args=(tmp_path / "file", text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "file").read_bytes() in texts
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
