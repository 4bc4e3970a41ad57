"""The plugin's web application over `Profiles`, called without a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tb_tidy_plugin.plugin import web
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tests.support.waiting import until


class ReadingClient(FlaskClient):
    """Reads and closes each answer as a browser does."""

    def open(self, *arguments: Any, buffered: bool = True, **options: Any) -> TestResponse:
        return super().open(*arguments, buffered=buffered, **options)


def served(profiles: Profiles, roots: Sequence[Path] = ()) -> FlaskClient:
    """A client of `profiles` after their first look at their folders."""
    profiles.start()
    until(lambda: not profiles.scanning)
    app = web.create_app(profiles, roots, MuteStore(()))
    app.test_client_class = ReadingClient
    return app.test_client()
