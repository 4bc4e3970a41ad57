"""The page without TensorBoard: the app that TensorBoard mounts, behind a token, with a server of its own.

The server is Werkzeug's, a thread for each request, as in TensorBoard: streams of progress hold their threads for long,
and the limit on slow request bodies is known to work there. It is meant for one user and a few colleagues.
"""

from __future__ import annotations

import base64
import hashlib
import socket
from collections.abc import Sequence
from pathlib import Path

import msgspec
from flask import Flask, Response, request
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from tb_tidy_plugin.benchmarks.runner import has_torch
from tb_tidy_plugin.plugin.allowed_hosts import hosts_of
from tb_tidy_plugin.plugin.answers import ForeignRequestError
from tb_tidy_plugin.plugin.benchmark_queue import BenchmarkQueue, refusal_of
from tb_tidy_plugin.plugin.listener import ALL_ADDRESSES, HOME, Token
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.start import open_profiles
from tb_tidy_plugin.plugin.web import create_app

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
POLICY = "; ".join(
    (
        "default-src 'none'",
        "base-uri 'none'",
        "connect-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "img-src 'self' data:",
        f"script-src 'self' 'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'",
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
    """

    logdir: Logdir
    source_roots: Sequence[Path] = ()
    configuration: Path | None = None
    cache: str = ""
    host: str = HOME
    allowed_hosts: Sequence[str] = ()
    benchmarks: bool = False


def server_of(wanted: ServerOptions, token: Token, listener: socket.socket) -> BaseWSGIServer:
    """A server that starts to look for traces, and serves `listener` once `serve_forever` runs."""
    profiles = open_profiles([wanted.logdir], wanted.configuration, wanted.source_roots, wanted.cache)
    profiles.watch()
    refusal = refusal_of("any" if wanted.benchmarks else "", wanted.host, bind_all=False, has_torch=has_torch())
    hosts = hosts_of(wanted.host, bind_all=wanted.host in ALL_ADDRESSES, named=",".join(wanted.allowed_hosts))
    mutes = MuteStore([wanted.logdir])
    app = create_app(profiles, wanted.source_roots, mutes, BenchmarkQueue(refusal), hosts)
    add_page(app, token)
    host, port = listener.getsockname()[:2]
    return make_server(host, port, app, threaded=True, request_handler=_Quiet, fd=listener.fileno())


def add_page(app: Flask, token: Token) -> None:
    """Gives the app a page at its root, and refuses requests without the token.

    The first address contains the token. It redirects to one without, which may be shown, kept in a history and sent.
    """

    @app.before_request
    def check() -> Response | None:
        if request.path == "/" and token.is_in(request.args.get("token")):
            answer = Response(status=303, headers={"Location": "./", "Cache-Control": "no-store"} | OF_PAGE)
            answer.set_cookie(token.cookie, token.text, path=None, httponly=True, samesite="Lax")
            return answer
        if token.is_in(request.cookies.get(token.cookie)):
            return None
        if request.path == "/":  # opened by a person
            return Response(f"{WITHOUT_TOKEN}\n{OPEN_PRINTED}\n", 403, mimetype="text/plain")
        raise ForeignRequestError(WITHOUT_TOKEN, OPEN_PRINTED)

    @app.get("/")
    def page() -> Response:
        return Response(_PAGE, mimetype="text/html", headers=OF_PAGE)


class _Quiet(WSGIRequestHandler):
    """Logs only faults, not each request."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass
