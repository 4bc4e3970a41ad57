"""The model's `config.json` beside a trace: what it tells of experts, and that a foreign or bad one costs nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.trace import model_config
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.columns import ExpertSizes
from tests.support.made_up_device import operator, traced

GPT_OSS: dict[str, Any] = {
    "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24, "num_local_experts": 32,
    "num_experts_per_tok": 4, "experts_per_token": 4, "quantization_config": {"quant_method": "mxfp4"},
}  # fmt: skip
QWEN: dict[str, Any] = {
    "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48,
    "num_experts": 128, "num_experts_per_tok": 8, "torch_dtype": "bfloat16", "decoder_sparse_step": 1,
}  # fmt: skip
DEEPSEEK: dict[str, Any] = {
    "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
    "n_routed_experts": 256, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}  # fmt: skip
LLAMA_4: dict[str, Any] = {
    "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_hidden_layers": 48,
    "num_local_experts": 128, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "moe_layers": None,
}  # fmt: skip
JAMBA: dict[str, Any] = {
    "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_experts": 16,
    "num_experts_per_tok": 2, "expert_layer_period": 2, "expert_layer_offset": 1, "torch_dtype": "bfloat16",
}  # fmt: skip
LLAMA_4_SIZES = ExpertSizes(24, 128, 1, 3 * 5120 * 8192 * 2)
DENSE: dict[str, Any] = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "dtype": "bfloat16"}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return traced(tmp_path, [operator("aten::mm", 0, 10, 1)], "w.1.pt.trace.json.gz")


def found(trace: Path, text: str) -> tuple[ExpertSizes | None, tuple[str, ...]]:
    """The sizes, and what the table notes."""
    trace.with_name("config.json").write_text(text, encoding="utf-8")
    table = read_with_side_files(trace)
    return table.experts, table.metadata.notes


@pytest.mark.parametrize(
    ("config", "sizes"),
    [
        pytest.param(GPT_OSS, ExpertSizes(24, 32, 4, round(3 * 2880 * 2880 * 4.25 / 8)), id="gpt-oss"),
        pytest.param(QWEN, ExpertSizes(48, 128, 8, 3 * 2048 * 768 * 2), id="Qwen3 MoE"),
        pytest.param(DEEPSEEK, ExpertSizes(58, 256, 8, 3 * 7168 * 2048), id="DeepSeek-V3"),
        pytest.param({"text_config": QWEN, "dtype": "x"}, ExpertSizes(48, 128, 8, 3 * 2048 * 768 * 2), id="multimodal"),
        pytest.param({"text_config": {**LLAMA_4, "dtype": None}, "torch_dtype": "bfloat16"}, LLAMA_4_SIZES,
                     id="Llama 4"),
        pytest.param({**LLAMA_4, "dtype": "bfloat16", "moe_layers": list(range(1, 48, 2))}, LLAMA_4_SIZES, id="listed"),
        pytest.param(JAMBA, ExpertSizes(16, 16, 2, 3 * 4096 * 14336 * 2), id="Jamba"),
        pytest.param({**QWEN, "mlp_only_layers": [0, 3], "decoder_sparse_step": 2},
                     ExpertSizes(23, 128, 8, 3 * 2048 * 768 * 2), id="dense layers between"),
        pytest.param({**DEEPSEEK, "moe_layer_freq": 2}, ExpertSizes(29, 256, 8, 3 * 7168 * 2048), id="every second"),
        pytest.param({**DEEPSEEK, "moe_layer_freq": [0, 1]}, None, id="frequency of another form"),
        pytest.param({**QWEN, "hybrid_override_pattern": "MEM*E"}, None, id="other kinds of layers"),
        pytest.param({**QWEN, "num_hidden_layers": 0}, None, id="no layers"),
        pytest.param({**QWEN, "quantization_config": {"quant_method": "gptq", "bits": 8}},
                     ExpertSizes(48, 128, 8, 3 * 2048 * 768), id="bits"),
        pytest.param(DENSE, None, id="without experts"),
        pytest.param({**QWEN, "quantization_config": {"quant_method": "new"}}, None, id="unknown quantisation"),
        pytest.param({**QWEN, "num_experts_per_tok": 999}, None, id="more than there are"),
        pytest.param({**QWEN, "hidden_size": -1}, None, id="negative"),
        pytest.param({**QWEN, "num_experts": 10**30}, None, id="huge"),
        pytest.param({**QWEN, "num_experts": "128"}, None, id="text"),
        pytest.param(["a", "b"], None, id="another kind of file"),
        pytest.param({"lr": 0.1, "dtype": {"a": 1}}, None, id="a job's own settings"),
    ],
)  # fmt: skip
def test_what_it_tells(trace: Path, config: object, sizes: ExpertSizes | None) -> None:
    assert found(trace, json.dumps(config)) == (sizes, ())


def test_experts_that_a_batch_touches() -> None:
    """One token reads as many as it goes to; very many tokens read all."""
    sizes = ExpertSizes(layers=2, experts=32, per_token=4, expert_bytes=100)
    assert sizes.bytes_read(1) == 2 * 4 * 100
    assert sizes.bytes_read(2) == 2 * 750  # 4 of the first token, and 28 x 4 / 32 of the second
    assert sizes.bytes_read(10_000) == 2 * 32 * 100
    assert sizes.bytes_read(0) == 0


@pytest.mark.parametrize("text", ["{", "\x00", '{"text_config":' * 50_000])
def test_a_damaged_one_is_noted(trace: Path, text: str) -> None:
    sizes, (note,) = found(trace, text)
    assert sizes is None
    assert note.startswith("The side file `config.json` is not used. It is not JSON.")


def test_a_large_one_is_not_read(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_config, "MOST_CONFIG_BYTES", 10)
    sizes, (note,) = found(trace, json.dumps(QWEN))
    assert sizes is None
    assert "It is larger than 0 MiB." in note


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in folders")
def test_a_pipe_is_not_waited_for(trace: Path) -> None:
    os.mkfifo(trace.with_name("config.json"))
    assert read_with_side_files(trace).experts is None


def test_a_link_away_is_not_read(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "config.json"
    elsewhere.write_text(json.dumps(QWEN))
    trace.with_name("config.json").symlink_to(elsewhere)
    table = read_with_side_files(trace)
    assert table.experts is None
    assert "It is a link to a folder other than the trace's." in table.metadata.notes[0]
