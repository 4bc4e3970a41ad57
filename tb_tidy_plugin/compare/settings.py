"""Differences between two jobs and their recordings besides time, to be read before any number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tb_tidy_plugin.compare.model import SettingChange
from tb_tidy_plugin.compare.recording import Chosen
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.trace.settings import Setting, Settings

FOLDED = {"recorded", "profiler options"}
"""Settings whose absence on one side is a difference; other settings known on only one side are not."""

_VERSION = " version"
_THREADS = ("intra op", "inter op", "available cores")
SLOWS_RECORDING = ("stacks", "shapes", "memory")


def setting_changes(base: Sequence[Chosen], candidate: Sequence[Chosen]) -> list[SettingChange]:
    """All differences; settings known on only one side are left out."""
    before, after = _facts(base), _facts(candidate)
    return [
        SettingChange(name=name, base=before.get(name, ""), candidate=after.get(name, ""))
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name) and (name in FOLDED or (name in before and name in after))
    ]


def other_machine(changes: Sequence[SettingChange]) -> bool:
    """True if the sides run on different hardware or software: equal work may then rightly take another time."""
    return any(change.name in {"devices", *_THREADS} or change.name.endswith(_VERSION) for change in changes)


def _facts(side: Sequence[Chosen]) -> dict[str, str]:
    """Known settings of a side, in words by name, each distinct value once."""
    found: dict[str, dict[str, None]] = {}
    for each in side:
        facts = dict(_of_report(each.recording.report))
        facts["profiler options"] = ", ".join(each.recording.costs.options)  # besides those in `recorded`
        for name, text in facts.items():
            found.setdefault(name, {})[text] = None
    facts = {name: "; ".join(sorted(texts)) for name, texts in found.items()}
    return facts | {"ranks": "; ".join(map(str, sorted(set(ranks_by_run(side).values()))))}


def ranks_by_run(side: Iterable[Chosen]) -> dict[str, int]:
    """The number of ranks of each run; recordings that state no rank are one rank, however many they are."""
    ranks: dict[str, set[int | None]] = {}
    for each in side:
        ranks.setdefault(each.recording.run, set()).add(each.recording.report.rank)
    return {run: max(len(found - {None}), 1) for run, found in ranks.items()}


def _of_report(report: ProfileReport) -> Iterator[tuple[str, str]]:
    devices = dict.fromkeys(device.name or device.kind for device in report.devices)
    yield "devices", ", ".join(devices) or "CPU"
    yield "kinds of steps", report.steps.basis.replace("_", " ")
    yield "kinds of recording", report.ledger.recording
    yield "recorded", ", ".join(name for name in SLOWS_RECORDING if name in report.recorded)
    if report.settings is not None:
        yield from _of_settings(report.settings)


def _of_settings(settings: Settings) -> Iterator[tuple[str, str]]:
    for group in ("versions", "threads", "processor", "numerics"):
        for name, text in _values(getattr(settings, group)):
            yield f"{name}{_VERSION}" if group == "versions" else name.replace("_", " "), text
    if settings.process.world_size is not None:
        yield "world size", str(settings.process.world_size)
    if settings.process.backend is not None:
        yield "backend of processes", settings.process.backend
    if settings.optimizers:
        yield "optimizers", ", ".join(sorted(each.kind for each in settings.optimizers))
    yield from _of_each((each.kind, each) for each in settings.optimizers)
    yield from _of_each((each.dataset, each) for each in settings.loaders)


def _of_each(known: Iterable[tuple[str, Setting]]) -> Iterator[tuple[str, str]]:
    """The values of each optimizer and loader that is the only one of its class; others are ambiguous."""
    pairs = list(known)
    names = [name for name, _ in pairs]
    for name, setting in pairs:
        if names.count(name) == 1:
            yield from ((f"{name} {each}", text) for each, text in _values(setting) if text != name)


def _values(setting: Setting) -> Iterator[tuple[str, str]]:
    """Names and values of the known settings, as Python writes them."""
    for name, value in msgspec.structs.asdict(setting).items():
        if value is not None and value != ():
            yield name, ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
