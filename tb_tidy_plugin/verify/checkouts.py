"""Files of a git revision in a folder of their own, as `git checkout` would write them.

Git writes them with an index in that folder: the user's files, index and list of worktrees never change, even if this
process is killed. A folder that a killed process left is deleted at a later start.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from tb_tidy_plugin.words.errors import TidyError
from tb_tidy_plugin.words.visible import log_called

log = log_called("tb_tidy_plugin")

FOLDER_PREFIX = "tb-tidy-verify-"
_LOCK = "running"
"""File in each folder that its process holds locked while it lives."""

_SUBMODULE = "160000"
_QUIET = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.sparseCheckout=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "submodule.recurse=false",
)
"""Settings with which git would write into the user's `.git`, run something, or leave out files."""


class RevisionError(TidyError):
    """A version is neither a folder nor a revision, or git cannot write its files."""


class _Repository(msgspec.Struct, frozen=True):
    """A repository: its `.git`, and the folder of its own files, None for a bare one."""

    git: Path
    top: Path | None


@contextmanager
def folder_of(version: str) -> Iterator[Path]:
    """The folder that `version` names; for a git revision its files, in a folder that is removed with the block.

    Raises:
        RevisionError: it is neither a folder nor a revision, or git cannot write its files.
    """
    if Path(version).is_dir():
        yield Path(version)
        return
    repository, tree, is_commit = _found(version)
    below = _said("rev-parse", "--show-prefix") if is_commit else ""
    with _temporary() as folder:
        files = folder / "files"
        _write(repository, tree, files, folder / "index", version)
        if not (files / below).is_dir():
            raise RevisionError(f"`{version}` has no folder `{below}`.", "Run the command in a folder that it has.")
        yield files / below


def _found(version: str) -> tuple[_Repository, str, bool]:
    """The repository, the tree of a revision, and True if it is that of a commit, and not of a folder in one."""
    named, said = "", list[str]()
    try:
        if not version.startswith("-"):  # else an option of git
            done = _git("rev-parse", "--verify", "--quiet", version)
            named, said = done.stdout.decode().strip(), _lines(done.stderr)
    except OSError:
        raise RevisionError(f"`{version}` is not a folder, and git is not installed.", "Give a folder.") from None
    tree = _said("rev-parse", "--verify", "--quiet", f"{named}^{{tree}}") if named else ""
    if not tree:
        raise RevisionError(f"`{version}` is neither a folder nor a git revision.", "Give one or the other.", said)
    is_commit = bool(_said("rev-parse", "--verify", "--quiet", f"{named}^{{commit}}"))
    return _repository(Path.cwd(), os.environ), tree, is_commit


def _repository(folder: Path, environment: Mapping[str, str]) -> _Repository:
    """The repository around a folder."""
    git = _said("rev-parse", "--absolute-git-dir", folder=folder, environment=environment)
    top = _said("rev-parse", "--show-toplevel", folder=folder, environment=environment)
    return _Repository(Path(git), Path(top) if top else None)


def _write(repository: _Repository, tree: str, files: Path, index: Path, version: str) -> None:
    """Writes the files of a tree, and of its submodules where the user's checkout has them."""
    files.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "GIT_DIR": str(repository.git),
        "GIT_WORK_TREE": str(files),
        "GIT_INDEX_FILE": str(index),
        "GIT_OPTIONAL_LOCKS": "0",
    }
    done = _git("read-tree", "--reset", "-u", tree, folder=files, environment=environment)
    if done.returncode:
        advice = "Give a folder with these files."
        raise RevisionError(f"Git cannot write the files of `{version}`.", advice, _lines(done.stderr))
    listed = os.fsdecode(_git("ls-files", "-s", "-z", folder=files, environment=environment).stdout).split("\0")
    missing = []
    for about, _, name in (each.partition("\t") for each in listed if each):
        mode, commit, _ = about.split(" ")
        if mode == _SUBMODULE and not _has_written(repository, name, commit, files / name, index, version):
            missing.append(name)
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        log.warning("Submodules of `%s` that are not checked out here are empty: %s.", version, names)
    attributes = [files / name for _, _, name in (each.partition("\t") for each in listed) if _is_attributes(name)]
    if any(_names_lfs(each) for each in attributes) and not _has_lfs(environment):
        log.warning("Files of `%s` in Git LFS are pointers: run `git lfs install` first.", version)


def _has_written(repository: _Repository, name: str, commit: str, files: Path, index: Path, version: str) -> bool:
    """True if the files of a submodule could be written: the user has checked it out, and has the commit."""
    if repository.top is None or not (repository.top / name / ".git").exists():
        return False
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    within = _repository(repository.top / name, environment)
    tree = _said("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}", folder=within.top, environment=environment)
    if not tree:
        return False
    with tempfile.TemporaryDirectory(dir=index.parent) as beside:
        _write(within, tree, files, Path(beside) / "index", f"{version}:{name}")
    return True


def _is_attributes(name: str) -> bool:
    return name.rpartition("/")[2] == ".gitattributes"


def _names_lfs(attributes: Path) -> bool:
    """True if a `.gitattributes` gives files to Git LFS."""
    with suppress(OSError):
        return b"filter=lfs" in attributes.read_bytes()
    return False


def _has_lfs(environment: Mapping[str, str]) -> bool:
    names = ("filter.lfs.process", "filter.lfs.smudge")
    return any(not _git("config", "--get", name, environment=environment).returncode for name in names)


def _said(*arguments: str, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Git's answer, empty if it has none.

    Raises:
        OSError: git is not installed.
    """
    done = _git(*arguments, folder=folder, environment=environment)
    return "" if done.returncode else os.fsdecode(done.stdout).removesuffix("\n")


def _lines(said: bytes) -> list[str]:
    return said.decode("utf-8", "replace").splitlines()


def _git(
    *arguments: str, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    settings = [part for setting in _QUIET for part in ("-c", setting)]
    command = ["git", *settings, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )


@contextmanager
def _temporary() -> Iterator[Path]:
    """A folder that is removed with the block, or at a later start if this process is killed."""
    import fcntl  # not on Windows

    _remove_abandoned()
    created = tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX, ignore_cleanup_errors=True)
    with created as name, (Path(name) / _LOCK).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Path(name)


def _remove_abandoned() -> None:
    """Removes folders of this user's processes that were killed: nobody holds their lock."""
    import fcntl

    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        with suppress(OSError):
            about = folder.lstat()
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
