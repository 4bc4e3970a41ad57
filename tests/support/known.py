"""Profiles with facts that a trace does not hold."""

from __future__ import annotations

from msgspec.structs import replace

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.system.decoders import convert
from tb_tidy_plugin.trace.columns import Captured, PageFaults
from tb_tidy_plugin.trace.settings import Settings


def with_settings(profile: Profile, workers_busy: float | None = None, workers: int = 0, **topics: object) -> Profile:
    """The profile as captured with these settings, as in the side file, and so many workers that compute so long."""
    settings = convert(topics, Settings)
    return _with(profile, Captured(settings=settings, workers=workers, workers_busy=workers_busy))


def with_true_step(profile: Profile, step_ns: int) -> Profile:
    """The profile with a known duration of a step without the profiler."""
    return _with(profile, Captured(step_ns=step_ns))


def with_faults(profile: Profile, recorded: tuple[int, ...], usual: int, each_ns: int) -> Profile:
    """The profile with known numbers of page faults in its recorded steps and in others."""
    return _with(profile, Captured(faults=PageFaults(recorded, usual, each_ns)))


def _with(profile: Profile, captured: Captured) -> Profile:
    return Profile(replace(profile.table, metadata=replace(profile.metadata, captured=captured)))
