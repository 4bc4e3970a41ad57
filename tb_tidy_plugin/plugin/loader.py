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

SOURCE_ROOTS_HELP = """Folders from which the TorchTidy tab may show source files, besides the folder of the run and
the one TensorBoard was started in. Separated by commas, or as in PATH."""
CONFIG_HELP = """Configuration of the TorchTidy tab: a `tb-tidy.toml`, or a `pyproject.toml` with `[tool.tb-tidy]`.
Without it the environment variable TB_TIDY_CONFIG; no file is looked for."""

CACHE_HELP = """Where the TorchTidy tab keeps what it worked out, so that a trace opens at once the next time; `off` for
nowhere. A folder that only you may write; by default in this user's cache folder; at most 2 GiB; may be deleted at any
time."""

BENCHMARKS_HELP = """Whether the TorchTidy tab may run benchmarks on this machine: `local` where TensorBoard is reached
from this machine only, `any` wherever it is reached from; otherwise they are off."""

FOLLOW_LINKS_HELP = """Follow links that lead out of the logdir; otherwise the TorchTidy tab passes them over."""

HOSTS_HELP = """Names, separated by commas, by which TensorBoard is reached through a proxy; the TorchTidy tab answers
to no others, besides addresses, this machine's own name, and HTTPS."""


class Loader(base_plugin.TBLoader):
    """Adds the plugin's flags to TensorBoard's, and loads the plugin if its dependencies are installed."""

    def define_flags(self, parser: argparse.ArgumentParser) -> None:
        group = parser.add_argument_group("torchtidy")
        _add(group, "--torchtidy_benchmarks", "WHO", BENCHMARKS_HELP)
        _add(group, "--torchtidy_cache", "FOLDER", CACHE_HELP)
        _add(group, "--torchtidy_config", "FILE", CONFIG_HELP)
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
