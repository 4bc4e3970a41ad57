"""The data behind the web API's answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from tb_tidy_plugin.plugin.benchmark_queue import BenchmarkQueue
from tb_tidy_plugin.plugin.comparisons import Comparisons
from tb_tidy_plugin.plugin.models import LoggedRun
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.plugin.timelines import Timelines

Logged: TypeAlias = Callable[[], Mapping[str, LoggedRun]]
"""Gives the values that jobs logged beside their traces, by run."""

ANALYSIS_PATIENCE_S = 20.0  # for an analysis that must be repeated before an answer is possible


def nothing_logged() -> Mapping[str, LoggedRun]:
    """For servers without TensorBoard's event files."""
    return {}


class Served(msgspec.Struct, frozen=True):
    """The profiles in the logdirs, and all data beside them."""

    profiles: Profiles
    source_roots: Sequence[Path]
    mutes: MuteStore
    benchmarks: BenchmarkQueue
    timelines: Timelines
    comparisons: Comparisons
    logged: Logged = nothing_logged
