"""Gaps of the device: their time and parts against the events and the ledger, and the answer about a time."""

from __future__ import annotations

from collections import Counter

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.idle import idle_gaps
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.idle import idle_at
from tb_tidy_plugin.rulekit.testing import draw
from tb_tidy_plugin.trace.files import find_traces
from tests.support.recordings import shared

STEPS = """
ProfilerStep#1          0-999
  aten::mm              10-30    kernel=gemm@40-100
  aten::item            110-600
  aten::relu            610-640  kernel=relu@700-800
  aten::add             650-660  kernel=add@800-990
ProfilerStep#2          1000-2000
  aten::mm              1010-1040  kernel=gemm@1060-1990
"""


def gaps_by_hand(profile: Profile) -> list[tuple[int, int]]:
    """Time in the ledger's window that no kernel, copy or fill covers."""
    work, window = profile.device_work, account_of(profile).ledger.window
    found, at = list[tuple[int, int]](), window.start_ns
    for start, end in [*sorted(zip(work.starts.tolist(), work.ends.tolist(), strict=True)), (window.end_ns,) * 2]:
        if min(start, window.end_ns) > at:
            found.append((at, min(start, window.end_ns)))
        at = max(at, end)
    return found


def recording(name: str) -> Profile:
    return read_file(find_traces(shared(f"traces/{name}"))[0], Job()).profile


def test_an_answer_names_the_call_that_keeps_the_device_waiting_and_the_work_that_comes_next() -> None:
    gaps = idle_gaps(draw(STEPS))
    gap = idle_at(gaps, 400_000).gap
    assert gap is not None
    assert (gap.start_ns, gap.end_ns) == (100_000, 700_000)
    assert sum(part.ns for part in gap.parts) == 600_000
    longest = gap.parts[0]
    assert longest.ns == max(part.ns for part in gap.parts)
    assert (longest.call is not None and longest.call.name) == "aten::item"
    assert {part.work.name for part in gap.parts if part.work is not None} == {"relu"}


def test_there_is_no_gap_where_the_device_works_or_time_is_not_accounted_for() -> None:
    gaps = idle_gaps(draw(STEPS))
    assert idle_at(gaps, 750_000).gap is None
    assert idle_at(gaps, 750_000).accounted
    assert not idle_at(gaps, 10**9).accounted


@pytest.mark.any_recording
@pytest.mark.parametrize("name", ["h100_vit_pipeline", "t4_toy_kernels"])
def test_gaps_are_the_time_without_device_work_and_add_up_to_the_ledgers_entries(name: str) -> None:
    profile = recording(name)
    gaps = idle_gaps(profile)
    assert list(zip(gaps.starts, gaps.ends, strict=True)) == gaps_by_hand(profile)
    by_entry: Counter[str] = Counter()
    for start in gaps.starts:
        gap = idle_at(gaps, start).gap
        assert gap is not None
        assert sum(part.ns for part in gap.parts) == gap.end_ns - gap.start_ns
        by_entry.update({part.entry: part.ns for part in gap.parts})
    entries = account_of(profile).ledger.entries
    assert by_entry == {each.id: each.ns_total for each in entries if each.cause.is_of_device is False}


def test_only_the_longest_gaps_are_listed() -> None:
    profile = draw(STEPS)
    lengths = sorted((end - start for start, end in gaps_by_hand(profile)), reverse=True)
    few = idle_gaps(profile, most=1)
    assert [end - start for start, end in zip(few.starts, few.ends, strict=True)] == lengths[:1]
    assert few.least_ns == lengths[1]


def test_a_job_without_a_device_has_no_gaps() -> None:
    assert idle_gaps(draw("aten::mm 0-10")).starts == []
