"""all-reduce-between-copies: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.serving.all_reduce_between_copies import AllReduceBetweenCopies
from tb_tidy_plugin.trace.files import find_traces
from tests.support.recordings import shared


def layers(count: int = 8, before: str = "copy=DtoD@{}-{}:64", behind: str = "copy=DtoD@{}-{}:64") -> str:
    lines = [f"ProfilerStep#1 0-{200 + 100 * count}"]
    for at in range(count):
        host, device = 1 + 10 * at, 200 + 100 * at
        lines += [
            f"  aten::copy_ {host}-{host + 2} {before.format(device, device + 10)}",
            f"  symm_mem::all_reduce_ {host + 3}-{host + 5} kernel=multimem_all_reduce<T>@{device + 10}-{device + 80}",
            f"  aten::copy_ {host + 6}-{host + 8} {behind.format(device + 80, device + 100)}",
        ]
    return "\n".join(lines)


class TestReports:
    def test_copies_on_both_sides(self) -> None:
        (finding,) = findings(AllReduceBetweenCopies, draw(layers(), A100))
        assert finding.message == (
            "8 collectives (`multimem_all_reduce`) have a copy right before and after them, which take 240 µs"
        )


class TestSaves:
    def test_the_copies(self) -> None:
        assert saving_ns(AllReduceBetweenCopies, draw(layers(), A100)) == (0, 240_000, 240_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "text",
        [
            pytest.param(layers(7), id="seven times"),
            pytest.param(layers(before="kernel=add@{}-{}"), id="a kernel before"),
            pytest.param(layers(behind="copy=DtoH@{}-{}:64"), id="a copy to the host behind"),
        ],
    )
    def test_for(self, text: str) -> None:
        assert matches_of(AllReduceBetweenCopies, draw(text, A100)) == ()


def test_the_prefill_of_b200() -> None:
    """146 copies around 73 collectives, 0.78 ms: counted by hand from the raw JSON."""
    (file,) = find_traces(shared("traces/b200_eager"))
    analysis = read_file(file, Job(rules=(AllReduceBetweenCopies(),)))
    matches = matches_of(AllReduceBetweenCopies, analysis.profile)
    assert len({event for match in matches for event in match.events}) == 146
    assert matches[0].evidence.time == pytest.approx(781_000, rel=0.01)
    assert analysis.report.findings[0].places[0].file.endswith("symm_mem.py")
