"""tokenising-on-engine-thread: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.serving.tokenising_on_engine_thread import TokenisingOnEngineThread

SERVED = """
execute_context_0(0)_generation_8(8)                          0-100
  aten::mm                                                    1-20      graph=gemm@10-200
transformers/tokenization_utils_base.py(3000): encode         150-290
execute_context_0(0)_generation_8(8)                          300-400
  aten::mm                                                    301-310   graph=gemm@310-500
"""


class TestReports:
    def test_a_prompt_that_is_tokenised_while_the_device_waits(self) -> None:
        (finding,) = findings(TokenisingOnEngineThread, draw(SERVED, A100))
        assert finding.message == (
            "The device waits 90 µs for a tokeniser on the engine's thread: "
            "`transformers/tokenization_utils_base.py(3000): encode`, once"
        )

    @pytest.mark.parametrize(
        "function",
        [
            "vllm/v1/engine/detokenizer.py(90): update",
            "sglang/srt/managers/detokenizer_manager.py(5): decode",
            "vllm/transformers_utils/tokenizer.py(20): decode_tokens",
            "<built-in method encode_batch of tokenizers.Tokenizer object at 0x7f>",
        ],
    )
    def test_other_names_of_it(self, function: str) -> None:
        drawn = SERVED.replace("transformers/tokenization_utils_base.py(3000): encode", function)
        assert len(matches_of(TokenisingOnEngineThread, draw(drawn, A100))) == 1


class TestSaves:
    def test_at_most_the_waiting(self) -> None:
        assert saving_ns(TokenisingOnEngineThread, draw(SERVED, A100)) == (0, 45_000, 45_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            pytest.param("@10-200", "@10-300", id="the device works"),
            pytest.param("150-290", "150-202", id="the device waits for a moment"),
            pytest.param("150-290", "150-290 thread=2", id="another thread"),
            pytest.param("transformers/tokenization_utils_base", "server", id="another function"),
            pytest.param("execute_context", "## execute_context", id="no iterations"),
        ],
    )
    def test_for(self, old: str, new: str) -> None:
        assert matches_of(TokenisingOnEngineThread, draw(SERVED.replace(old, new), A100)) == ()
