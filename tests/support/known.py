"""Profiles of which more is known than a trace holds."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import Captured, PageFaults
from tb_tidy_plugin.trace.settings import Settings


def with_settings(profile: Profile, **topics: object) -> Profile:
    """The same profile, captured with these settings, each as the side file has it."""
    return _with(profile, Captured(settings=msgspec.convert(topics, Settings)))


def with_true_step(profile: Profile, step_ns: int) -> Profile:
    """The same profile, of which it is known how long a step takes without the profiler."""
    return _with(profile, Captured(step_ns=step_ns))


def with_faults(profile: Profile, recorded: tuple[int, ...], usual: int, each_ns: int) -> Profile:
    """The same profile, of which it is known how often its recorded steps and others waited for memory to be mapped."""
    return _with(profile, Captured(faults=PageFaults(recorded, usual, each_ns)))


def _with(profile: Profile, captured: Captured) -> Profile:
    return Profile(replace(profile.table, metadata=replace(profile.metadata, captured=captured)))
