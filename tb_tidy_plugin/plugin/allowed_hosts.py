"""By which names TensorBoard may be asked for: the defence against DNS rebinding.

A page from anywhere can give its own name the address of this machine. To the browser it is then of the same origin as
TensorBoard, so neither CORS nor a header of our own keeps it out; only the `Host` of its requests tells, which is its
own name. `docs/limits.md` says what follows for proxies.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec

LOOPBACK = frozenset({"", "localhost", "127.0.0.1", "::1"})
"""Values of TensorBoard's `--host` with which it is reached from this machine only."""

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.%]+\]|[^\s\[\]:@/\\?#]+)(?::\d{0,5})?")
ADVICE = (
    "Start TensorBoard with `--torchtidy_hosts=NAME`, or `tb-tidy serve` with `--allowed-host NAME`, if that is how "
    "you reach it."
)


class AllowedHosts(msgspec.Struct, frozen=True):
    """The names that this TensorBoard is known by.

    Attributes:
        names: in lower case, besides `localhost` and addresses, which no page from elsewhere can have.
        is_local: whether TensorBoard is reached from this machine only, if need be through a tunnel or a proxy here.
    """

    names: frozenset[str] = frozenset()
    is_local: bool = True

    def knows(self, host: str | None) -> bool:
        """True if a request with this `Host` was meant for this TensorBoard; no browser sends none."""
        if host is None:
            return True
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match["name"].lower().removesuffix(".")
        return name == "localhost" or name.endswith(".localhost") or name in self.names or _is_address(name)


def hosts_of(host: str, *, bind_all: bool, named: str, environment: Mapping[str, str] | None = None) -> AllowedHosts:
    """The names by TensorBoard's flags and the machine's own.

    Args:
        host: `--host`.
        bind_all: `--bind_all`.
        named: `--torchtidy_hosts`, separated by commas.
        environment: where a notebook's proxy says its address (`TENSORBOARD_PROXY_URL`).
    """
    proxy = (os.environ if environment is None else environment).get("TENSORBOARD_PROXY_URL", "")
    known = [host, *named.split(","), *_own_names(), _host_in(proxy)]
    names = frozenset(name.strip().lower().removesuffix(".") for name in known if name.strip())
    return AllowedHosts(names, is_local=not bind_all and host in LOOPBACK)


def _own_names() -> Iterator[str]:
    """This machine's name; asking a name server for more of them could take long."""
    yield socket.gethostname()


def _host_in(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    """True if it is an address and not a name: nobody could have pointed that at this machine."""
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
