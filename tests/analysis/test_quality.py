"""What is said of a recording that is not all right; and that its sums are right nevertheless."""

from __future__ import annotations

from pathlib import Path

import pytest

import tb_tidy_plugin
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.words.causes import Cause
from tests.support.commands import tidy
from tests.support.recordings import shared
from tests.support.written import event, kineto_text, write

STEP = event("ProfilerStep#1", 100, 1000, cat="user_annotation")


def launch(ts: float, **args: object) -> dict[str, object]:
    return event("cudaLaunchKernel", ts, 2, cat="cuda_runtime", args=args)


def kernel(ts: float, dur: float = 50, **args: object) -> dict[str, object]:
    return event("gemm", ts, dur, cat="kernel", pid=0, tid=7, args={"device": 0, "stream": 7} | args)


def arrow(phase: str, number: int, ts: float) -> dict[str, object]:
    return {"ph": phase, "id": number, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": ts}


UNKNOWN = (
    "3 of 4 events have an unknown category (`npu_task`, `ä`): no figure includes them. If this is a device's work, "
    "the device is unsupported."
)
CASES: dict[str, tuple[list[dict[str, object]], str]] = {
    "kernel without launch": ([kernel(200)], "1 of 1 device events have no launch in the file."),
    "launch without kernel": (
        [launch(110, correlation=1), launch(120, correlation=2), kernel(200, correlation=1)],
        "1 launch has no device event in the file.",
    ),
    "kernel before its launch": (
        [launch(210, correlation=1), kernel(200, correlation=1)],
        "1 device event starts up to 10 µs before the launch: clocks differ.",
    ),
    "arrow without start": (
        [launch(110, correlation=1), kernel(200), arrow("f", 9, 200)],
        "1 flow arrow has an end and no start.",
    ),
    "device beyond the properties": (
        [launch(110, correlation=1), kernel(200, correlation=1, device=9)],
        "The trace describes no device 9: its name and peak rates are unknown.",
    ),
    "devices that fall behind": (
        [launch(110, correlation=1), kernel(150, 1950, correlation=1)],
        "Devices fall behind their host: they finish 1 ms after its last step. A step takes about 2 ms.",
    ),
    "overlapping steps": (
        [event("ProfilerStep#2", 900, 1000, cat="user_annotation")],
        "1 step mark overlaps the next one: a step ends where the next begins.",
    ),
    "steps of two threads": (
        [event("ProfilerStep#2", 900, 1000, cat="user_annotation", tid=2)],
        "Several threads mark steps at the same time. Only the thread with most marks counts: 1 mark is left out.",
    ),
    "a step of no length": ([event("ProfilerStep#2", 1200, 0, cat="user_annotation")], "1 step has no length."),
    "no category": (
        [event("AscendCL@aclnnMatmul", 200, 50, cat="")],
        "1 of 2 events has no category: no figure includes it. If this is a device's work, the device is unsupported.",
    ),
    "categories that are not known": (
        [event("work", 200, 50, cat="npu_task"), event("work", 300, 50, cat="npu_task"), event("x", 400, 5, cat="ä")],
        UNKNOWN,
    ),
    "negative duration": ([event("aten::mm", 200, -7)], "1 events left out: negative or impossible duration."),
}


def test_a_device_that_is_not_listed_is_taken_for_those_that_are(tmp_path: Path) -> None:
    report = analyzed(tmp_path, [launch(110, correlation=1), kernel(200, correlation=1, device=9)], "Tesla T4")
    assert "The trace describes no device 9: it is taken for the Tesla T4 that is listed." in report.quality.notes


def analyzed(tmp_path: Path, events: list[dict[str, object]], device: str = "") -> ProfileReport:
    footer = f'"deviceProperties": [{{"id": 0, "name": "{device}"}}]'
    write(tmp_path / "w.1.pt.trace.json", kineto_text([STEP, *events], footer))
    return tb_tidy_plugin.analyze(tmp_path).runs[0].profiles[0]


@pytest.mark.parametrize("case", CASES)
def test_said_and_never_summed_wrongly(tmp_path: Path, case: str) -> None:
    events, note = CASES[case]
    report = analyzed(tmp_path, events)
    assert note in report.quality.notes
    entries = report.ledger.entries
    steps = [sum(times) for times in zip(*(entry.ns_by_step for entry in entries), strict=True)]
    assert steps == [step.end_ns - step.start_ns for step in report.ledger.steps]
    assert all(time >= 0 for entry in entries for time in entry.ns_by_step)
    kernels = [each for each in events if each["cat"] == "kernel"]
    if kernels:
        assert sum(step.device_ns for step in report.ledger.steps) == (1_950_000 if "fall behind" in note else 50_000)
        assert report.devices[0].name == ""


def test_nothing_is_said_of_a_sound_recording(tmp_path: Path) -> None:
    report = analyzed(
        tmp_path, [launch(110, correlation=1), kernel(200, correlation=1), arrow("s", 1, 110), arrow("f", 1, 200)]
    )
    assert report.quality.notes == []


def test_how_much_each_of_several_devices_works(tmp_path: Path) -> None:
    first, second = kernel(200, 600, correlation=1), kernel(700, 250, correlation=2, device=1)
    report = analyzed(tmp_path, [launch(110, correlation=1), launch(120, correlation=2), first, second])
    assert (report.ledger.window.end_ns - report.ledger.window.start_ns) == 1_000_000
    (note,) = [note for note in report.quality.notes if "devices work" in note]
    assert note.endswith("device 0 for 60 %, device 1 for 25 %.")
    assert sum(each.ns_total for each in report.ledger.entries if each.cause is Cause.COMPUTE) == 750_000


def test_notes_of_a_real_trace() -> None:
    (run,) = tb_tidy_plugin.analyze(shared("traces/mi300_ddp8_resnet_checkpoint")).runs
    notes = " ".join(run.profiles[0].quality.notes)
    assert "968 of 3,653 device events have no launch in the file." in notes
    assert "0.89 % of the Python frames" in notes


def test_events_that_are_known_and_not_needed_are_not_mentioned(tmp_path: Path) -> None:
    report = analyzed(tmp_path, [event("Event Sync", 200, 5, cat="cuda_sync"), event("aten::mm", 300, 5)])
    assert (report.quality.notes, report.quality.unknown_events) == ([], 0)


def test_a_device_whose_events_are_not_understood_is_not_called_a_cpu(tmp_path: Path) -> None:
    work = {key: value for key, value in event("MatMulV2", 200, 900, pid=9002).items() if key != "cat"}
    report = analyzed(tmp_path, [event("aten::mm", 120, 5), work])
    assert report.quality.unknown_events == 1
    text = tidy("check", "--no-cache", "--isolated", tmp_path).stdout
    assert "3 events over 1 ms on an unknown device" in text


def test_marks_of_steps_count_in_the_category_of_operators(tmp_path: Path) -> None:
    steps = [event(f"ProfilerStep#{at}", 1100 + 100 * at, 100, cat="cpu_op") for at in (2, 3)]
    inside = [event("aten::mm", 1110 + 100 * at, 50) for at in (2, 3)]
    report = analyzed(tmp_path, [event("aten::mm", 120, 5), *steps, *inside])
    assert [item.name for item in report.steps.items] == ["ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"]
