"""The rules that grew out of upstream's device patterns, held against upstream's own counts.

Upstream's counts come from CPU recordings. Where upstream is right the counts must agree; where it never asked for a
device, the rule must stay quiet on the recording as it is and agree once the work is put on a GPU.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.analysis.checker import Failed, Found, NotChecked, check_rule
from tb_tidy_plugin.rulekit import Profile, Rule
from tb_tidy_plugin.rulekit.testing import matches_of
from tb_tidy_plugin.rules.fusion.conv_bias_before_batchnorm import ConvBiasBeforeBatchnorm
from tb_tidy_plugin.rules.host_device.tensor_created_on_cpu_then_moved import TensorCreatedOnCpuThenMoved
from tb_tidy_plugin.rules.precision.fp32_matmul_no_tf32 import Fp32MatmulNoTf32
from tb_tidy_plugin.rules.shapes.tensor_core_shape_misaligned import TensorCoreShapeMisaligned
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared, shared_names

RULES: tuple[type[Rule], ...] = (
    ConvBiasBeforeBatchnorm,
    Fp32MatmulNoTf32,
    TensorCoreShapeMisaligned,
    TensorCreatedOnCpuThenMoved,
)
COPY = ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)")
SGEMM = ("kernel", "ampere_sgemm_128x64_nn")
ALIGN1 = ("kernel", "cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_32x6_nn_align1")


def recorded(program: str) -> Profile:
    return Profile(read_trace(shared(f"parity/{program}") / "trace.pt.trace.json.gz"))


def upstream_count(program: str, pattern: str) -> int:
    expected = json.loads((shared(f"parity/{program}") / "expected.json").read_text())
    return int(expected["patterns"][pattern].get("count", 0))


def on_a_gpu(program: str, operator: str, work: tuple[str, str], folder: Path) -> Profile:
    """The recording of `program` as if each `operator` had launched `work` on an A100."""
    document = json.loads(gzip.decompress((shared(f"parity/{program}") / "trace.pt.trace.json.gz").read_bytes()))
    calls = [event for event in document["traceEvents"] if event["name"] == operator and event["ph"] == "X"]
    launched = [event for number, call in enumerate(calls, 1) for event in _launched(call, 10**6 + number, *work)]
    properties = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0}
    document |= {"deviceProperties": [properties], "cuda_runtime_version": 12080}
    document["traceEvents"] += launched
    path = folder / f"{program}.pt.trace.json"
    path.write_text(json.dumps(document))
    return Profile(read_trace(path))


def _launched(call: dict[str, Any], number: int, category: str, name: str) -> list[dict[str, Any]]:
    shared_args = {"correlation": number, "External id": call["args"]["External id"]}
    launch = call | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": call["dur"] / 4, "args": shared_args}
    work = {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": call["ts"] + call["dur"] / 2}
    return [launch, work | {"dur": 1000, "args": shared_args | {"device": 0, "stream": 7}}]


class TestConvBiasBeforeBatchnorm:
    @pytest.mark.parametrize("program", shared_names("parity"))
    def test_upstreams_counts(self, program: str) -> None:
        expected = upstream_count(program, "Conv2dBiasFollowedByBatchNorm2dPattern")
        assert len(matches_of(ConvBiasBeforeBatchnorm, recorded(program))) == expected


class TestTensorCreatedOnCpuThenMoved:
    COPIES = ("copy_ones_to_copy", "copy_fill_to_copy", "copy_rand_to_copy", "copy_meta")

    @pytest.mark.parametrize("program", COPIES)
    def test_copies_on_the_cpu_and_to_meta_do_not_count_though_upstream_counts_them(self, program: str) -> None:
        assert upstream_count(program, "ExtraCUDACopyPattern") == 1
        assert isinstance(check_rule(recorded(program), TensorCreatedOnCpuThenMoved()), NotChecked)

    @pytest.mark.parametrize("program", COPIES)
    def test_upstreams_counts_where_the_copy_goes_to_a_gpu(self, program: str, tmp_path: Path) -> None:
        profile = on_a_gpu(program, "aten::copy_", COPY, tmp_path)
        expected = upstream_count(program, "ExtraCUDACopyPattern")
        assert len(matches_of(TensorCreatedOnCpuThenMoved, profile)) == expected


class TestFp32MatmulNoTf32:
    @pytest.mark.parametrize("program", shared_names("parity"))
    def test_a_cpu_has_no_tf32_though_upstream_counts_its_products(self, program: str) -> None:
        assert isinstance(check_rule(recorded(program), Fp32MatmulNoTf32()), NotChecked)

    def test_upstreams_counts_where_float32_runs_on_cuda_cores(self, tmp_path: Path) -> None:
        profile = on_a_gpu("mm_fp32", "aten::mm", SGEMM, tmp_path)
        assert len(matches_of(Fp32MatmulNoTf32, profile)) == upstream_count("mm_fp32", "FP32MatMulPattern") == 1

    @pytest.mark.parametrize("program", ["mm_bf16_201_1", "mm_half_200_0"])
    def test_half_precision_is_not_float32_though_upstream_counts_it(self, program: str, tmp_path: Path) -> None:
        assert upstream_count(program, "FP32MatMulPattern") == 1
        assert matches_of(Fp32MatmulNoTf32, on_a_gpu(program, "aten::mm", SGEMM, tmp_path)) == ()


class TestTensorCoreShapeMisaligned:
    @pytest.mark.parametrize("program", ["mm_bf16_201_1", "mm_half_200_0"])
    def test_sizes_on_a_cpu_are_latent_though_upstream_counts_them(self, program: str) -> None:
        outcome = check_rule(recorded(program), TensorCoreShapeMisaligned())
        assert isinstance(outcome, NotChecked)
        assert "only on the tensor cores" in outcome.reason

    @pytest.mark.parametrize("program", ["mm_bf16_201_1", "mm_half_200_0"])
    def test_upstreams_counts_where_the_kernel_says_that_it_matters(self, program: str, tmp_path: Path) -> None:
        profile = on_a_gpu(program, "aten::mm", ALIGN1, tmp_path)
        expected = upstream_count(program, "MatMulDimInFP16Pattern")
        assert len(matches_of(TensorCoreShapeMisaligned, profile)) == expected


REAL: dict[str, dict[type[Rule], int]] = {
    "h100_timesformer_pipeline": {TensorCoreShapeMisaligned: 24},
    "mi250_toy": {TensorCreatedOnCpuThenMoved: 2},
    "mi300_xdit_flux_capture": {TensorCreatedOnCpuThenMoved: 1},
    "mi300_xdit_flux_profile": {TensorCreatedOnCpuThenMoved: 1},
    "t4_toy_kernels": {TensorCreatedOnCpuThenMoved: 3},
}
"""The counts that are true of recordings of real devices. Two toys make tensors by `torch.randn(…).to(device)`, a
pipeline does by `torch.zeros(512, 3)`, and attention over 3,137 tokens runs `align1` kernels. TF32 is allowed wherever
an A100 was recorded with shapes, and no convolution before a batch norm has a bias."""


@pytest.mark.parametrize("name", shared_names("traces"))
def test_real_devices(name: str) -> None:
    for path in sorted(shared(f"traces/{name}").glob("*.gz")):
        profile = Profile(read_trace(path))
        outcomes = {rule: check_rule(profile, rule()) for rule in RULES}
        assert not [rule for rule, outcome in outcomes.items() if isinstance(outcome, Failed)]
        found = {rule: len(outcome.matches) for rule, outcome in outcomes.items() if isinstance(outcome, Found)}
        assert found == REAL.get(name, {})
