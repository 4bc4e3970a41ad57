"""Address on which a server of the page listens, and the token in it.

Imports only the standard library: a browser starts while the rest is imported.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from tb_tidy_plugin.words.errors import TidyError

HOME = "127.0.0.1"
ALL_ADDRESSES = frozenset({"0.0.0.0", "::"})
_TOKEN_BYTES = 24
_NAME_BYTES = 6
_WAITING = 128  # connections


@dataclass(frozen=True, slots=True)
class Token:
    """Two secrets: one in the server's address, and one in the cookie for it. With either one may read and act.

    A browser sends the cookie to every server on the machine, whatever its port: each cookie has a name of its own, and
    from its value nobody learns the address.

    Attributes:
        text: the token in the address.
        session: the value of the cookie.
        cookie: the name of the cookie.
    """

    text: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES), repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES), repr=False)
    cookie: str = field(default_factory=lambda: f"torchtidy-{secrets.token_hex(_NAME_BYTES)}")

    def is_in(self, given: str | None) -> bool:
        """True for the token; compares in constant time."""
        return _same(given, self.text)

    def has_session(self, cookies: Mapping[str, str]) -> bool:
        """True if the session is among a request's cookies; compares in constant time."""
        return _same(cookies.get(self.cookie), self.session)


def _same(given: str | None, secret: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(), secret.encode())


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
