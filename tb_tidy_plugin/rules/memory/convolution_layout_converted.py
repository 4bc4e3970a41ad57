"""Convolutions whose tensors are converted to another layout and back.

## What it finds
Kernels that convert between the layouts NCHW and NHWC (`nchwToNhwcKernel` and `nhwcToNchwKernel` of cuDNN,
`batched_transpose_…` of MIOpen), which convolutions and their gradients launch around the kernel that computes.

## Why it is slow
Matrix units read the channels of a pixel together, so fast half-precision kernels expect NHWC. If model and input are
in NCHW, PyTorch's default, the library converts input, weight and result of each convolution in the forward and the
backward pass. Each conversion reads and writes a whole tensor.

## Example
```python
model = build_model().cuda()
y = model(x)
```

Use instead:
```python
model = build_model().cuda().to(memory_format=torch.channels_last)
y = model(x.to(memory_format=torch.channels_last))
```

## How the saving is estimated
A tenth of the conversions remains: those of the model's input, and of operators that need the other layout. At best all
go; at worst none, since an operator that supports only NCHW converts back. A gain from faster kernels is not counted.

## When it stays quiet
Less than 2 % of the step. Conversions not launched by a convolution. Compiled code, which chooses layouts itself.
"""

import re
from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_UP_TO_ROUNDING, Change, Splice, Spot, Unfixable
from tb_tidy_plugin.profile.events.calls import rows_of

CONVERSION = r"(?i:nchwToNhwc|nhwcToNchw)|^batched_transpose_\d"
CONVOLUTION = re.compile(r"convolution")
_ON_ROCM = "; on ROCm, older versions of PyTorch need `PYTORCH_MIOPEN_SUGGEST_NHWC=1` as well"


class Evidence(msgspec.Struct, frozen=True):
    """The conversions of a profile.

    Attributes:
        time: of a step. share: that by the step.
        kernels_per_step, convolutions_per_step: number of converting kernels, and of the operators that launch them.
        kernel: the longest one's name.
        on_rocm: True if it was recorded on ROCm.
    """

    time: tt.Nanoseconds
    share: tt.Share
    kernels_per_step: float
    convolutions_per_step: float
    kernel: str
    on_rocm: bool

    @property
    def kernels(self) -> str:
        """The number of conversions per step."""
        return f"{self.kernels_per_step:.3g}"

    @property
    def convolutions(self) -> str:
        """The number of operators that launch them per step."""
        return f"{self.convolutions_per_step:.3g}"

    @property
    def further(self) -> str:
        """Further advice for ROCm."""
        return _ON_ROCM if self.on_rocm else ""


class ConvolutionLayoutConverted(tt.Rule[Evidence]):
    """Convolutions whose tensors are converted to another layout and back."""

    code = "TT1203"
    needs = frozenset({"device"})
    reads_operators = True
    action = "Keep model and input in `channels_last`"
    message = "Convolutions convert tensors between NCHW and NHWC for {time} of a step ({share})"
    why = (
        "{kernels} kernels per step, such as `{kernel}`, only convert layouts; {convolutions} convolutions and "
        "gradients per step launch them. Reported for {min_share} of a step or more"
    )
    fix = (
        "Keep model and input in channels_last: `model.to(memory_format=torch.channels_last)`, and the same for the "
        "input{further}"
    )
    caveat = "Results differ in their last bits. Code that relies on strides or calls `view` may need `reshape`."
    left = (0.1, 0.0, 1.0)

    min_share = tt.Threshold(0.02, "less is not worth changing the layout of a whole model")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        found = profile.matching(CONVERSION, tt.Category.KERNEL)
        kernels = [row for row in found.tolist() if CONVOLUTION.search(_operator(profile, row))]
        time_ns = profile.per_step_ns(rows_of(kernels))
        if kernels and profile.share_of_time(time_ns) >= self.min_share:
            yield self._match(profile, kernels, time_ns)

    def _match(self, profile: tt.Profile, kernels: list[int], time_ns: int) -> tt.Match[Evidence]:
        rows, operators = rows_of(kernels), {int(profile.launched_by[row]) for row in kernels}
        longest = max(kernels, key=profile.duration_ns)
        operator = int(profile.launched_by[longest])
        forward = profile.forward_of(operator)
        return tt.Match(
            anchor=operator if forward is None else forward,
            events=tuple(kernels),
            evidence=Evidence(
                time=tt.Nanoseconds(time_ns),
                share=tt.Share(profile.share_of_time(time_ns)),
                kernels_per_step=profile.per_step_count(rows),
                convolutions_per_step=profile.per_step_count(rows_of(sorted(operators))),
                kernel=profile.name(longest).removeprefix("void ").partition("<")[0].partition("(")[0],
                on_rocm=profile.platform == "rocm",
            ),
        )

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        found = [call for call in code.calls_on(spot.lines) if code.bound(code.source(call.func)) == 1]
        if len(found) != 1:
            raise Unfixable("The lines do not contain a single call of a model that this file creates.")
        made = code.made_by(found[0].func)
        if code.argument(made, "memory_format"):
            raise Unfixable("The model has a memory format already.")
        end = code.span(made)[1]
        added = f".to(memory_format={code.module_called('torch')}.channels_last)"
        return Change(
            (Splice(end, end, added),), SAME_UP_TO_ROUNDING, "The model does not call `view` or read strides."
        )


def _operator(profile: tt.Profile, kernel: int) -> str:
    """The name of the operator that launched a kernel, empty if unknown."""
    row = int(profile.launched_by[kernel])
    return profile.name(row) if 0 <= row < profile.tree.size else ""
