"""What the report says of a server's iterations: totals, a decode's least time, and the first lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.serving import serving_of
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.render.document import Paragraph, Span
from tb_tidy_plugin.render.serving import serving_blocks
from tb_tidy_plugin.report.serving_model import DecodeFloor, PhaseTotal
from tb_tidy_plugin.rulekit.testing import A100, draw
from tb_tidy_plugin.rulekit.testing.drawn import draw_into
from tb_tidy_plugin.trace.columns import ExpertSizes
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.words.causes import Kind

BYTES_PER_SECOND = 2039e9
DECODE = "execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk9000sqsq4sqsk9000)"
CACHE = "dims=4x32x128,64x1x8x128,64x1x8x128 types=bfloat16,bfloat16,bfloat16"
SERVED = f"""
    {DECODE}      0-1000
      aten::mm                 1-20   dims=4x4096,4096x8192 types=bfloat16,bfloat16 kernel=gemm@100-200
      vllm::unified_attention  21-40  {CACHE} kernel=paged_attention@200-300
      aten::mm                 41-60  dims=4x8192,8192x4096 types=bfloat16,bfloat16 kernel=gemm@300-400
"""


EXPERTS = "      vllm::moe_forward  61-80  kernel=fused_moe_kernel@400-450\n"


def total_of(text: str, experts: ExpertSizes | None = None) -> PhaseTotal:
    profile = draw(text, A100)
    serving = serving_of(Profile(replace(profile.table, experts=experts)))
    assert serving is not None
    [total] = serving.phases
    return total


def test_the_ledger_knows_how_near_to_their_limit_experts_come() -> None:
    """In the batch that the ledger counts they read 8 x (1 - (3 / 4) ^ 4) x 4 MB in 50 µs."""
    table = replace(draw(SERVED + EXPERTS, A100).table, experts=ExpertSizes(1, 8, 2, 4_000_000))
    (entry,) = [each for each in account_of(Profile(table)).ledger.entries if each.kind is Kind.MIXTURE_OF_EXPERTS]
    assert entry.limit is not None
    read = round(8 * (1 - (3 / 4) ** 4) * 4_000_000)
    assert entry.limit.share_reached == pytest.approx(read / 50e-6 / BYTES_PER_SECOND)
    assert (entry.limit.bound, entry.limit.known_share) == ("memory", 1.0)
    assert (entry.advice or "").startswith("Reading weights limits decoding")


class TestFloor:
    def test_is_each_weight_and_the_cache_read_once(self) -> None:
        weights = 2 * 2 * 4096 * 8192
        cache = 2 * 8 * 128 * 2 * 9000 + 2 * 4 * 32 * 128 * 2
        expected = DecodeFloor(weights, cache, round((weights + cache) / BYTES_PER_SECOND * 1e9))
        assert total_of(SERVED).floor == expected

    def test_is_unknown_where_experts_have_no_known_size(self) -> None:
        assert total_of(SERVED + EXPERTS).floor is None

    def test_counts_the_experts_that_the_model_s_configuration_tells(self) -> None:
        experts = ExpertSizes(layers=1, experts=8, per_token=2, expert_bytes=4_000_000)
        read = round(8 * (1 - (3 / 4) ** 4) * 4_000_000)
        floor = total_of(SERVED + EXPERTS, experts).floor
        assert floor is not None
        assert floor.weight_bytes == 2 * 2 * 4096 * 8192 + read
        assert floor.ns == round((floor.weight_bytes + floor.kv_bytes) / BYTES_PER_SECOND * 1e9)

    def test_is_unknown_where_experts_would_be_read_faster_than_memory_allows(self) -> None:
        experts = ExpertSizes(layers=99, experts=8, per_token=2, expert_bytes=4_000_000)
        assert total_of(SERVED + EXPERTS, experts).floor is None

    def test_is_unknown_where_it_would_take_longer_than_the_batch(self) -> None:
        assert total_of(SERVED.replace("@100-200", "@100-110").replace("@300-400", "@300-310")).floor is not None
        short = SERVED.replace("@100-200", "@100-120").replace("@200-300", "@200-220").replace("@300-400", "@300-320")
        assert total_of(short).floor is None

    def test_is_unknown_where_attention_reads_a_part_of_the_cache_only(self) -> None:
        assert total_of(SERVED.replace("@200-300", "@200-215")).floor is None

    def test_is_unknown_for_a_prefill(self) -> None:
        prefill = "execute_4_context_4(sq4sk9000sqsq4sqsk9000)_generation_0(sq0sk0sqsq0sqsk0)"
        assert total_of(SERVED.replace(DECODE, prefill)).floor is None


class TestLines:
    @pytest.fixture(autouse=True)
    def _in_a_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def lines(self, text: str) -> list[str]:
        draw_into(self.folder, text, A100)
        (file,) = find_traces(self.folder)
        found = []
        for block in serving_blocks(read_file(file, Job()).report):
            assert isinstance(block, Paragraph)
            pieces = (piece.text if isinstance(piece, Span) else piece for piece in block.line)
            found.append(f"{block.label}: {''.join(pieces)}")
        return found

    def test_of_a_decode_name_its_batch_and_its_floor(self) -> None:
        lines = self.lines(SERVED)
        assert lines[0] == "serving: 1 decode iteration, batch 4, 9,000 KV tokens: 300 µs, 13,333 tokens/s, eager"
        assert lines[1].endswith("; reading 128 MiB of weights and 35.2 MiB of KV cache takes 83.9 µs at least (28 %)")

    def test_of_a_prefill_name_its_tokens_once(self) -> None:
        mark = "execute_context_2(512)_generation_0(0)"
        assert self.lines(SERVED.replace(DECODE, mark))[0].startswith(
            "serving: 1 prefill iteration, batch 2, 512 tokens:"
        )

    def test_of_images_name_their_rate_and_how_often_a_graph_is_replayed(self) -> None:
        image = """
            execute_diffusion_2_64x64   0-1000
              aten::a   1-20    graph=a@10-60
              aten::a   61-80   graph=a@70-510
        """
        line, *_ = self.lines(image)
        assert line == "serving: 1 image, 64x64: 500 µs, 4e+03 images/s, replays a graph 2 times"
