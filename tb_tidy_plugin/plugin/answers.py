"""What every HTTP answer of the plugin has in common: JSON, caching, compression, errors; never a page of HTML.

TensorBoard checks each answer of a plugin for its Content-Type and for `nosniff`, and says so in its log.
"""

from __future__ import annotations

import gzip
import logging

import msgspec
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from tb_tidy_plugin.errors import NotFoundError, TidyError
from tb_tidy_plugin.plugin.library import StillAnalysingError
from tb_tidy_plugin.plugin.mount import CONTENT_TYPE_KEY
from tb_tidy_plugin.plugin.payloads import ErrorAnswer, ErrorInfo
from tb_tidy_plugin.report.model import Model

log = logging.getLogger("tensorboard")

METHODS = frozenset({"GET", "HEAD"})
JSON = "application/json"
COMPRESSED = frozenset({JSON, "text/javascript", "text/css", "image/svg+xml"})
WORTH_COMPRESSING = 1024  # less fits into one packet anyway
COMPRESSION_LEVEL = 5
ADVICE = {
    400: "See the API's description in `docs/api.schema.json`.",
    404: "Check the address.",
    405: "This version answers GET and HEAD only.",
}
SEE_LOG = "See TensorBoard's log."


class BadQueryError(TidyError):
    """A question that makes no sense."""


STATUS: dict[type[TidyError], int] = {BadQueryError: 400, NotFoundError: 404, StillAnalysingError: 503}
NOT_AVAILABLE = 404


def json_answer(answer: Model, status: int = 200) -> Response:
    """`answer` as JSON. NaN and infinities become null."""
    return Response(msgspec.json.encode(answer), status, mimetype=JSON)


def install(app: Flask) -> None:
    """Makes all answers of `app` follow these rules."""
    app.before_request(_only_reading)
    app.register_error_handler(TidyError, _user_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _own_error)
    app.after_request(_finished)


def _only_reading() -> None:
    if request.method not in METHODS:
        raise MethodNotAllowed(sorted(METHODS))


def _user_error(problem: TidyError) -> Response:
    return _error(STATUS.get(type(problem), NOT_AVAILABLE), problem.error, problem.advice)


def _http_error(problem: HTTPException) -> Response:
    code = problem.code or 500
    answer = _error(code, problem.description or problem.name, ADVICE.get(code, SEE_LOG))
    if isinstance(problem, MethodNotAllowed):
        answer.headers["Allow"] = ", ".join(sorted(METHODS))
    return answer


def _own_error(problem: Exception) -> Response:
    """Our own fault. Its text is for the log: it may name paths."""
    log.error("torchtidy: %s failed", request.path, exc_info=problem)
    return _error(500, "The plugin failed to answer; this is an error in TorchTidy.", SEE_LOG)


def _error(code: int, message: str, advice: str) -> Response:
    return json_answer(ErrorAnswer(error=ErrorInfo(code=code, message=message, advice=advice)), code)


def _finished(answer: Response) -> Response:
    answer.headers["X-Content-Type-Options"] = "nosniff"
    request.environ[CONTENT_TYPE_KEY] = answer.content_type
    answer.headers.setdefault("Cache-Control", "no-cache" if answer.status_code == 200 else "no-store")
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
