"""attention-grid-for-longest-context: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.profile.graphs.replay import with_replayed
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import findings, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rules.serving.attention_grid_for_longest_context import AttentionGridForLongestContext
from tb_tidy_plugin.trace.files import find_traces
from tests.ledger.traces import Made
from tests.profile.graphs.test_replay_drawn import replay
from tests.support.recordings import shared

KERNEL = "paged_attention_kernel"
BANDWIDTH = 5.3e12
REQUESTS, HEADS, KEPT, SIZE = 32, 32, 8, 128
MARK = "execute_{requests}_context_0(sq0sk0sqsq0sqsk0)_generation_{requests}(sq{requests}sk{tokens}sqsq9sqsk9)"
LAYERS = 4
TOOK_NS = 10_000  # each kernel of `replay`


def moved(tokens: int) -> int:
    """Bytes that one attention reads and writes: keys, values, query and result, in half precision."""
    return 2 * tokens * KEPT * SIZE * 2 + 2 * REQUESTS * HEADS * SIZE * 2


def served(
    grid: object = (REQUESTS, 160, KEPT), tokens: int = 6000, mark: str = MARK, caches: int = 2, *, replays: bool = True
) -> Profile:
    """A decode step with four attention kernels, replayed from a capture or launched one by one."""
    given: dict[str, Any] = {"Input Dims": [[REQUESTS, HEADS, SIZE], *[[9999, 1, KEPT, SIZE]] * caches]}
    given |= {"Input type": ["c10::BFloat16"] * (1 + caches)}
    made = Made(name="AMD Instinct MI300X")
    for at in range(LAYERS):
        begin = (10 if replays else 1010) + 100 * at
        made.operator("serve::paged_attention", begin, begin + 90, **given)
        if replays:
            made.call("hipLaunchKernel", begin + 10, begin + 12, kernel=KERNEL, grid=grid)
        else:
            made.call("cudaLaunchKernel", begin + 10, begin + 12, correlation=at + 900)
            work: dict[str, Any] = {"device": 0, "stream": 7, "correlation": at + 900, "grid": grid}
            made.add("kernel", KERNEL, begin + 20, begin + 30, 7, 0, **work)
    if replays:
        made.call("hipStreamBeginCapture", 0, 1).call("hipStreamEndCapture", 900, 901)
        replay(made, 1010, [KERNEL] * LAYERS)
    made.mark(mark.format(requests=REQUESTS, tokens=tokens), 1000, 2000)
    return made.profile(with_replayed)


class TestReports:
    @pytest.mark.parametrize("replays", [True, False], ids=["replayed", "launched one by one"])
    def test_a_grid_of_which_little_works(self, *, replays: bool) -> None:
        (finding,) = findings(AttentionGridForLongestContext, served(replays=replays))
        assert finding.message == (
            "4 attention kernels of a decode step: 160 thread blocks for each sequence of 188 tokens, 40 µs in all"
        )
        assert finding.cost_ns == LAYERS * TOOK_NS

    def test_the_share_of_the_bandwidth(self) -> None:
        ((match,),) = [matches_of(AttentionGridForLongestContext, served())]
        assert match.evidence.share == pytest.approx(moved(6000) / (TOOK_NS / 1e9) / BANDWIDTH)
        assert len(match.events) == LAYERS

    @pytest.mark.any_recording
    def test_sglang_on_mi300(self) -> None:
        """Counted from the capture's and the replay's JSON: 36 kernels with a grid of 32 x 160 x 8, 1,949.556 µs."""
        (file,) = find_traces(Path(shared("traces/mi300_sglang_graph_decode")))
        (capture,) = shared("traces/mi300_sglang_graph_capture").glob("*.gz")
        profile = read_file(file, Job(graph_captures=(capture,))).profile
        (match,) = matches_of(AttentionGridForLongestContext, profile)
        evidence = match.evidence
        assert (evidence.blocks, evidence.kernels, evidence.time) == (160, 36, 1_949_556)
        assert evidence.tokens == round(32785 / 32)


class TestSaves:
    def test_down_to_eighty_per_cent_of_the_bandwidth(self) -> None:
        low, expected, high = saving_ns(AttentionGridForLongestContext, served())
        least_ns = LAYERS * moved(6000) / (0.8 * BANDWIDTH) * 1e9
        assert low == 0
        assert high == pytest.approx(LAYERS * TOOK_NS - least_ns, abs=4)
        assert expected == pytest.approx(high / 2, abs=4)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(lambda: served(tokens=16 * 160 * REQUESTS), id="16 tokens for each block"),
            pytest.param(lambda: served((REQUESTS, 7, KEPT), 3000), id="few blocks"),
            pytest.param(lambda: served((REQUESTS, 160, 5)), id="no axis for the heads"),
            pytest.param(lambda: served((160, 1, 1)), id="one axis"),
            pytest.param(lambda: served("large"), id="no grid"),
            pytest.param(lambda: served((REQUESTS, 9999, KEPT), 20_000), id="near the bandwidth"),
            pytest.param(lambda: served(caches=1), id="no cache"),
        ],
    )
    def test_for(self, profile: Callable[[], Profile]) -> None:
        assert matches_of(AttentionGridForLongestContext, profile()) == ()

    @pytest.mark.parametrize("mark", ["ProfilerStep#1", "step[DECODE bs=32 toks=32]"])
    def test_where_the_annotation_does_not_tell_the_tokens(self, mark: str) -> None:
        assert reason_not_checked(AttentionGridForLongestContext, served(mark=mark)).startswith("No decode batch")
