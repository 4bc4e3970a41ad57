"""The TensorBoard plugin: joins TensorBoard's flags, the library of traces and the web app."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tensorboard.plugins import base_plugin

from tb_tidy_plugin.plugin.library import Library
from tb_tidy_plugin.plugin.logdirs import parse_logdirs
from tb_tidy_plugin.plugin.mount import Mount
from tb_tidy_plugin.sources.files import source_roots

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

NAME = "torchtidy"
MOUNT_POINT = f"/data/plugin/{NAME}"

if find_spec("flask") is None:  # imported with the first request only, but the loader has to know now
    raise ImportError("Flask is not installed")


class Plugin(base_plugin.TBPlugin):
    """The tab `TorchTidy`."""

    plugin_name = NAME

    def __init__(self, context: base_plugin.TBContext) -> None:
        flags = context.flags
        logdirs = parse_logdirs(context.logdir or "", getattr(flags, "logdir_spec", "") or "")
        self._source_roots = source_roots(getattr(flags, "torchtidy_source_roots", "") or "", Path.cwd())
        self._library = Library(logdirs)
        self._library.start()

    def is_active(self) -> bool:
        """Asked for each load of the page; true while nobody knows yet."""
        return self._library.has_traces or self._library.scanning

    def get_plugin_apps(self) -> dict[str, WSGIApplication]:
        return {"/*": Mount(self._make_app, MOUNT_POINT)}

    def _make_app(self) -> WSGIApplication:
        from tb_tidy_plugin.plugin.web import create_app

        return create_app(self._library, self._source_roots)

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="TorchTidy")
