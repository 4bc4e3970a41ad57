"""`Profiles` of folders of traces, called as the web API calls them."""

from __future__ import annotations

from pathlib import Path

from tb_tidy_plugin.plugin.analysis import AnalysisSettings
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import ProfileState
from tb_tidy_plugin.plugin.profiles import KEPT_BYTES, Profiles
from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.trace.cache import NOWHERE, Cache
from tests.support.waiting import PATIENCE_S, until
from tests.support.workers import WITH_MADE_UP_RULE

LIMIT_S = PATIENCE_S
RUN = Key("run", "w", "")


def started(
    folder: Path,
    command: tuple[str, ...] = WITH_MADE_UP_RULE,
    kept_bytes: int = KEPT_BYTES,
    configuration: Path | None = None,
    cache: Cache = NOWHERE,
) -> Profiles:
    profiles = Profiles([Logdir(str(folder))], command, kept_bytes, AnalysisSettings(configuration, (), cache))
    profiles.start()
    until(lambda: not profiles.scanning)
    return profiles


def states(profiles: Profiles) -> dict[str, ProfileState]:
    """States by run; each run here has one profile."""
    return {run.run: run.profiles[0] for run in profiles.runs().runs}


def finished(profiles: Profiles, key: Key = RUN) -> ProfileState:
    """The state of a profile after its analysis, which this starts."""
    *_, last = profiles.progress(key)
    return last
