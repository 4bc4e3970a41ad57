"""The search for a configuration that the user did not name, and the selection of its settings.

A configuration can run code, and lift the limits that protect from a hostile trace. So a found one is used in full only
if nobody but this user could have written it and the files that it names, and none of them lies in a folder that is
analysed. From any other one, only data is used.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from tb_tidy_plugin.configuration import trust
from tb_tidy_plugin.configuration.files import (
    OWN_FILE,
    PROJECT_FILE,
    Configuration,
    ConfigurationSettings,
    settings_of,
    unreadable_file,
)
from tb_tidy_plugin.configuration.limits import LIMITS, only_lowers
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.remote import is_file
from tb_tidy_plugin.words.errors import ConfigurationError, NotFoundError

ONLY_DATA = ("select", "ignore", "per_path_ignores", "thresholds", "device", "devices")
"""Settings that only decide what is shown. All others, including new ones, are used from trusted files only."""

REPOSITORY = ".git"
MOST_CONFIGURATION_BYTES = 1 << 20


def find_configuration(folder: Path, analysed: Sequence[Path] = (), *, follow_links: bool = False) -> Configuration:
    """The nearest configuration, from `folder` up to the repository's root or the home folder; else an empty one.

    Args:
        folder: the current folder.
        analysed: the traces and folders given to a command; no configuration in them is trusted.
        follow_links: True if the command follows links out of these folders.

    Raises:
        ConfigurationError: there is one, and it cannot be used.
    """
    for path in (candidate / name for candidate in _searched(folder) for name in (OWN_FILE, PROJECT_FILE)):
        if not is_file(path):
            continue
        try:
            content = trust.read(path, MOST_CONFIGURATION_BYTES + 1)
        except OSError as problem:
            raise unreadable_file(path, problem) from None
        if len(content.data) > MOST_CONFIGURATION_BYTES:
            raise ConfigurationError(f"`{path}` is larger than 1 MiB.", "If it is yours, name it with `--config`.")
        settings = settings_of(path, content.data)
        if settings is not None:
            return _used(path, settings, content.doubt, _run_folders(analysed, follow_links=follow_links))
    return Configuration()


def _searched(folder: Path) -> Sequence[Path]:
    """The folders that may hold a configuration: only `folder` if it is neither in a repository nor at home."""
    home = trust.home_folder()
    upwards = (folder, *folder.parents)
    for count, each in enumerate(upwards, 1):
        if each == home or os.path.lexists(each / REPOSITORY):
            return upwards[:count]
    return upwards[:1]


def _used(path: Path, settings: ConfigurationSettings, doubt: str, run_folders: Iterator[Path]) -> Configuration:
    """The configuration with all settings of its file, or with data only and the reason."""
    data = _only_data(settings)
    if data == settings:
        return Configuration(settings, path)
    from tb_tidy_plugin.configuration.user_rules import content_of

    runs = trust.identities(run_folders)
    sources = {}
    try:
        doubt = doubt or _doubt_of_place(path, runs)
        for name in settings.rules:
            if name.endswith(".py") and not doubt:
                content = content_of(path.parent / name)
                sources[name] = content.data
                doubt = content.doubt or _doubt_of_place(path.parent / name, runs)
    except OSError as problem:
        raise unreadable_file(path, problem) from None
    if not doubt:
        return Configuration(settings, path, sources)
    fields = msgspec.structs.fields(ConfigurationSettings)
    withheld = [each.encode_name for each in fields if getattr(settings, each.name) != getattr(data, each.name)]
    return Configuration(data, path, withheld=tuple(withheld), doubt=doubt)


def _only_data(settings: ConfigurationSettings) -> ConfigurationSettings:
    """The settings that are used from any file; of the limits, only lower ones."""
    limits = {key: value for key, value in settings.limits.items() if key not in LIMITS or only_lowers(key, value)}
    return ConfigurationSettings(**{name: getattr(settings, name) for name in ONLY_DATA}, limits=limits)


def _run_folders(analysed: Sequence[Path], *, follow_links: bool) -> Iterator[Path]:
    """The folders that are analysed, and the real folders of all traces that the command finds in them."""
    for place in analysed:
        yield place if os.path.isdir(place) else place.parent  # noqa: PTH112 - pathlib's may raise
        with suppress(NotFoundError):  # the command will report it
            for trace in find_traces(place, follow_links=follow_links):
                yield Path(trace.path).resolve().parent


def _doubt_of_place(path: Path, runs: Collection[trust.Identity]) -> str:
    run = trust.folder_among(path, runs)
    return "" if run is None else f"`{path.name}` is in `{run}`, which this command analyses"
