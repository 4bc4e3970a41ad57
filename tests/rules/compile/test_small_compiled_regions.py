"""small-compiled-regions: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.compile.small_compiled_regions import SmallCompiledRegions


def lines_of_step(number: int, start: int, regions: int, graph_us: int) -> list[str]:
    period = graph_us + 60
    lines = [f"ProfilerStep#{number} {start}-{start + regions * period + 20}"]
    for region in range(regions):
        at = start + 10 + region * period
        lines += [
            f"  TorchDynamo Cache Lookup {at}-{at + 12}",
            f"  Torch-Compiled Region: 0/{region} {at + 13}-{at + period - 5}",
            f"    CompiledFunction {at + 25}-{at + 25 + graph_us}",
            f"      aten::mm {at + 26}-{at + 20 + graph_us}",
        ]
    return lines


def job(regions: int = 6, graph_us: int = 40, step: str = "ProfilerStep#1", inside: str = "") -> Profile:
    """Layers that are compiled one by one: 12 µs of look-up and 8 µs of prologues each."""
    period = graph_us + 60
    lines = [f"{step} 0-{regions * period + 400}", f"  train.py(9): forward 1-{regions * period + 399}"]
    for number in range(regions):
        at = 10 + number * period
        lines += [
            f"    TorchDynamo Cache Lookup {at}-{at + 12}",
            f"    Torch-Compiled Region: 0/{number} {at + 13}-{at + period - 5}",
            f"      Pregraph bytecode {at + 14}-{at + 17}",
            f"      AOTDispatcher Runtime Wrapper Prologue {at + 18}-{at + 23}",
            f"      CompiledFunction {at + 25}-{at + 25 + graph_us}",
            f"        aten::mm {at + 26}-{at + 20 + graph_us}",
            *([f"      {inside} {at + 26 + graph_us}-{at + 30 + graph_us}"] if inside else []),
        ]
    return draw("\n".join(lines))


class TestReports:
    def test_the_regions_where_they_are_called(self) -> None:
        (finding,) = findings(SmallCompiledRegions, job())
        assert finding.message == "6 compiled regions per step take 366 µs around their operators"
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "forward")]
        assert finding.matches == 6

    @pytest.mark.parametrize(("graphs_us", "found"), [((40, 40, 9000), 1), ((360, 360, 40), 0)])
    def test_by_the_usual_step(self, graphs_us: tuple[int, ...], found: int) -> None:
        lines: list[str] = []
        for number, graph_us in enumerate(graphs_us):
            lines += lines_of_step(number, number * 100_000, 6, graph_us)
        assert len(findings(SmallCompiledRegions, draw("\n".join(lines)))) == found


class TestSaves:
    def test_all_but_one_share_of_what_is_around_the_operators(self) -> None:
        """Of each region 26 µs up to its operator and 35 after it."""
        assert saving_ns(SmallCompiledRegions, job()) == (0, 305_000, 305_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(regions=3), id="model, loss and optimizer"),
            pytest.param(job(graph_us=800), id="large layers"),
            pytest.param(job(step="## part"), id="steps that are not marked"),
            pytest.param(job(inside="Torch-Compiled Region: 9/0"), id="calls that a break took apart"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(SmallCompiledRegions, profile) == ()
