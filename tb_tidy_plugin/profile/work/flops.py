"""Estimated floating point operations and bytes of operator calls, the rates reached, and the device's limit.

Formulas are in `formulas.py`. They follow `torch.utils.flop_counter` and `with_flops=True` of the profiler
(`computeFlops` in https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/profiler/util.cpp): one multiplication
with its addition is 2. They differ from both:

- elementwise operators count one operation per element of the *result*: the profiler takes the first input's size,
  which is too small if that input is broadcast;
- causal attention counts the pairs of query and key that are not masked, which is what the fused kernels compute; torch
  counts all;
- the gradient of a grouped convolution's weight counts as much as its forward pass; torch ignores the groups;
- the profiler knows only `mm`, `addmm`, `bmm`, `baddbmm`, `conv2d`, `add` and `mul`.

Bytes are the least that must be moved: every input read once, every result written once. If a shape, dtype or scalar
that a formula needs was not recorded, there is no estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.profile.device_models import DeviceModel, device_name
from tb_tidy_plugin.profile.events.inputs import Inputs
from tb_tidy_plugin.profile.events.operators import NO_KERNEL, TENSOR_CORES, UNKNOWN_CORES, Operators
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.formulas import (
    AttentionArguments,
    ConvolutionArguments,
    Estimate,
    Formula,
    attention,
    convolution,
    convolution_backward,
    copy,
    elementwise,
    fill,
    linear,
    normalisation,
    normalisation_backward,
    passed_once,
    product,
    transposed_convolution,
)
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT, Category, DeviceProperties, Mask, Numbers, Rows, Times
from tb_tidy_plugin.trace.sets import distinct, numbered
from tb_tidy_plugin.trace.strings import asked_once

Reals: TypeAlias = NDArray[np.float64]

_LARGEST = 1 << 62
"""Larger estimates come from damaged shapes."""

PLAUSIBLE = 1.1
"""Most that an estimate may exceed the device's peak, since clocks may be above the stated ones. More means that the
estimate is wrong: data that comes from a cache, or another algorithm.
"""


class WorkEstimates(msgspec.Struct, frozen=True):
    """One entry per call of `Profile.nested`.

    Attributes:
        flops, bytes: estimated work; `ABSENT` if unknown.
        time_ns: duration of the work: that of its device work, or of the call if it ran on the host; `ABSENT` if it is
            unknown which.
        ideal_ns: least time that the device needs, by its peak operations and bytes per second; NaN if unknown.
        kind: position in `kinds`, whose entries are operators with the work of a call; `len(kinds)` for other events.
    """

    flops: Times
    bytes: Times
    time_ns: Times
    ideal_ns: Reals
    kind: Numbers
    kinds: tuple[tuple[str, Estimate | None], ...]


class WorkRate(msgspec.Struct, frozen=True):
    """Work of a group of calls, and its rates.

    Attributes:
        group: its number.
        flops, bytes: sums over the calls with an estimate, None without any; a call inside an estimated call of the
            group is the same work.
        flops_per_second, bytes_per_second: over the calls with known estimate and time, None without any.
        roofline: the least time that the device needs for the work, as a share of the time it took; None for unknown
            devices, and above a plausible value.
    """

    group: int
    flops: int | None
    bytes: int | None
    flops_per_second: float | None
    bytes_per_second: float | None
    roofline: float | None


def estimate(name: str, inputs: Inputs) -> Estimate | None:
    """Operations and bytes of one call of the operator `name`, None if unknown."""
    formula = FORMULAS.get(name)
    found = formula(inputs) if formula is not None else None
    if found is None or max(found.flops or 0, found.bytes or 0) > _LARGEST:
        return None
    return found


def estimates_of(profile: Profile) -> WorkEstimates:
    """Estimated work of every call of a profile, and the time it took."""
    operators, signatures = profile.operators, profile.signatures
    rows = operators.nested.rows
    is_operator = profile.table.category[rows] == Category.OPERATOR
    key = profile.plain_number(rows).astype(np.int64) * len(signatures.inputs) + signatures.number
    key = np.where(is_operator, key, ABSENT)
    keys, number = numbered(key)
    found = [_estimate_of(profile, at) for at in keys.tolist()]
    is_none = int(len(keys) > 0 and keys[0] == ABSENT)  # ascending: `ABSENT` comes first
    host_ns = operators.host_total_ns
    time_ns = np.where(host_ns * operators.on_host > 0, host_ns, ABSENT)
    time_ns = np.where(operators.device_total_ns > 0, operators.device_total_ns, time_ns)
    return WorkEstimates(
        flops=_column([None if entry is None else entry.flops for entry in found])[number],
        bytes=_column([None if entry is None else entry.bytes for entry in found])[number],
        time_ns=time_ns,
        ideal_ns=_ideal(device_of(profile), found, number, operators),
        kind=np.where(key == ABSENT, len(keys) - is_none, number - is_none).astype(np.int32),
        kinds=tuple((_name_of(profile, at), entry) for at, entry in zip(keys.tolist(), found, strict=True) if at >= 0),
    )


def _estimate_of(profile: Profile, key: int) -> Estimate | None:
    if key == ABSENT:
        return None
    name, inputs = divmod(key, len(profile.signatures.inputs))
    return asked_once(_estimate)((profile.plain_names[name], profile.signatures.inputs[inputs]))


def _name_of(profile: Profile, key: int) -> str:
    return profile.plain_names[key // len(profile.signatures.inputs)]


def _estimate(call: tuple[str, Inputs]) -> Estimate | None:
    return estimate(*call)


def _column(values: list[int | None]) -> Times:
    return np.array([ABSENT if value is None else value for value in values], np.int64)


def device_of(profile: Profile) -> DeviceModel | None:
    """Peak rates of the device that ran the profile's work; None if it is unknown or if there are several kinds."""
    listed = device_listed(profile)
    return None if listed is None else profile.device_model(listed)


def device_name_of(profile: Profile) -> str | None:
    """The name of the device that ran the profile's work; None without one, and with several kinds."""
    listed = device_listed(profile)
    return None if listed is None else device_name(listed)


def device_listed(profile: Profile) -> DeviceProperties | None:
    """What the trace lists of the device that ran the profile's work; None without one, and with several kinds.

    ROCm may number devices differently in its list and in events (device 9 of a list of one): an unlisted device counts
    as one of the listed ones, if they are all the same.
    """
    listed = {entry.id: entry for entry in profile.metadata.devices}
    found: dict[str, DeviceProperties] = {}
    for index in distinct(profile.table.device[profile.operators.work]).tolist():
        for entry in [listed[index]] if index in listed else listed.values():
            found.setdefault(device_name(entry), entry)
    return found.popitem()[1] if len(found) == 1 else None


def _ideal(device: DeviceModel | None, found: list[Estimate | None], number: Rows, operators: Operators) -> Reals:
    """Least time of each call on `device`, depending on the units that its kernels ran on."""
    if device is None:
        return np.broadcast_to(np.nan, len(number))
    ideal = np.full(len(number), np.nan)
    on_device = operators.device_total_ns > 0
    for tensor_cores, calls in _by_units(operators):
        limits = np.array([_least_ns(device, entry, tensor_cores) for entry in found])
        ideal[calls & on_device] = limits[number[calls & on_device]]
    return ideal


def _by_units(operators: Operators) -> list[tuple[bool | None, Mask]]:
    """Masks of the calls whose kernels run on tensor cores, do not, or may."""

    def launched(work: Mask) -> Times:
        return operators.nested.sums(np.bincount(operators.work_call[work], minlength=len(operators.nested)))

    cores = operators.work_cores
    uses, unknown, kernels = (
        launched(chosen) > 0 for chosen in (cores == TENSOR_CORES, cores == UNKNOWN_CORES, cores != NO_KERNEL)
    )
    return [(True, uses), (False, kernels & ~uses & ~unknown), (None, ~uses & (unknown | ~kernels))]


def _least_ns(device: DeviceModel, work: Estimate | None, tensor_cores: bool | None) -> float:
    """The roofline: the longer of computing and moving."""
    if work is None or work.flops is None or work.bytes is None:
        return np.nan
    moving = work.bytes / device.bytes_per_second
    if not work.flops:
        return moving * 1e9
    peak = device.peaks.get(work.dtype)
    limit = None if peak is None else peak.of(tensor_cores)
    return np.nan if limit is None else max(work.flops / limit, moving) * 1e9


def rates(operators: Operators, estimates: WorkEstimates, keys: Rows) -> list[WorkRate]:
    """Work and rates of groups of calls, in order of the groups' numbers.

    Args:
        operators: all calls.
        estimates: theirs.
        keys: number of each call's group, `ABSENT` for calls that are not counted.
    """
    groups, number = numbered(keys[keys != ABSENT])
    group = np.full(len(keys), ABSENT, np.int64)
    group[keys != ABSENT] = number
    known = (estimates.flops != ABSENT) | (estimates.bytes != ABSENT)
    calls = np.flatnonzero((group != ABSENT) & known)
    calls = calls[operators.nested.outermost(calls, group[calls])]
    sums = _Sums(calls, group[calls], len(groups))
    timed = estimates.time_ns > 0
    flops, moved = estimates.flops != ABSENT, estimates.bytes != ABSENT
    limited = timed & ~np.isnan(estimates.ideal_ns)
    columns = (
        groups.tolist(),
        sums.of(estimates.flops, flops),
        sums.of(estimates.bytes, moved),
        sums.ratio(estimates.flops, estimates.time_ns, flops & timed, 1e9),
        sums.ratio(estimates.bytes, estimates.time_ns, moved & timed, 1e9),
        sums.ratio(estimates.ideal_ns, estimates.time_ns, limited, 1, PLAUSIBLE),
    )
    return [WorkRate(*row) for row in zip(*columns, strict=True)]


class _Sums(msgspec.Struct, frozen=True):
    """Sums over some calls by group."""

    calls: Rows
    group: Rows
    count: int

    def of(self, values: Times, known: Mask) -> list[int | None]:
        """Sum of the known values, None without any."""
        chosen = known[self.calls]
        sums = np.zeros(self.count, np.int64)
        np.add.at(sums, self.group[chosen], values[self.calls[chosen]])
        there = np.bincount(self.group[chosen], minlength=self.count)
        return [total if number else None for total, number in zip(sums.tolist(), there.tolist(), strict=True)]

    def ratio(
        self, over: Times | Reals, under: Times, known: Mask, scale: float, limit: float = np.inf
    ) -> list[float | None]:
        """Sum of `over` by sum of `under`, times `scale`; None without any, and above `limit`."""
        chosen = known[self.calls]
        calls, group = self.calls[chosen], self.group[chosen]
        first = np.bincount(group, over[calls].astype(np.float64), self.count)
        second = np.bincount(group, under[calls].astype(np.float64), self.count)
        found = np.divide(first * scale, second, out=np.full(self.count, np.nan), where=second > 0)
        return [value if value <= limit else None for value in found.tolist()]  # false for NaN


# Formula of each operator; positions as in
# https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/native_functions.yaml


_OF_ONE = aten.names(
    "pointwise",
    """
    abs clamp clamp_max clamp_min cos elu erf exp floor gelu hardtanh leaky_relu log log1p log2 neg reciprocal relu
    rsqrt sigmoid silu sin sqrt tanh
    """,
)
_OF_TWO = aten.names("pointwise", "add atan2 div fmod mul pow remainder sub")
OF_TWO_OUT_OF_PLACE = aten.names(
    "pointwise",
    "gelu_backward maximum minimum rsub sigmoid_backward silu_backward tanh_backward threshold_backward",
)

_PRODUCTS: Mapping[str, Formula] = aten.by_name(
    "product",
    {
        "mm": product(0, (2, 2)),
        "_int_mm": product(0, (2, 2)),
        "_scaled_mm": product(0, (2, 2)),
        "_scaled_mm_v2": product(0, (2, 2)),
        "addmm": product(1, (2, 2), 0),
        "addmm_": product(1, (2, 2), 0),
        "_addmm_activation": product(1, (2, 2), 0),
        "bmm": product(0, (3, 3)),
        "baddbmm": product(1, (3, 3), 0),
        "baddbmm_": product(1, (3, 3), 0),
        "matmul": product(0, None),
        "mv": product(0, (2, 1)),
        "addmv": product(1, (2, 1), 0),
        "addmv_": product(1, (2, 1), 0),
        "dot": product(0, (1, 1)),
        "vdot": product(0, (1, 1)),
        "linear": linear,
        "mkldnn_linear": linear,
        "conv1d": convolution(ConvolutionArguments(3, 4, 5)),
        "conv2d": convolution(ConvolutionArguments(3, 4, 5)),
        "conv3d": convolution(ConvolutionArguments(3, 4, 5)),
        "conv_transpose1d": transposed_convolution,
        "conv_transpose2d": transposed_convolution,
        "conv_transpose3d": transposed_convolution,
        "convolution": convolution(ConvolutionArguments(3, 4, 5, 6)),
        "_convolution": convolution(ConvolutionArguments(3, 4, 5, 6)),
        "convolution_overrideable": convolution(ConvolutionArguments(3, 4, 5, 6)),
        "cudnn_convolution": convolution(ConvolutionArguments(3, 2, 4)),
        "cudnn_convolution_relu": convolution(ConvolutionArguments(3, 4, 5)),
        "cudnn_convolution_transpose": transposed_convolution,
        "mkldnn_convolution": convolution(ConvolutionArguments(4, 3, 5)),
        "miopen_convolution": convolution(ConvolutionArguments(4, 3, 5)),
        "miopen_depthwise_convolution": convolution(ConvolutionArguments(4, 3, 5)),
        "miopen_convolution_transpose": transposed_convolution,
        "_conv_depthwise2d": convolution(ConvolutionArguments(4, 5, 6)),
        "conv_depthwise3d": convolution(ConvolutionArguments(4, 5, 6)),
        "convolution_backward": convolution_backward(7, 10),
        "convolution_backward_overrideable": convolution_backward(6, 9),
        "scaled_dot_product_attention": attention(AttentionArguments(0, 5)),
        "_scaled_dot_product_flash_attention": attention(AttentionArguments(0, 4)),
        "_scaled_dot_product_flash_attention_for_cpu": attention(AttentionArguments(0, 4)),
        "_scaled_dot_product_efficient_attention": attention(AttentionArguments(0, 6)),
        "_scaled_dot_product_cudnn_attention": attention(AttentionArguments(0, 6)),
        "_scaled_dot_product_fused_attention_overrideable": attention(AttentionArguments(0, 5)),
        "_flash_attention_forward": attention(AttentionArguments(0, 8, (3, 11, 12, 13, 15), heads_last=True)),
        "_efficient_attention_forward": attention(AttentionArguments(0, 9, (4, 12, 13), heads_last=True)),
        "_scaled_dot_product_flash_attention_backward": attention(AttentionArguments(1, 11)),
        "_scaled_dot_product_flash_attention_for_cpu_backward": attention(AttentionArguments(1, 7)),
        "_scaled_dot_product_efficient_attention_backward": attention(AttentionArguments(1, 11)),
        "_scaled_dot_product_cudnn_attention_backward": attention(AttentionArguments(1, 14)),
        "_flash_attention_backward": attention(AttentionArguments(1, 11, (6, 15, 16), heads_last=True)),
        "_efficient_attention_backward": attention(AttentionArguments(1, 14, (6, 18), heads_last=True)),
    },
)  # fmt: skip

AUTOCAST = frozenset(_PRODUCTS)
"""Operators that `torch.autocast` runs in 16 bits, with their backward passes: those that multiply."""

_OTHERS: Mapping[str, Formula] = aten.by_name(
    "known",
    {
        "batch_norm": normalisation(1, 5),
        "_batch_norm_impl_index": normalisation(1, 5),
        "native_batch_norm": normalisation(1, 5),
        "cudnn_batch_norm": normalisation(1, 5),
        "miopen_batch_norm": normalisation(1, 5),
        "_native_batch_norm_legit": normalisation(1, 5),
        "instance_norm": normalisation(1, 5),
        "_batch_norm_with_update": normalisation(1),
        "layer_norm": normalisation(2),
        "native_layer_norm": normalisation(2),
        "group_norm": normalisation(2),
        "native_group_norm": normalisation(1),
        "rms_norm": normalisation(2, statistics=3),
        "_fused_rms_norm": normalisation(2, statistics=3),
        "native_batch_norm_backward": normalisation_backward,
        "cudnn_batch_norm_backward": normalisation_backward,
        "miopen_batch_norm_backward": normalisation_backward,
        "batch_norm_backward": normalisation_backward,
        "native_layer_norm_backward": normalisation_backward,
        "native_group_norm_backward": normalisation_backward,
        "_fused_rms_norm_backward": normalisation_backward,
        "softplus": elementwise(1),
        "copy_": copy,
        "fill_": fill,
        "zero_": fill,
    },
)

SERVERS: Mapping[str, Formula] = {
    **dict.fromkeys(("aiter::rmsnorm", "aiter::rms_norm", "aiter::add_rmsnorm"), passed_once()),
    **dict.fromkeys(("_C::rms_norm", "sgl_kernel::rmsnorm"), passed_once()),
    **dict.fromkeys(("_C::silu_and_mul", "sgl_kernel::silu_and_mul"), passed_once()),
    **dict.fromkeys(("_C::gelu_and_mul", "sgl_kernel::gelu_and_mul"), passed_once()),
    **dict.fromkeys(("_C::fused_add_rms_norm", "sgl_kernel::fused_add_rmsnorm"), passed_once(in_place=2)),
}
"""Operators of inference servers, as in https://github.com/vllm-project/vllm/blob/main/csrc/torch_bindings.cpp."""

FORMULAS: Mapping[str, Formula] = {
    **SERVERS,
    **_PRODUCTS,
    **_OTHERS,
    **dict.fromkeys(_OF_ONE, elementwise(1)),
    **dict.fromkeys((f"{name}_" for name in _OF_ONE), elementwise(1, in_place=True)),
    **dict.fromkeys(_OF_TWO | OF_TWO_OUT_OF_PLACE, elementwise(2)),
    **dict.fromkeys((f"{name}_" for name in _OF_TWO), elementwise(2, in_place=True)),
}
