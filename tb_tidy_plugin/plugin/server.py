"""The page without TensorBoard: the app that TensorBoard mounts, behind a token, with a server of its own.

The server is Werkzeug's, a thread for each request, as in TensorBoard: streams of progress hold their threads for long,
and the limit on slow request bodies is known to work there. It is meant for one user and a few colleagues.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import socket
import time
from collections.abc import Sequence
from http import HTTPStatus
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from flask import Flask, Response, request
from werkzeug.serving import BaseWSGIServer, ThreadedWSGIServer, WSGIRequestHandler

from tb_tidy_plugin.benchmarks.runner import has_torch
from tb_tidy_plugin.plugin.allowed_hosts import hosts_of
from tb_tidy_plugin.plugin.answers import ForeignRequestError
from tb_tidy_plugin.plugin.benchmark_queue import BenchmarkQueue, refusal_of
from tb_tidy_plugin.plugin.listener import ALL_ADDRESSES, HOME, Token
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.start import open_profiles
from tb_tidy_plugin.plugin.web import create_app

if TYPE_CHECKING:
    from typing_extensions import Buffer

SCRIPT = 'import { render } from "./index.js"; render();'
_PAGE = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>TorchTidy</title>
<link rel="icon" href="data:,">
</head>
<body>
<script type="module">{SCRIPT}</script>
</body>
</html>
"""
ENTRY_SCRIPT = 'location.replace((location.search ? "./" : "./?open") + location.hash);'
_ENTRY = f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>TorchTidy</title><link rel="icon" href="data:,"></head>
<body>
<noscript>{{said}}</noscript>
<script>{ENTRY_SCRIPT}</script>
</body>
</html>
"""
"""Opens the page again from itself. A browser does not send a strict cookie while it follows a link of another site."""


def _allowed(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


POLICY = "; ".join(
    (
        "default-src 'none'",
        "base-uri 'none'",
        "connect-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "img-src 'self' data:",
        f"script-src 'self' {_allowed(SCRIPT)} {_allowed(ENTRY_SCRIPT)}",
        "style-src 'self' 'unsafe-inline'",
        "worker-src 'self'",
    )
)
OF_PAGE = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin-allow-popups",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
HEAD_PATIENCE_S = 10.0  # for a request's line and headers
IDLE_PATIENCE_S = 60.0  # for each piece that a client reads or sends after that
REST_S = 0.2
WITHOUT_TOKEN = "This address requires the server's token."
OPEN_PRINTED = "Open the address that `tb-tidy serve` printed."


class ServerOptions(msgspec.Struct, frozen=True):
    """Folders to serve, and the address.

    Attributes:
        logdir: a folder of runs, or one trace.
        source_roots: folders from which sources may be shown.
        configuration: the file to check traces with.
        cache: a folder, `off`, or empty for the default one.
        host: the address to listen on.
        allowed_hosts: further host names that requests may use.
        benchmarks: True if the page may run benchmarks.
        device: name of the device of recordings that do not name theirs.
    """

    logdir: Logdir
    source_roots: Sequence[Path] = ()
    configuration: Path | None = None
    cache: str = ""
    host: str = HOME
    allowed_hosts: Sequence[str] = ()
    benchmarks: bool = False
    device: str = ""


def server_of(wanted: ServerOptions, token: Token, listener: socket.socket) -> BaseWSGIServer:
    """A server that starts to look for traces, and serves `listener` once `serve_forever` runs."""
    profiles = open_profiles([wanted.logdir], wanted.configuration, wanted.source_roots, wanted.cache, wanted.device)
    profiles.watch()
    refusal = refusal_of("any" if wanted.benchmarks else "", wanted.host, bind_all=False, has_torch=has_torch())
    hosts = hosts_of(wanted.host, bind_all=wanted.host in ALL_ADDRESSES, named=",".join(wanted.allowed_hosts))
    mutes = MuteStore([wanted.logdir])
    app = create_app(profiles, wanted.source_roots, mutes, BenchmarkQueue(refusal), hosts)
    add_page(app, token)
    host, port = listener.getsockname()[:2]
    return _Server(host, port, app, _Handler, fd=listener.fileno())


def add_page(app: Flask, token: Token) -> None:
    """Gives the app a page at its root, and refuses requests without the token or its cookie.

    The first address contains the token. The page there sets the cookie and leads to an address without the token,
    which may be shown, kept in a history and sent. A link from another site comes without the cookie, and is opened
    again.
    """

    @app.before_request
    def check() -> Response | None:
        if request.path == "/" and token.is_in(request.args.get("token")):
            answer = _entry(200)
            answer.set_cookie(token.cookie, token.session, path=None, httponly=True, samesite="Strict")
            return answer
        if token.has_session(request.cookies):
            return None
        if request.path == "/" and not request.args:  # opened by a person, maybe with a link
            return _entry(403)
        if request.path == "/":
            return Response(f"{WITHOUT_TOKEN}\n{OPEN_PRINTED}\n", 403, mimetype="text/plain")
        raise ForeignRequestError(WITHOUT_TOKEN, OPEN_PRINTED)

    @app.get("/")
    def page() -> Response:
        return Response(_PAGE, mimetype="text/html", headers=OF_PAGE)


def _entry(status: int) -> Response:
    said = f"{WITHOUT_TOKEN} {OPEN_PRINTED}" if status != HTTPStatus.OK else "This page needs JavaScript."
    headers = {"Cache-Control": "no-store"} | OF_PAGE
    return Response(_ENTRY.format(said=said), status, mimetype="text/html", headers=headers)


class _Server(ThreadedWSGIServer):
    """A server that rests when there is no file descriptor for the next connection, instead of asking on and on."""

    def get_request(self) -> tuple[socket.socket, object]:
        try:
            return super().get_request()
        except OSError as problem:
            if problem.errno in {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}:
                time.sleep(REST_S)
            raise


class _Head(socket.SocketIO):
    """What a connection sends: the head of a request within a limit of time, however slowly it comes."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection, "rb")
        self._connection = connection
        self._until = time.monotonic() + HEAD_PATIENCE_S
        self.is_over = False

    def readinto(self, buffer: Buffer) -> int | None:
        if not self.is_over:
            left_s = self._until - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            self._connection.settimeout(left_s)
        return super().readinto(buffer)


class _Handler(WSGIRequestHandler):
    """Closes connections that ask nothing or read nothing, and logs only faults, not each request."""

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._head = _Head(self.connection)
        self.rfile = BufferedReader(self._head)

    def parse_request(self) -> bool:
        is_valid = super().parse_request()
        self._head.is_over = True
        self.connection.settimeout(IDLE_PATIENCE_S)  # of each further piece, read or sent
        return is_valid

    def log_error(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        if not any(isinstance(each, TimeoutError) for each in args):  # of a client that asked nothing
            super().log_error(format, *args)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass
