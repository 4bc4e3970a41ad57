"""Host names that requests to TensorBoard may use: the defence against DNS rebinding.

Any page can point its own name at the address of this machine. To the browser it then has the same origin as
TensorBoard, so neither CORS nor a header of our own keeps it out; only the `Host` of its requests, its own name,
reveals it. `docs/limits.md` says what follows for proxies.
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
"""Values of TensorBoard's `--host` with which only this machine reaches it."""

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.%]+\]|[^\s\[\]:@/\\?#]+)(?::\d{0,5})?")
ADVICE = (
    "Start TensorBoard with `--torchtidy_hosts=NAME`, or `tb-tidy serve` with `--allowed-host NAME`, if that is how "
    "you reach it."
)


class AllowedHosts(msgspec.Struct, frozen=True):
    """Host names of this TensorBoard.

    Attributes:
        names: in lower case, besides `localhost` and addresses, which no foreign page can have.
        is_local: True if only this machine reaches TensorBoard, possibly through a tunnel or a proxy here.
    """

    names: frozenset[str] = frozenset()
    is_local: bool = True

    def knows(self, host: str | None) -> bool:
        """True if a request with this `Host` was meant for this TensorBoard; every browser sends a `Host`."""
        if host is None:
            return True
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match["name"].lower().removesuffix(".")
        return name == "localhost" or name.endswith(".localhost") or name in self.names or _is_address(name)


def hosts_of(host: str, *, bind_all: bool, named: str, environment: Mapping[str, str] | None = None) -> AllowedHosts:
    """The host names from TensorBoard's flags and the machine's own name.

    Args:
        host: `--host`.
        bind_all: `--bind_all`.
        named: `--torchtidy_hosts`, separated by commas.
        environment: holds the address of a notebook's proxy (`TENSORBOARD_PROXY_URL`).
    """
    proxy = (os.environ if environment is None else environment).get("TENSORBOARD_PROXY_URL", "")
    known = [host, *named.split(","), *_own_names(), _host_in(proxy)]
    names = frozenset(name.strip().lower().removesuffix(".") for name in known if name.strip())
    return AllowedHosts(names, is_local=not bind_all and host in LOOPBACK)


def _own_names() -> Iterator[str]:
    """This machine's name; a name server may know more of them, but could take long."""
    yield socket.gethostname()


def _host_in(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    """True if `host` is an address and not a name: nobody can point an address at this machine."""
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
