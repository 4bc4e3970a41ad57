"""Settings of an analysis, the same for every command and for the tab."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, overload

import msgspec

from tb_tidy_plugin.analysis.engines import HERE, Engine
from tb_tidy_plugin.analysis.ignores import NOTHING_IGNORED, PathIgnores
from tb_tidy_plugin.trace.cache import NOWHERE, Cache
from tb_tidy_plugin.trace.files import TraceFile
from tb_tidy_plugin.trace.limits import USUAL_LIMITS, Limits

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.device_models import DeviceModel
    from tb_tidy_plugin.rulekit import AnyRule, Rule, RunRule

Progress: TypeAlias = Callable[[TraceFile, str, float], object]
"""Called with the file, the stage (`reading`, `analysing`) and the completed part of it, 0 to 1."""


class UsualRules(Sequence["AnyRule"]):
    """The whole catalogue with its default thresholds; imported on first use of a rule."""

    @overload
    def __getitem__(self, at: int) -> AnyRule: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[AnyRule]: ...

    def __getitem__(self, at: int | slice) -> AnyRule | Sequence[AnyRule]:
        return _usual_rules()[at]

    def __len__(self) -> int:
        return len(_usual_rules())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UsualRules)

    def __hash__(self) -> int:
        return hash(UsualRules)


@cache
def _usual_rules() -> tuple[AnyRule, ...]:
    from tb_tidy_plugin.rules import catalogue

    return tuple(rule() for rule in catalogue())


class Job(msgspec.Struct, frozen=True):
    """Settings of an analysis.

    Attributes:
        rules: the rules to check, over profiles and over runs; all by default.
        ignores: findings to leave out.
        source_roots: folders in which sources may be read, besides each trace's own; they give lines inside functions.
        undated: folders whose files have the time of a copy, which says nothing about changes since a recording.
        engine: where the traces are analysed; the answers are the same.
        cache: holds earlier answers and stores new ones. Workers on other machines do not use it.
        limits: the size of a trace, and the memory and time of its analysis.
        devices: peak rates by the name of a device; they override those of known devices.
        device: the name of the device of recordings that do not name theirs.
        graph_captures: recordings of the capture of graphs that traces replay; by default those beside each trace.
        follow_links: True if links in a folder may lead out of it.
        progress: None if nobody watches. With several workers, it is called once for each file.
    """

    rules: Sequence[AnyRule] = UsualRules()
    ignores: PathIgnores = NOTHING_IGNORED
    source_roots: tuple[Path, ...] = ()
    undated: tuple[Path, ...] = ()
    engine: Engine = HERE
    cache: Cache = NOWHERE
    limits: Limits = USUAL_LIMITS
    devices: Mapping[str, DeviceModel] = msgspec.field(default_factory=dict)
    device: str = ""
    graph_captures: tuple[Path, ...] = ()
    follow_links: bool = False
    progress: Progress | None = None

    @property
    def of_profiles(self) -> tuple[Rule, ...]:
        """The rules over one profile."""
        from tb_tidy_plugin.rulekit import Rule

        return tuple(rule for rule in self.rules if isinstance(rule, Rule))

    @property
    def of_runs(self) -> tuple[RunRule, ...]:
        """The rules over several ranks together."""
        from tb_tidy_plugin.rulekit import RunRule

        return tuple(rule for rule in self.rules if isinstance(rule, RunRule))

    def rule_called(self, name: str) -> Rule | None:
        """The rule over one profile with this name; None if it is not to be checked."""
        return next((rule for rule in self.of_profiles if rule.name() == name), None)

    def report(self, file: TraceFile, stage: str, fraction: float) -> None:
        """Calls `progress`, if there is one."""
        if self.progress is not None:
            self.progress(file, stage, fraction)
