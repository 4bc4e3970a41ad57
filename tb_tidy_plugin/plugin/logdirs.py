"""Log directories of TensorBoard: `--logdir` or `--logdir_spec`, with the names given there."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.trace.remote import ADDRESS

PATH_START = ("/", "\\", "~")  # a part that starts like this has no name, whatever colons are in it


class Logdir(msgspec.Struct, frozen=True):
    """One folder to search, or one trace.

    Attributes:
        path: absolute, or the address of a remote folder as given.
        name: from `--logdir_spec`, a prefix of its runs' names; empty without one.
        follow_links: True if links in it may lead out of it.
    """

    path: str
    name: str = ""
    follow_links: bool = False

    @property
    def is_remote(self) -> bool:
        """True if it is an address such as `s3://…`."""
        return ADDRESS.match(self.path) is not None

    @property
    def is_trace(self) -> bool:
        """True if it is one trace and not a folder; False if the disk does not answer."""
        return os.path.isfile(self.path)  # noqa: PTH113 - Path's raises then


def parse_logdirs(logdir: str, logdir_spec: str, *, follow_links: bool = False) -> tuple[Logdir, ...]:
    """The folders of `--logdir`, else those of `--logdir_spec` (`name:path,path,…`), each once.

    The syntax is that of TensorBoard's own `--logdir_spec`: only the first colon of a part ends its name; a scheme and
    a Windows drive are not names.
    """
    found = [Logdir(_absolute(logdir))] if logdir else list(_parts(logdir_spec))
    return tuple(replace(each, follow_links=follow_links) for each in dict.fromkeys(found))


def _parts(logdir_spec: str) -> Iterator[Logdir]:
    for part in filter(None, (piece.strip() for piece in logdir_spec.split(","))):
        name, path = part.split(":", 1) if _is_named(part) else ("", part)
        yield Logdir(_absolute(path), name)


def _is_named(part: str) -> bool:
    without_name = part.startswith(PATH_START) or ADDRESS.match(part) or os.path.splitdrive(part)[0]
    return ":" in part and not without_name


def _absolute(path: str) -> str:
    # os.path, since Path.expanduser raises for the home of an unknown user.
    return path if ADDRESS.match(path) else os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111
