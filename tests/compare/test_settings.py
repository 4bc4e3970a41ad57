"""What is different about two jobs is said before any number."""

from __future__ import annotations

from functools import cache

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.compare.compare import Asked, compared
from tb_tidy_plugin.compare.reading import asked_for
from tb_tidy_plugin.dev.generate import ROOT
from tb_tidy_plugin.report.model import Device
from tb_tidy_plugin.trace.settings import LoaderSettings, Numerics, OptimizerSettings, Settings, Threads, Versions


@cache
def recorded() -> Asked:
    return asked_for(ROOT / "sample_runs" / "image_classifier_untidy", Job(()))


def having(settings: Settings | None, **changes: object) -> Asked:
    """The recording as if its job had these settings; in another place, so that it is not the same one."""
    [recording] = recorded().recordings
    report = msgspec.structs.replace(recording.report, settings=settings, path=repr((settings, changes)), **changes)
    return replace(recorded(), recordings=[msgspec.structs.replace(recording, report=report)])


def notes(base: Settings | None, candidate: Settings | None) -> list[str]:
    return [note for note in compared(having(base), having(candidate)).notes if note.startswith("Different")]


def test_settings_that_changed() -> None:
    base = Settings(
        versions=Versions(torch="2.12.0", python="3.11"),
        numerics=Numerics(tf32_matmul=False),
        optimizers=(OptimizerSettings(kind="Adam", foreach=False, parameters=10),),
        loaders=(LoaderSettings(dataset="Images", num_workers=0),),
    )
    candidate = Settings(
        versions=Versions(torch="2.13.0", python="3.11"),
        numerics=Numerics(tf32_matmul=True),
        optimizers=(OptimizerSettings(kind="Adam", foreach=True, parameters=10),),
        loaders=(LoaderSettings(dataset="Images", num_workers=4),),
    )
    assert notes(base, candidate)[:4] == [
        "Different torch version: 2.12.0 against 2.13.0.",
        "Different tf32 matmul: False against True.",
        "Different Adam foreach: False against True.",
        "Different Images num_workers: 0 against 4.",
    ]


def test_equal_settings_are_not_worth_a_word() -> None:
    settings = Settings(versions=Versions(torch="2.13.0"), threads=Threads(intra_op=4))
    assert notes(settings, settings) == []


def test_what_only_one_side_knows_is_no_change() -> None:
    assert notes(None, Settings(versions=Versions(torch="2.13.0"))) == []


def test_two_optimizers_of_one_class_cannot_be_told_apart() -> None:
    twice = [(OptimizerSettings(kind="Adam", foreach=each), OptimizerSettings(kind="Adam")) for each in (True, False)]
    assert notes(*(Settings(optimizers=both) for both in twice)) == []


def test_a_recording_of_the_start_is_not_a_steady_one() -> None:
    steady = having(None)
    [recording] = steady.recordings
    start = msgspec.structs.replace(recording.report.ledger, recording="start-up")
    report = msgspec.structs.replace(recording.report, ledger=start)
    found = compared(replace(steady, recordings=[msgspec.structs.replace(recording, report=report)]), steady).notes
    assert "Different kinds of recording: start-up against steady." in found


def test_other_devices_and_other_recordings() -> None:
    device = Device(kind="cuda", index=0, name="H100", compute_capability="9.0")
    found = compared(having(None), having(None, devices=[device], recorded=["steps"])).notes
    assert found[:2] == [
        "Different devices: CPU against H100.",
        "Different recorded: stacks, shapes against none.",
    ]
