"""The boundary between TensorBoard's WSGI app and the plugin's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

CONTENT_TYPE_KEY = "torchtidy.content_type"
"""Key in a request's environment: the Content-Type of its answer, written by the app for `Mount`."""


class Mount:
    """A WSGI app below `prefix`, which TensorBoard leaves in PATH_INFO; created with the first request.

    It also restores the Content-Type of a 304, which Werkzeug removes, since TensorBoard checks for it on every answer.
    """

    def __init__(self, make_app: Callable[[], WSGIApplication], prefix: str) -> None:
        self._make_app = make_app
        self._prefix = prefix
        self._lock = threading.Lock()
        self._app: WSGIApplication | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        inner = dict(environ)
        path = inner.get("PATH_INFO", "")
        if path == self._prefix or path.startswith(f"{self._prefix}/"):
            inner["SCRIPT_NAME"] = inner.get("SCRIPT_NAME", "") + self._prefix
            inner["PATH_INFO"] = path[len(self._prefix) :] or "/"

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Callable[[bytes], object]:
            if not any(name.lower() == "content-type" for name, _ in headers):
                headers = [*headers, ("Content-Type", inner.get(CONTENT_TYPE_KEY, "application/json"))]
            return start_response(status, headers, *error)

        return self._ready()(inner, start)

    def _ready(self) -> WSGIApplication:
        with self._lock:
            if self._app is None:
                self._app = self._make_app()
            return self._app
