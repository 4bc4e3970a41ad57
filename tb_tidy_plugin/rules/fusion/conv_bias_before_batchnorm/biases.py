"""Work that exists only for the bias of a convolution."""

from __future__ import annotations

from tb_tidy_plugin.profile.events.inputs import Inputs
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rules.fusion.conv_bias_before_batchnorm.parameter_costs import handed_over_by

BIAS = 2
"""Position of the bias among the inputs of a convolution."""


def bias_work(profile: Profile, conv: int) -> tuple[int, ...]:
    """Operators, or their kernels, that exist for the bias: its addition, and the sum that is its gradient.

    Source: `aten/src/ATen/native/Convolution.cpp`, for cuDNN; other backends may do both inside the convolution.
    """
    added = [row for row in profile.subtree(conv) if profile.name(row) == "aten::add_"]
    nodes = _nodes(profile, conv)
    summed = [inner for row in nodes for inner in profile.subtree(row) if profile.name(inner) == "aten::sum"]
    return tuple(work for row in (*added, *summed) for work in profile.device_activity_of(row).tolist() or [row])


def bias_handed_over(profile: Profile, conv: int, inputs: Inputs) -> list[int]:
    """The rows that accumulate the gradient of the bias, recognised by its shape."""
    handed = (row for node in _nodes(profile, conv) for row in handed_over_by(profile, node))
    return [row for row in handed if profile.inputs(row).shape(0) == inputs.shape(BIAS)]


def _nodes(profile: Profile, conv: int) -> list[int]:
    backward = {back for row in profile.subtree(conv) for back in profile.backward_of(row)}
    return [row for row in sorted(backward) if profile.name(row).startswith("ConvolutionBackward")]
