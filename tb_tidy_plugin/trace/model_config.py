"""The sizes of a model's experts, from the `config.json` that Hugging Face keeps with a model, beside a recording.

A trace of a mixture of experts has no shapes of its weights. Names of fields are those of transformers' models:
https://github.com/huggingface/transformers/tree/v5.0.0/src/transformers/models. The file is read as data and within
limits; a file that describes something else is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.columns import EventTable, ExpertSizes
from tb_tidy_plugin.trace.names import model_config_beside
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.trace.remote import AnyPath, is_file, size_of
from tb_tidy_plugin.trace.side_file import refuse_link_away
from tb_tidy_plugin.words.errors import TraceError, UnreadError

MOST_CONFIG_BYTES = 1 << 20
MATRICES = 3
"""Matrices of an expert: gate, up and down, each hidden × intermediate size."""

_BITS: Mapping[str, float] = MappingProxyType({
    "float32": 32, "bfloat16": 16, "float16": 16, "fp8": 8, "mxfp4": 4.25, "awq": 4, "gptq": 4,
})  # fmt: skip
"""Bits of a weight, by dtype or method of quantisation; MXFP4 has a scale of 8 bits for 32 weights."""

_Size = Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]
Layers = Annotated[int, msgspec.Meta(ge=0, le=1 << 16)]


class _Quantisation(msgspec.Struct):
    quant_method: str = ""
    bits: Annotated[int, msgspec.Meta(ge=1, le=64)] | None = None


class _Config(msgspec.Struct):
    hidden_size: _Size | None = None
    moe_intermediate_size: _Size | None = None
    intermediate_size: _Size | None = None
    num_hidden_layers: Layers = 0
    num_local_experts: _Size | None = None
    num_experts: _Size | None = None
    n_routed_experts: _Size | None = None
    num_experts_per_tok: _Size | None = None
    experts_per_token: _Size | None = None
    first_k_dense_replace: Layers | None = None
    moe_layer_freq: _Size | None = None
    decoder_sparse_step: _Size | None = None
    mlp_only_layers: list[int] | None = None
    interleave_moe_layer_step: _Size | None = None
    moe_layers: list[int] | None = None
    expert_layer_period: _Size | None = None
    expert_layer_offset: Layers | None = None
    hybrid_override_pattern: str | None = None
    torch_dtype: str | None = None
    dtype: str | None = None
    quantization_config: _Quantisation | None = None
    text_config: _Config | None = None


def with_model_config(table: EventTable, trace: AnyPath) -> EventTable:
    """`table` with the sizes of the experts by the `config.json` beside `trace`; notes say if that is damaged."""
    path = model_config_beside(trace)
    if not is_file(path):
        return table
    try:
        refuse_link_away(path, trace)
        return replace(table, experts=read_expert_sizes(path))
    except TraceError as problem:
        return table.not_using(path.name, problem)


def read_expert_sizes(path: AnyPath) -> ExpertSizes | None:
    """The sizes of the experts of the model that the file describes; None if it has none, or is of another kind.

    Raises:
        UnreadError: the file cannot be read.
        TraceError: it is not JSON, or too large for a model's configuration.
    """
    advice = "Put the model's own `config.json` there, or remove this one."
    try:
        if size_of(path) > MOST_CONFIG_BYTES:
            raise TraceError(f"It is larger than {MOST_CONFIG_BYTES >> 20} MiB.", advice)
        text = path.read_bytes()
    except FileNotFoundError:  # it may not exist
        return None
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise UnreadError(f"It cannot be read: {reason}.", "Check the path and its permissions.") from None
    try:
        return _sizes(decode(text, _Config))
    except msgspec.ValidationError:
        return None
    except (*NOT_JSON, RecursionError):
        raise TraceError("It is not JSON.", advice) from None


def _sizes(whole: _Config) -> ExpertSizes | None:
    config = whole.text_config or whole
    experts = config.num_local_experts or config.num_experts or config.n_routed_experts
    per_token = config.num_experts_per_tok or config.experts_per_token
    inner = config.moe_intermediate_size or config.intermediate_size
    dtype = next(filter(None, (config.dtype, config.torch_dtype, whole.dtype, whole.torch_dtype)), "")
    layers = _layers_with_experts(config)
    bits = _bits(config.quantization_config or whole.quantization_config, dtype)
    if not experts or not per_token or per_token > experts or not inner or not config.hidden_size:
        return None
    if not layers or bits is None:
        return None
    return ExpertSizes(layers, experts, per_token, round(MATRICES * config.hidden_size * inner * bits / 8))


def _layers_with_experts(config: _Config) -> int:
    """Number of layers with experts, by the fields of DeepSeek, Qwen, Llama 4 and Jamba; 0 if unknown."""
    layers = range(config.num_hidden_layers)
    if config.hybrid_override_pattern is not None:  # Nemotron-H: experts of two matrices, in layers of their own
        return 0
    if config.moe_layers is not None:
        return len(set(config.moe_layers).intersection(layers))
    step = config.decoder_sparse_step or config.interleave_moe_layer_step or 1
    period, offset = config.expert_layer_period or 1, config.expert_layer_offset or 0
    dense = set(config.mlp_only_layers or ())
    return sum(
        at not in dense and (at + 1) % step == 0 and at % period == offset and at % (config.moe_layer_freq or 1) == 0
        for at in layers[config.first_k_dense_replace or 0 :]
    )


def _bits(quantisation: _Quantisation | None, dtype: str) -> float | None:
    if quantisation is None:
        return _BITS.get(dtype.removeprefix("torch."))
    known = _BITS.get(quantisation.quant_method)
    return known if quantisation.bits is None or known is None else float(quantisation.bits)
