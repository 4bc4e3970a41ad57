"""Who else could have written a file: what the matrix of strange configurations does not ask of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tb_tidy_plugin.configuration import trust
from tests.support.owners import OTHER, Owners

pytestmark = pytest.mark.skipif(os.name == "nt", reason="files have no owner and no bits here")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()
    path.write_bytes(b"content")
    return path


def doubt(path: Path) -> str:
    return trust.read(path).doubt


def test_ones_own_file(file: Path) -> None:
    assert trust.read(file) == trust.Content(b"content", "")


def test_of_its_content_no_more_than_asked_for(file: Path) -> None:
    assert trust.read(file, 4).data == b"cont"


@pytest.mark.parametrize("mode", [0o666, 0o602, 0o620])
def test_a_file_that_others_may_write(file: Path, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    Owners(monkeypatch).share(file)
    file.chmod(mode)
    assert doubt(file) == f"other users can write to `{file}`"


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o703, 0o730])
def test_a_folder_that_others_may_write(file: Path, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    Owners(monkeypatch).share(file.parent)
    file.parent.chmod(mode)
    assert doubt(file) == f"other users can write to `{file.parent}`"


def test_a_hard_link_in_a_folder_like_tmp(tmp_path: Path, file: Path) -> None:
    """Where the system lets others make one, a file of this user's own stands where they like."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "theirs").hardlink_to(file)
    shared.chmod(0o1777)
    assert doubt(shared / "theirs") == f"other users can write to `{shared}`"
    assert not doubt(file)


def test_a_way_back_up_out_of_a_folder_like_tmp(tmp_path: Path, file: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "mine").mkdir(parents=True)
    shared.chmod(0o1777)
    (shared / "theirs").symlink_to(file)
    (shared / "mine" / "link").symlink_to("../theirs")
    assert doubt(shared / "mine" / "link") == f"other users can write to `{shared}`"


def test_roots_files_are_as_good_as_ones_own(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat_of, uid = os.lstat, trust.ROOT_USER
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setattr(os, "lstat", lambda path: owned(stat_of(path), uid))
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    assert not doubt(file)
    uid = OTHER + 1
    assert doubt(file) == "`/` belongs to another user"


def owned(about: os.stat_result, uid: int) -> os.stat_result:
    return os.stat_result([*about[:4], uid, *about[5:]])


class TestAGroup:
    """Many systems give each user a group of its own, and let it write all that the user makes."""

    ME = SimpleNamespace(pw_name="me", pw_uid=OTHER, pw_gid=OTHER)
    OWN = SimpleNamespace(gr_name="me", gr_gid=OTHER, gr_mem=[])

    @pytest.fixture(autouse=True)
    def _accounts(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: OTHER)
        stat_of, fstat_of = os.lstat, os.fstat
        monkeypatch.setattr(os, "lstat", lambda path: self.grouped(stat_of(path)))
        monkeypatch.setattr(os, "fstat", lambda number: self.grouped(fstat_of(number)))
        self.accounts(monkeypatch, self.ME, self.OWN)
        file.chmod(0o664)
        file.parent.chmod(0o775)

    def grouped(self, about: os.stat_result) -> os.stat_result:
        return os.stat_result([*about[:4], OTHER, OTHER, *about[6:]])

    def accounts(self, monkeypatch: pytest.MonkeyPatch, me: object, group: object, *others: object) -> None:
        import grp
        import pwd

        monkeypatch.setattr(pwd, "getpwuid", {OTHER: me, 0: me}.__getitem__)
        monkeypatch.setattr(pwd, "getpwall", lambda: [me, *others])
        monkeypatch.setattr(grp, "getgrgid", {OTHER: group}.__getitem__)

    def test_of_this_user_alone(self, file: Path) -> None:
        assert not doubt(file)

    def test_of_this_user_by_name(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.accounts(monkeypatch, self.ME, SimpleNamespace(gr_name="me", gr_gid=OTHER, gr_mem=["me"]))
        assert not doubt(file)

    @pytest.mark.parametrize(
        ("group", "others"),
        [
            (SimpleNamespace(gr_name="me", gr_gid=OTHER, gr_mem=["me", "you"]), []),
            (SimpleNamespace(gr_name="team", gr_gid=OTHER, gr_mem=[]), []),
            (OWN, [SimpleNamespace(pw_name="you", pw_uid=OTHER + 1, pw_gid=OTHER)]),
        ],
        ids=["a member", "another name", "another user's first group"],
    )
    def test_that_others_are_in(
        self, file: Path, group: object, others: list[object], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.accounts(monkeypatch, self.ME, group, *others)
        assert doubt(file) == f"other users can write to `{file.parent}`"

    def test_that_is_not_this_users_first(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.accounts(monkeypatch, SimpleNamespace(pw_name="me", pw_uid=OTHER, pw_gid=100), self.OWN)
        assert doubt(file)

    def test_that_nobody_knows(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import grp

        monkeypatch.setattr(grp, "getgrgid", {}.__getitem__)
        assert doubt(file)

    def test_of_root(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        self.accounts(monkeypatch, SimpleNamespace(pw_name="me", pw_uid=0, pw_gid=OTHER), self.OWN)
        monkeypatch.setattr(
            self, "grouped", lambda about: os.stat_result([*about[:4], 0, OTHER, *about[6:]]), raising=False
        )
        assert doubt(file)

    @pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say so")
    def test_whose_bits_stand_for_a_list_of_users(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        lists = {file: [trust.ACCESS_LIST]}
        monkeypatch.setattr(os, "listxattr", lambda path, follow_symlinks: lists.get(path, []))
        assert doubt(file) == f"other users can write to `{file}`"


class TestTheWay:
    def test_links_without_an_end(self, file: Path) -> None:
        (file.parent / "a").symlink_to("b")
        (file.parent / "b").symlink_to("a")
        with pytest.raises(OSError, match="symbolic links"):
            trust.read(file.parent / "a")
        with pytest.raises(OSError, match="symbolic links"):
            trust.folder_among(file.parent / "a", set())

    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="Not a regular file"):
            trust.read(tmp_path / "pipe")

    def test_a_file_that_is_replaced_while_it_is_read(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What was opened is what is judged: it does not help that a good file stands there afterwards."""
        fstat = os.fstat

        def replacing(number: int) -> os.stat_result:
            (file.parent / "good").write_bytes(b"good")
            (file.parent / "good").replace(file)
            return fstat(number)

        monkeypatch.setattr(os, "fstat", replacing)
        assert trust.read(file) == trust.Content(b"content", f"`{file}` was replaced while it was read")

    def test_a_folder_by_any_name(self, tmp_path: Path, file: Path) -> None:
        """Also where a link elsewhere leads through it."""
        (tmp_path / "link").symlink_to("folder")
        (tmp_path / "elsewhere").symlink_to("link/file")
        runs = trust.identities([tmp_path / "link", tmp_path / "nowhere"])
        assert trust.folder_among(tmp_path / "elsewhere", runs) == file.parent
        assert trust.folder_among(tmp_path / "link", runs) is None

    def test_home_is_left_again_by_a_link(self, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is above the home folder counts for what is beside it."""
        home = tmp_path / "home"
        home.mkdir()
        (home / "link").symlink_to("../folder/file")
        monkeypatch.setenv("HOME", str(home))
        tmp_path.chmod(0o777)
        assert doubt(home / "link") == f"other users can write to `{tmp_path}`"
        (home / "own").write_bytes(b"")
        assert not doubt(home / "own")


class TestWindows:
    @pytest.fixture(autouse=True)
    def _windows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "win32")

    def test_the_home_folder_is_its_users(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(file.parent))
        assert not doubt(file)

    def test_no_other_folder_is(self, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        assert doubt(file).startswith(f"`{file}` is outside your home folder")
