"""Entry point of the `tensorboard_plugins` group.

TensorBoard imports this module without a guard: an exception here would stop TensorBoard itself. So it imports only the
standard library and TensorBoard's own base class, and everything else inside `load`.
"""

from __future__ import annotations

import argparse
import logging
from typing import TYPE_CHECKING

from tensorboard.plugins import base_plugin

if TYPE_CHECKING:
    from tb_tidy_plugin.plugin.plugin import Plugin

log = logging.getLogger("tensorboard")

SOURCE_ROOTS_HELP = """Folders from which the TorchTidy tab may show source files, besides the run's folder and the one
where TensorBoard was started. Separate them by commas, or as in PATH."""
CONFIG_HELP = """Configuration of the TorchTidy tab: a `tb-tidy.toml`, or a `pyproject.toml` with `[tool.tb-tidy]`.
Default: the file in TB_TIDY_CONFIG, if any; the tab does not search for other files."""

CACHE_HELP = """Folder for results of the TorchTidy tab, so a trace opens at once the next time; `off` caches nothing.
Only you may have write access to it. Default: this user's cache folder. It takes at most 2 GiB, and you can delete
it at any time."""

BENCHMARKS_HELP = """Let the TorchTidy tab run benchmarks on this machine: `local` if only this machine can reach
TensorBoard, `any` in all cases. Default: off."""

FOLLOW_LINKS_HELP = """Follow links that lead out of the logdir; otherwise the TorchTidy tab skips them."""

DEVICE_HELP = """Name of the GPU for recordings that do not name theirs, as in `nvidia-smi -L`: the TorchTidy tab then
knows its limits."""

HOSTS_HELP = """Host names of proxies in front of TensorBoard, separated by commas. The TorchTidy tab answers only these
names, IP addresses, this machine's own name, and HTTPS requests."""


class Loader(base_plugin.TBLoader):
    """Adds the plugin's flags to TensorBoard's, and loads the plugin if its dependencies are installed."""

    def define_flags(self, parser: argparse.ArgumentParser) -> None:
        group = parser.add_argument_group("torchtidy")
        _add(group, "--torchtidy_benchmarks", "WHO", BENCHMARKS_HELP)
        _add(group, "--torchtidy_cache", "FOLDER", CACHE_HELP)
        _add(group, "--torchtidy_config", "FILE", CONFIG_HELP)
        _add(group, "--torchtidy_device", "NAME", DEVICE_HELP)
        _add(group, "--torchtidy_follow_links", None, FOLLOW_LINKS_HELP)
        _add(group, "--torchtidy_hosts", "NAMES", HOSTS_HELP)
        _add(group, "--torchtidy_source_roots", "FOLDERS", SOURCE_ROOTS_HELP)

    def load(self, context: base_plugin.TBContext) -> Plugin | None:
        try:
            from tb_tidy_plugin.plugin.plugin import Plugin
        except ImportError as missing:
            log.warning("torchtidy: plugin not loaded: %s", missing)
            return None
        return Plugin(context)


def _add(group: argparse._ArgumentGroup, name: str, value: str | None, text: str) -> None:
    """Adds a flag with a `value`, or a boolean flag if it is None."""
    try:
        if value is None:
            group.add_argument(name, action="store_true", help=text)
        else:
            group.add_argument(name, metavar=value, default="", help=text)
    except argparse.ArgumentError as conflict:  # another plugin took the name
        log.warning("torchtidy: flag not added: %s", conflict)
