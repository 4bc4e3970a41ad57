"""The web API and the built frontend, as a Flask app: `create_app(profiles, …)`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from flask import Flask, Response, request, send_from_directory

from tb_tidy_plugin.plugin.allowed_hosts import AllowedHosts
from tb_tidy_plugin.plugin.answers import JSON, guard_answers, json_answer, posted, streamed
from tb_tidy_plugin.plugin.benchmark_queue import BenchmarkQueue
from tb_tidy_plugin.plugin.comparisons import Comparisons
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.plugin.queries import read_query
from tb_tidy_plugin.plugin.routes import ROUTES, Route
from tb_tidy_plugin.plugin.served import Logged, Served, nothing_logged
from tb_tidy_plugin.plugin.timelines import Timelines
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.words.errors import NotFoundError

STATIC = Path(__file__).parent / "static"
ASSETS = "assets/"  # their names contain a hash of their contents
YEAR_S = 365 * 24 * 3600

STATIC_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".woff2": "font/woff2",
}
"""Content-Type of each file of the bundle: an operating system's own table may say that JavaScript is plain text."""


def create_app(
    profiles: Profiles,
    source_roots: Sequence[Path],
    mutes: MuteStore,
    queue: BenchmarkQueue | None = None,
    hosts: AllowedHosts | None = None,
    logged: Logged = nothing_logged,
) -> Flask:
    """The app, with addresses relative to its mount point.

    Args:
        profiles: the analysed traces.
        source_roots: folders from which sources may be shown.
        mutes: mutes that apply to everybody.
        queue: the benchmarks; without it, none can be started.
        hosts: the host names that requests may use.
        logged: gives the values that jobs logged beside their traces.
    """
    app = Flask(__name__, static_folder=None)
    app.url_map.strict_slashes = False  # a redirect has a body of HTML
    guard_answers(app, [route.path for route in ROUTES if route.is_posted], hosts)
    served = Served(
        profiles, source_roots, mutes, queue or BenchmarkQueue(), Timelines(profiles), Comparisons(profiles), logged
    )
    for route in ROUTES:
        method = "POST" if route.is_posted else "GET"
        app.add_url_rule(route.path, f"{method} {route.path}", partial(_answer, route, served), methods=[method])

    @app.get("/<path:name>")
    def bundle(name: str) -> Response:
        kind = STATIC_TYPES.get(PurePosixPath(name).suffix)
        if kind is None:
            raise NotFoundError(f"There is no `{name}` in the plugin.", "Check the address.")
        answer = send_from_directory(STATIC, name, mimetype=kind, max_age=YEAR_S if name.startswith(ASSETS) else None)
        if name.startswith(ASSETS):
            answer.cache_control.immutable = True
        etag, _ = answer.get_etag()
        if etag is not None:
            answer.set_etag(etag, weak=True)  # the same for plain and compressed
        return answer

    return app


def _answer(route: Route[Any, Any], served: Served) -> Response:
    asked = posted(route.asked) if route.is_posted else read_query(route.asked, request.args)
    answer = route.handler(served, asked)
    if isinstance(answer, Model):
        return json_answer(answer)
    if not isinstance(answer, bytes):
        return streamed(answer)
    response = Response(answer, mimetype=JSON)
    if route.file_name:
        response.headers["Content-Disposition"] = f'attachment; filename="{route.file_name}"'
    return response
