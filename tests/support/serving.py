"""The plugin's web application over a library, asked without a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tb_tidy_plugin.plugin import web
from tb_tidy_plugin.plugin.library import Library
from tb_tidy_plugin.plugin.mutes import MuteStore
from tests.support.waiting import until


class ReadingClient(FlaskClient):
    """Reads and closes each answer, as a browser does."""

    def open(self, *arguments: Any, buffered: bool = True, **options: Any) -> TestResponse:  # noqa: ANN401 - Flask's own
        return super().open(*arguments, buffered=buffered, **options)


def served(library: Library, roots: Sequence[Path] = ()) -> FlaskClient:
    """A client of `library`, which has had its first look at its folders."""
    library.start()
    until(lambda: not library.scanning)
    app = web.create_app(library, roots, MuteStore(()))
    app.test_client_class = ReadingClient
    return app.test_client()
