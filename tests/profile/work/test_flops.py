"""Estimated work: formulas against plain loops, nothing guessed, rates and rooflines that are right or absent.

`tests/differential/test_key_averages.py` holds the same formulas against torch's own counters.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.profile.device_models import known_device
from tb_tidy_plugin.profile.events.inputs import Inputs
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.flops import (
    FORMULAS,
    WorkRate,
    device_name_of,
    device_of,
    estimate,
    estimates_of,
    rates,
)
from tb_tidy_plugin.profile.work.formulas import Estimate
from tb_tidy_plugin.rulekit.testing import A100, V100, Gpu, draw
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.written import event, kineto_text, write

Dims = tuple[int, ...] | list[int]


def called(*shapes: Dims | None, dtype: str = "float", scalars: dict[int, str] | None = None) -> Inputs:
    """Inputs of one call: a shape per tensor, None for other inputs; scalars by position."""
    given_scalars = scalars or {}
    count = max(len(shapes), *(position + 1 for position in given_scalars), 0)
    padded: list[Dims | None] = [*shapes, *[None] * (count - len(shapes))]
    return Inputs(
        dims=tuple(() if shape is None else tuple(shape) for shape in padded),
        dtypes=tuple("" if shape is None else dtype for shape in padded),
        concrete=tuple(given_scalars.get(position, "") for position in range(count)),
    )


def flops(name: str, inputs: Inputs) -> int | None:
    found = estimate(name, inputs)
    return None if found is None else found.flops


# Products


@pytest.mark.parametrize(
    ("name", "inputs", "expected"),
    [
        ("aten::mm", called((3, 4), (4, 5)), Estimate(2 * 3 * 4 * 5, 4 * (12 + 20 + 15), "float")),
        ("aten::addmm", called((5,), (3, 4), (4, 5)), Estimate(120, 4 * (5 + 12 + 20 + 15), "float")),
        ("aten::_scaled_mm_v2", called((3, 4), (4, 5)), Estimate(120, 4 * (12 + 20 + 15), "float")),
        ("aten::bmm", called((2, 3, 4), (2, 4, 5)), Estimate(240, 8 * (12 + 20 + 15), "float")),
        ("aten::mv", called((3, 4), (4,)), Estimate(24, 4 * (12 + 4 + 3), "float")),
        ("aten::dot", called((4,), (4,)), Estimate(8, 4 * (4 + 4 + 1), "float")),
        ("aten::linear", called((2, 3, 4), (5, 4), (5,)), Estimate(240, 4 * (24 + 20 + 5 + 30), "float")),
        ("aten::linear", called((3, 4), (5, 4), None), Estimate(120, 4 * (12 + 20 + 15), "float")),
    ],
)
def test_products(name: str, inputs: Inputs, expected: Estimate) -> None:
    assert estimate(name, inputs) == expected


@given(
    st.lists(st.integers(1, 3), max_size=2),
    st.lists(st.booleans(), min_size=2, max_size=2),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_matmul_pairs_dimensions_as_numpy_does(batch: list[int], ones: list[bool], m: int, k: int, n: int) -> None:
    left = (*(1 if ones[at] else size for at, size in enumerate(batch)), m, k)
    right = (*batch[len(batch) // 2 :], k, n)
    result = np.matmul(np.zeros(left), np.zeros(right))
    assert flops("aten::matmul", called(left, right)) == 2 * k * result.size
    assert flops("aten::matmul", called(left, (k,))) == 2 * k * np.matmul(np.zeros(left), np.zeros(k)).size


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("aten::mm", Inputs()),
        ("aten::mm", called((3, 4), (5, 4))),
        ("aten::mm", called((3, 4))),
        ("aten::mm", called((2, 3, 4), (2, 4, 5))),
        ("aten::mm", called((3, 4), (4, 5), dtype="c10::SomethingNew")),
        ("aten::matmul", called((), ())),
        ("aten::matmul", called((2, 3, 4), (3, 4, 5))),
        ("aten::linear", called((3, 4), (5, 6))),
        ("aten::conv2d", called((1, 1, 8, 8), (1, 1, 3, 3))),
        ("aten::conv2d", called((1, 1, 8, 8), (1, 1, 3, 3), scalars={3: "[1, 1]", 4: "", 5: "[1, 1]"})),
        ("aten::conv2d", called((1, 1, 8, 8), (1, 1, 3, 3), scalars={3: "[0, 0]", 4: "[0, 0]", 5: "[1, 1]"})),
        ("aten::convolution_backward", called((1, 1, 6, 6), (1, 1, 8, 8), (1, 1, 3, 3), scalars={7: "False"})),
        ("aten::scaled_dot_product_attention", called((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4))),
        ("aten::no_such_operator", called((3, 4), (4, 5))),
    ],
)
def test_without_what_a_formula_needs_there_is_no_estimate(name: str, inputs: Inputs) -> None:
    assert estimate(name, inputs) is None


@given(st.sampled_from(sorted(FORMULAS)), st.lists(st.lists(st.integers(-2, 6), max_size=5), max_size=6), st.data())
def test_any_inputs_give_an_estimate_or_none(name: str, dims: list[list[int]], data: st.DataObject) -> None:
    texts = st.sampled_from(["", "True", "False", "[1, 1]", "[0]", "[True, False, True]", "1", "inf"])
    inputs = Inputs(
        dims=tuple(map(tuple, dims)),
        dtypes=tuple(data.draw(st.lists(st.sampled_from(["", "float", "Scalar", "c10::Half"]), max_size=6))),
        concrete=tuple(data.draw(st.lists(texts, max_size=12))),
    )
    found = estimate(name, inputs)
    assert found is None or (found.flops or 0) >= 0 <= (found.bytes or 0)


# Convolutions


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 2), (3, 2, 2, 1)])
def test_convolution_counts_the_places_a_kernel_fits(stride: int, padding: int, dilation: int, groups: int) -> None:
    image, weight = (2, 4, 9, 7), (6, 4 // groups, 3, 2)
    scalars = {3: f"[{stride}, {stride}]", 4: f"[{padding}, {padding}]", 5: f"[{dilation}, {dilation}]"}
    places = 0
    for size, kernel in zip(image[2:], weight[2:], strict=True):
        starts = range(-padding, size + padding - dilation * (kernel - 1), stride)
        places = len(starts) * (places or 1)
    expected = sum(2 for _ in product(range(2), range(places), range(6), range(4 // groups), range(3), range(2)))
    found = estimate("aten::conv2d", called(image, weight, None, scalars=scalars))
    assert found == Estimate(expected, 4 * (2 * 4 * 63 + 6 * (4 // groups) * 6 + 2 * 6 * places), "float")
    assert flops("aten::conv2d", called(image[1:], weight, None, scalars=scalars)) == expected // 2
    one_number = {position: text.split(",", maxsplit=1)[0].rstrip("]") + "]" for position, text in scalars.items()}
    assert flops("aten::conv2d", called(image, weight, None, scalars=one_number)) == expected


def test_gradients_of_a_convolution_cost_as_much_as_the_forward_pass() -> None:
    shapes = ((2, 6, 7, 6), (2, 4, 9, 7), (6, 2, 3, 2))
    forward = flops("aten::conv2d", called(*shapes[1:], scalars={3: "[1, 1]", 4: "[0, 0]", 5: "[1, 1]"}))
    assert forward is not None
    for mask, times in (("[True, True, True]", 2), ("[False, True, False]", 1), ("[False, False, True]", 0)):
        assert flops("aten::convolution_backward", called(*shapes, scalars={7: "False", 10: mask})) == times * forward


# Attention


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (3, 7), (7, 3)])
def test_a_causal_mask_leaves_the_pairs_of_a_triangle(queries: int, keys: int) -> None:
    shapes = ((2, 3, queries, 8), (2, 3, keys, 8), (2, 3, keys, 4))
    pairs = sum(key <= query for query, key in product(range(queries), range(keys)))
    name = "aten::scaled_dot_product_attention"
    assert flops(name, called(*shapes, scalars={5: "True"})) == 2 * 3 * pairs * 2 * (8 + 4)
    assert flops(name, called(*shapes, scalars={5: "False"})) == 2 * 3 * queries * keys * 2 * (8 + 4)


def test_heads_may_stand_behind_the_sequence() -> None:
    found = flops("aten::_flash_attention_forward", called(*[(2, 5, 3, 8)] * 3, scalars={8: "False"}))
    assert found == flops("aten::scaled_dot_product_attention", called(*[(2, 3, 5, 8)] * 3, scalars={5: "False"}))


def test_packed_batches_and_windows_do_not_tell_their_work() -> None:
    packed = called((10, 3, 8), (10, 3, 8), (10, 3, 8), (3,), (3,), scalars={8: "False"})
    assert estimate("aten::_flash_attention_forward", packed) is None
    windowed = called(*[(2, 5, 3, 8)] * 3, scalars={8: "False", 11: "128", 12: "0"})
    assert estimate("aten::_flash_attention_forward", windowed) is None


# Normalisation and elementwise


def test_normalisation_reads_and_writes_once() -> None:
    assert estimate("aten::layer_norm", called((4, 8), None, (8,))) == Estimate(5 * 32, 2 * 4 * 32, "float")
    assert estimate("aten::layer_norm", called((4, 8), None, None)) == Estimate(4 * 32, 2 * 4 * 32, "float")
    training, evaluation = (
        called((4, 8), (8,), (8,), (8,), (8,), scalars={5: flag}, dtype="c10::Half") for flag in ("True", "False")
    )
    assert estimate("aten::batch_norm", training) == Estimate(5 * 32, 2 * 2 * 32, "c10::Half")
    assert estimate("aten::batch_norm", evaluation) == Estimate(2 * 32, 2 * 2 * 32, "c10::Half")
    unknown = called((4, 8), (8,), (8,), (8,), (8,))
    assert estimate("aten::batch_norm", unknown) == Estimate(None, 2 * 4 * 32, "float")


def test_elementwise_counts_results() -> None:
    assert estimate("aten::add", called((4, 8), (8,))) == Estimate(32, 4 * (32 + 8 + 32), "float")
    assert flops("aten::mul", called((1, 8), (4, 1))) == 32
    assert estimate("aten::add_", called((4, 8), (8,))) == Estimate(32, 4 * (32 + 8 + 32), "float")
    number = Inputs(dims=((4, 8), ()), dtypes=("float", "double"))
    assert estimate("aten::mul", number) == Estimate(32, 4 * 64 + 8, "float")
    mixed = Inputs(dims=((4, 8), (4, 8)), dtypes=("float", "c10::Half"))
    assert estimate("aten::mul", mixed) == Estimate(32, None, "")
    assert estimate("aten::copy_", called((4, 8), (4, 8))) == Estimate(0, 4 * 64, "float")


# Rates


def rate_of(profile: Profile, name: str) -> WorkRate:
    numbers, names = profile.plain_number(np.arange(len(profile.table))), profile.plain_names
    keys = np.where(numbers[profile.nested.rows] == names.index(name), 0, ABSENT)
    (found,) = rates(profile.operators, estimates_of(profile), keys)
    return found


MATMUL = """
aten::mm   0-90     dims=4096x4096,4096x4096  types={dtype},{dtype}  kernel={kernel}@200-1200
aten::mm   100-200  dims=4096x4096,4096x4096  types={dtype},{dtype}  kernel={kernel}@1200-2200
"""


def matmul(dtype: str, kernel: str, gpu: Gpu | None) -> WorkRate:
    return rate_of(draw(MATMUL.format(dtype=dtype, kernel=kernel), gpu), "aten::mm")


def test_rate_and_share_of_the_roofline() -> None:
    found = matmul("half", "ampere_fp16_s16816gemm_fp16", A100)
    assert found.flops == 2 * 2 * 4096**3
    assert found.flops_per_second == pytest.approx(2 * 4096**3 / 1e-3)
    assert found.roofline == pytest.approx(2 * 4096**3 / 1e-3 / 312e12)
    assert found.bytes_per_second == pytest.approx(3 * 2 * 4096**2 / 1e-3)


@pytest.mark.parametrize(
    ("kernel", "peak"), [("ampere_sgemm_128x64_nn", 19.5e12), ("ampere_s1688gemm_fp32", 156e12), ("nobody_knows", None)]
)
def test_single_precision_has_two_peaks(kernel: str, peak: float | None) -> None:
    """In `float` the kernel's name decides whether TF32 is the limit; without an answer there is none."""
    text = MATMUL.format(dtype="float", kernel=kernel).replace("4096", "1024")
    found = rate_of(draw(text, A100), "aten::mm").roofline
    assert found == (None if peak is None else pytest.approx(2 * 1024**3 / 1e-3 / peak))


def test_a_device_without_tf32_has_one_peak() -> None:
    text = MATMUL.format(dtype="float", kernel="nobody_knows").replace("4096", "1024")
    assert rate_of(draw(text, V100), "aten::mm").roofline == pytest.approx(2 * 1024**3 / 1e-3 / 15.7e12)


def test_memory_may_be_the_limit() -> None:
    text = "aten::add 0-10 dims=1000000,1000000 types=float,float kernel=vectorized_elementwise_kernel@20-40"
    assert rate_of(draw(text, A100), "aten::add").roofline == pytest.approx(12e6 / 2039e9 / 20e-6)


def test_what_is_faster_than_the_device_was_estimated_wrong() -> None:
    text = "aten::add 0-10 dims=1000000,1000000 types=float,float kernel=vectorized_elementwise_kernel@20-21"
    found = rate_of(draw(text, A100), "aten::add")
    assert found.roofline is None
    assert found.bytes_per_second == pytest.approx(12e12)


def test_unknown_devices_have_no_roofline() -> None:
    found = matmul("half", "ampere_fp16_s16816gemm_fp16", Gpu("NVIDIA Tomorrow 1", 20, 0))
    assert found.roofline is None
    assert found.flops_per_second is not None


def test_on_the_host_the_calls_own_time_counts() -> None:
    profile = draw("aten::mm 0-100 dims=64x64,64x64 types=float,float\naten::view 200-210")
    found = rate_of(profile, "aten::mm")
    assert found.flops_per_second == pytest.approx(2 * 64**3 / 100e-6)
    assert found.roofline is None
    empty = rate_of(profile, "aten::view")
    assert empty == WorkRate(0, None, None, None, None, None)


def test_an_operator_on_the_device_without_its_kernels_has_no_rate() -> None:
    text = "aten::mm 0-100 dims=64x64,64x64 types=float,float copy=DtoD@20-20:8"
    assert rate_of(draw(text, A100), "aten::mm").flops_per_second is None


def test_work_inside_estimated_work_of_the_group_counts_once() -> None:
    profile = draw(
        """
        aten::linear     0-100  dims=64x64,64x64  types=float,float
          aten::t        1-9
          aten::addmm    10-90  dims=64,64x64,64x64  types=float,float,float
        """
    )
    (found,) = rates(profile.operators, estimates_of(profile), np.zeros(len(profile.nested), np.int64))
    assert found.flops == 2 * 64**3
    assert found.flops_per_second == pytest.approx(2 * 64**3 / 100e-6)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, "AMD Instinct MI300X"),
        ({"totalGlobalMem": 274_877_906_944}, "AMD Instinct MI325X"),
        ({"numSms": 80}, "AMD Instinct MI308X"),
        ({"numSms": 81}, None),
        ({"name": "AMD Radeon Graphics"}, "AMD Instinct MI300X"),
        ({"name": "AMD Radeon Graphics", "numSms": 12}, "AMD Radeon Graphics"),
        ({"name": "AMD Radeon RX 7900 XTX"}, "AMD Radeon RX 7900 XTX"),
    ],
)
def test_a_device_without_a_name_is_known_by_what_else_is_listed(
    properties: dict[str, object], expected: str | None, tmp_path: Path
) -> None:
    kernel = event("k", 5, 4, cat="kernel", pid=0, tid=7, args={"device": 0, "correlation": 1})
    launch = event("hipLaunchKernel", 1, 1, cat="cuda_runtime", args={"correlation": 1})
    unnamed = {
        "id": 0,
        "name": "",
        "totalGlobalMem": 206_141_652_992,
        "computeMajor": 9,
        "computeMinor": 4,
        "numSms": 304,
    }
    listed = f'"deviceProperties": {json.dumps([unnamed | properties])}'
    path = write(tmp_path / "t.json", kineto_text([event("aten::mm", 0, 3), launch, kernel], listed))
    profile = Profile(read_trace(path))
    found, known = device_of(profile), known_device(expected or "")
    assert found is not None
    assert found == known if known is not None else found.source == "estimated"
    assert device_name_of(profile) == (expected or "")
    (report,) = analyze_path(path, Job()).runs[0].profiles
    assert report.devices[0].name == (expected or "")
    note = f"The trace does not name its device: architecture, size and memory are those of the {expected}."
    assert (note in report.quality.notes) == (str(expected).startswith("AMD Instinct"))


def test_a_device_that_is_not_listed_is_one_of_those_that_are_if_they_are_equal(tmp_path: Path) -> None:
    kernel = event("k", 5, 4, cat="kernel", pid=9, tid=7, args={"device": 9, "correlation": 1})
    launch = event("hipLaunchKernel", 1, 1, cat="cuda_runtime", args={"correlation": 1})
    for others, expected in (("AMD Instinct MI300X", "AMD Instinct MI300X"), ("AMD Instinct MI210", "unknown")):
        listed = [{"id": number, "name": name} for number, name in enumerate(("AMD Instinct MI300X", others))]
        text = kineto_text([event("aten::mm", 0, 3), launch, kernel], f'"deviceProperties": {json.dumps(listed)}')
        assert device_of(Profile(read_trace(write(tmp_path / "t.json", text)))) == known_device(expected)
    assert device_of(draw("aten::mm 0-10", A100)) is None
