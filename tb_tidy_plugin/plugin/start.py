"""Start-up of every server of the page: the configuration, the cache and the search for traces."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tb_tidy_plugin.plugin.logdirs import Logdir
    from tb_tidy_plugin.plugin.profiles import Profiles

CONFIGURATION = "TB_TIDY_CONFIG"


def configuration_file(given: str) -> Path | None:
    """The given file, else that of the environment, relative to the current folder.

    Nothing is searched for, least of all in a logdir: a configuration names Python files to run.
    """
    named = given or os.environ.get(CONFIGURATION, "")
    return current_folder() / named if named else None


def open_profiles(
    logdirs: Sequence[Logdir], configuration: Path | None, roots: Sequence[Path], cache: str, device: str = ""
) -> Profiles:
    """Starts to look for traces; `cache` is a folder, `off`, or empty for the default one.

    `device` is the name of the device of recordings that do not name theirs.

    Its imports would delay TensorBoard's start.
    """
    from tb_tidy_plugin.plugin.analysis import AnalysisSettings
    from tb_tidy_plugin.plugin.profiles import Profiles
    from tb_tidy_plugin.trace.cache import NOWHERE, Cache, default_folder

    folder = current_folder() / cache if cache else default_folder()
    keeping = NOWHERE if cache == "off" else Cache(folder).usable()
    profiles = Profiles(logdirs, asked=AnalysisSettings(configuration, tuple(roots), keeping, device))
    profiles.start()
    return profiles


def current_folder() -> Path:
    """The folder that this process was started in; if it was deleted, the disk's root, which belongs to no user."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")
