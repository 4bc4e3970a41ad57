"""Common parts of the plugin's HTTP answers: JSON, caching, compression and errors, but never HTML.

TensorBoard checks each answer of a plugin for its Content-Type and for `nosniff`, and logs violations.
"""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Collection, Iterator
from typing import TypeVar

import msgspec
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from tb_tidy_plugin.compare.recording import StepsError
from tb_tidy_plugin.plugin.allowed_hosts import ADVICE as NAME_HOST
from tb_tidy_plugin.plugin.allowed_hosts import AllowedHosts
from tb_tidy_plugin.plugin.benchmark_queue import BenchmarksRefusedError
from tb_tidy_plugin.plugin.models import ErrorAnswer, ErrorInfo
from tb_tidy_plugin.plugin.mount import CONTENT_TYPE_KEY
from tb_tidy_plugin.plugin.mutes import MutesError
from tb_tidy_plugin.plugin.profiles import StillAnalysingError
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.words.errors import NotFoundError, TidyError
from tb_tidy_plugin.words.units import Bytes
from tb_tidy_plugin.words.visible import log_called

log = log_called("tensorboard.torchtidy")

_Posted = TypeVar("_Posted", bound=Model)

_READING = frozenset({"GET", "HEAD"})
ACTING_HEADER = "X-TorchTidy"
"""A header that a foreign page cannot send without our permission: a form cannot set headers."""

OWN_SITE = frozenset({"same-origin", "none"})
MOST_POSTED = 1 << 16
POST_PATIENCE_S = 10.0  # for the next bytes of a request body, since a thread waits for them
JSON = "application/json"
API = "/api/"
_LONGEST_HOST = 255
COMPRESSED = frozenset({JSON, "text/javascript", "text/css", "image/svg+xml"})
WORTH_COMPRESSING = 1024  # a smaller answer fits into one packet anyway
COMPRESSION_LEVEL = 5
_ADVICE = {
    400: "See the API's description in `docs/api.schema.json`.",
    404: "Check the address.",
    405: "Use POST only for requests that change something; all others use GET and HEAD.",
}
SEE_LOG = "See the server's log."


class BadQueryError(TidyError):
    """An invalid query."""


class ForeignRequestError(TidyError):
    """A request that another site may have sent in the user's name."""


STATUS: dict[type[TidyError], int] = {
    BadQueryError: 400,
    BenchmarksRefusedError: 403,
    ForeignRequestError: 403,
    NotFoundError: 404,
    MutesError: 409,
    StepsError: 400,
    StillAnalysingError: 202,  # nothing failed: browsers would list an error
}
NOT_AVAILABLE = 404

OF_DATA = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
"""Headers of all answers with data: they are not pages, belong in no frame, and are for our own pages only."""


def json_answer(answer: Model, status: int = 200) -> Response:
    """`answer` as JSON. NaN and infinities become null."""
    return Response(msgspec.json.encode(answer), status, mimetype=JSON)


def streamed(states: Iterator[Model]) -> Response:
    """One line of JSON for each state, sent as soon as it exists."""
    lines = (msgspec.json.encode(state) + b"\n" for state in states)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # or nginx would hold the lines back
    return Response(lines, mimetype="application/x-ndjson", headers=headers)


def guard_answers(app: Flask, acting: Collection[str] = (), hosts: AllowedHosts | None = None) -> None:
    """Applies these rules to all answers of `app`; only paths in `acting` accept a POST, and only for known `hosts`."""
    known = hosts or AllowedHosts()

    def check() -> None:
        if request.method == "POST":
            _hurry()
        if request.path in acting and request.method == "POST":
            _is_own(known)
        elif request.path.startswith(API) and known.is_local and not _is_meant(known):
            raise _foreign_host()
        elif request.method not in _READING:
            raise MethodNotAllowed(sorted(_methods(acting)))

    app.before_request(check)
    app.register_error_handler(TidyError, _user_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _own_error)
    app.after_request(_finished)


def posted(kind: type[_Posted]) -> _Posted:
    """The JSON body of the request.

    Raises:
        BadQueryError: the body is something else.
    """
    if request.mimetype != JSON or (request.content_length or MOST_POSTED + 1) > MOST_POSTED:
        raise BadQueryError(
            "The request body is not JSON, or it is too large.", f"Post at most {Bytes(MOST_POSTED)} of JSON."
        )
    try:
        return decode(request.get_data(), kind)
    except msgspec.MsgspecError as problem:
        raise BadQueryError(f"The request body is not a `{kind.__name__}`: {problem}.", _ADVICE[400]) from None


def _hurry() -> None:
    """Limits the wait for a body, also of a refused request: the server reads the rest of it."""
    with contextlib.suppress(KeyError, OSError):  # KeyError: the server is not Werkzeug's
        request.environ["werkzeug.socket"].settimeout(POST_PATIENCE_S)


def _is_own(known: AllowedHosts) -> None:
    """Refuses requests that a foreign page could send: it can neither send our header nor hide its origin."""
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    is_own = site in OWN_SITE if site is not None else origin is None or _is_same(origin, known)
    if ACTING_HEADER not in request.headers or not is_own:
        raise ForeignRequestError("This request did not come from the TorchTidy tab.", f"Send `{ACTING_HEADER}: 1`.")
    if not _is_meant(known):
        raise _foreign_host()


def _is_same(origin: str, known: AllowedHosts) -> bool:
    """True if a page of this origin is the tab: from the address of the request, or from a known name."""
    host = origin.partition("://")[2]
    return bool(host) and (host == request.headers.get("Host") or known.knows(host))


def _is_meant(known: AllowedHosts) -> bool:
    """True if the Host shows that a request was meant for us.

    Browsers send `Sec-Fetch-Site` only to HTTPS and to `localhost`, and no page can add it. HTTPS needs a certificate
    for the name; a page that points its own name at our address reaches us only by plain HTTP.
    """
    return known.knows(request.headers.get("Host")) or request.headers.get("Sec-Fetch-Site") in OWN_SITE


def _foreign_host() -> ForeignRequestError:
    host = request.headers.get("Host", "")[:_LONGEST_HOST]
    return ForeignRequestError(f"The request used the host name `{host}`, which the server does not know.", NAME_HOST)


def _methods(acting: Collection[str]) -> frozenset[str]:
    return _READING | {"POST"} if request.path in acting else _READING


def _user_error(problem: TidyError) -> Response:
    return _error(STATUS.get(type(problem), NOT_AVAILABLE), problem.error, problem.advice)


def _http_error(problem: HTTPException) -> Response:
    code = problem.code or 500
    answer = _error(code, problem.description or problem.name, _ADVICE.get(code, SEE_LOG))
    if isinstance(problem, MethodNotAllowed):
        answer.headers["Allow"] = ", ".join(problem.valid_methods or sorted(_READING))
    return answer


def _own_error(problem: Exception) -> Response:
    """The answer to a bug of ours. Its text goes to the log, since it may name paths."""
    log.error("torchtidy: %s failed", request.path, exc_info=problem)
    return _error(500, "The plugin failed to answer; this is an error in TorchTidy.", SEE_LOG)


def _error(code: int, message: str, advice: str) -> Response:
    return json_answer(ErrorAnswer(error=ErrorInfo(code=code, message=message, advice=advice)), code)


def _finished(answer: Response) -> Response:
    answer.headers["X-Content-Type-Options"] = "nosniff"
    request.environ[CONTENT_TYPE_KEY] = answer.content_type
    if request.path.startswith(API):
        answer.headers.update(OF_DATA)
    fresh = "private, no-cache" if request.path.startswith(API) else "no-cache"
    answer.headers.setdefault("Cache-Control", fresh if answer.status_code == 200 else "no-store")
    if answer.mimetype == JSON and answer.status_code == 200:
        answer.add_etag(weak=True)
        answer.make_conditional(request)
    _compress(answer)
    return answer


def _compress(answer: Response) -> None:
    if answer.mimetype not in COMPRESSED or answer.status_code != 200:
        return
    answer.vary.add("Accept-Encoding")
    if not request.accept_encodings["gzip"] or request.method == "HEAD":
        return
    answer.direct_passthrough = False
    body = answer.get_data()
    if len(body) >= WORTH_COMPRESSING:
        answer.set_data(gzip.compress(body, COMPRESSION_LEVEL, mtime=0))
        answer.headers["Content-Encoding"] = "gzip"
