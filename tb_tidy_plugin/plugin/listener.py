"""Address on which a server of the page listens, and the token in it.

Imports only the standard library: a browser starts while the rest is imported.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
from dataclasses import dataclass, field

from tb_tidy_plugin.errors import TidyError

HOME = "127.0.0.1"
ALL_ADDRESSES = frozenset({"0.0.0.0", "::"})
_TOKEN_BYTES = 24
_WAITING = 128  # connections


@dataclass(frozen=True, slots=True)
class Token:
    """A secret in the server's address, then in a cookie: whoever knows it may read and act."""

    text: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES), repr=False)

    @property
    def cookie(self) -> str:
        """The name of its cookie, since the cookies of all servers on one machine are sent to each of them."""
        return f"torchtidy-{hashlib.sha256(self.text.encode()).hexdigest()[:12]}"

    def is_in(self, given: str | None) -> bool:
        """Compares in constant time."""
        return given is not None and hmac.compare_digest(given.encode(), self.text.encode())


def listening(host: str, port: int) -> socket.socket:
    """A socket that accepts connections; port 0 is any free one.

    Raises:
        TidyError: it cannot listen there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_WAITING)
    except OSError as problem:
        raise TidyError(
            f"The server cannot listen on `{host}`, port {port}: {problem.strerror or problem}.",
            "Give another `--port`, or a `--host` that is an address of this machine.",
        ) from None


def address_of(listener: socket.socket, host: str, token: Token) -> str:
    """The address to open in a browser, with the token; has this machine's name if it listens on all addresses."""
    name = socket.gethostname() if host in ALL_ADDRESSES else f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}/?token={token.text}"
