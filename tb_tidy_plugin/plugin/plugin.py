"""The TensorBoard plugin: joins TensorBoard's flags, the profiles in its logdirs and the web app."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tensorboard.plugins import base_plugin

from tb_tidy_plugin.plugin.logdirs import parse_logdirs
from tb_tidy_plugin.plugin.mount import Mount
from tb_tidy_plugin.plugin.start import configuration_file, current_folder, open_profiles
from tb_tidy_plugin.sources.files import source_roots

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

_NAME = "torchtidy"
MOUNT_POINT = f"/data/plugin/{_NAME}"

for needed in ("flask", "msgspec", "numpy", "platformdirs"):  # imported later, but the loader must know now
    if find_spec(needed) is None:
        raise ImportError(f"{needed} is not installed")


class Plugin(base_plugin.TBPlugin):
    """The tab `TorchTidy`."""

    plugin_name = _NAME

    def __init__(self, context: base_plugin.TBContext) -> None:
        flags = context.flags
        follow_links = bool(getattr(flags, "torchtidy_follow_links", False))
        spec = getattr(flags, "logdir_spec", "") or ""
        self._logdirs = parse_logdirs(context.logdir or "", spec, follow_links=follow_links)
        self._source_roots = source_roots(getattr(flags, "torchtidy_source_roots", "") or "", current_folder())
        self._benchmarks = getattr(flags, "torchtidy_benchmarks", "") or ""
        self._host, self._bind_all = getattr(flags, "host", "") or "", bool(getattr(flags, "bind_all", False))
        self._named_hosts = getattr(flags, "torchtidy_hosts", "") or ""
        background = ThreadPoolExecutor(1, "torchtidy-start")
        configuration = configuration_file(getattr(flags, "torchtidy_config", "") or "")
        self._data_provider = context.data_provider
        cache = getattr(flags, "torchtidy_cache", "") or ""
        device = getattr(flags, "torchtidy_device", "") or ""
        self._profiles = background.submit(
            open_profiles, self._logdirs, configuration, self._source_roots, cache, device
        )
        background.shutdown(wait=False)

    def is_active(self) -> bool:
        """Called for each load of the page; true until the first search is over."""
        if not self._profiles.done():
            return True
        profiles = self._profiles.result()
        return profiles.has_traces or profiles.scanning

    def get_plugin_apps(self) -> dict[str, WSGIApplication]:
        return {"/*": Mount(self._make_app, MOUNT_POINT)}

    def _make_app(self) -> WSGIApplication:
        profiles = self._profiles.result()
        profiles.watch()
        from tb_tidy_plugin.benchmarks.runner import has_torch
        from tb_tidy_plugin.plugin.allowed_hosts import hosts_of
        from tb_tidy_plugin.plugin.benchmark_queue import BenchmarkQueue, refusal_of
        from tb_tidy_plugin.plugin.logged import LoggedRuns
        from tb_tidy_plugin.plugin.mutes import MuteStore
        from tb_tidy_plugin.plugin.web import create_app

        queue = BenchmarkQueue(refusal_of(self._benchmarks, self._host, bind_all=self._bind_all, has_torch=has_torch()))
        hosts = hosts_of(self._host, bind_all=self._bind_all, named=self._named_hosts)
        logged = LoggedRuns(self._data_provider)
        return create_app(profiles, self._source_roots, MuteStore(self._logdirs), queue, hosts, logged)

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="TorchTidy")
