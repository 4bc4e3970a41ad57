"""Convolution with a bias before a batch norm.

## What it finds
A convolution that adds a bias, followed by a batch norm in training mode on its output.

## Why it is slow
Batch norm subtracts the mean of each channel, and with it the bias. So the bias has no effect, but the forward pass
adds it, the backward pass sums its gradient over the whole batch, and the optimizer updates it. The cost is small,
mostly that of the gradient.

## Example
```python
nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64))
```

Use instead:
```python
nn.Sequential(nn.Conv2d(3, 64, 3, bias=False), nn.BatchNorm2d(64))
```

## How the saving is estimated
If the addition and the sum are separate operators, as with cuDNN, their kernels go. If they are part of the
convolution, 0.5 % of the convolution counts as theirs: on a CPU, forward passes took 0.3 to 2.9 % longer with a bias,
from 13 ms down to 35 µs. Without a device, the accumulation of its gradient also goes, and its share of the optimizer's
work per parameter, which is the same for a bias and a weight except for operators that work on elements.

## When it stays quiet
Batch norm in evaluation mode, which subtracts a stored mean: there the bias has an effect, and can be folded into the
weights. Convolutions without a bias. Convolutions whose output is used first by something other than the batch norm,
such as an activation.
"""

from collections.abc import Iterator
from math import prod

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Spot, Unfixable, changes_behaviour
from tb_tidy_plugin.rules.fusion.conv_bias_before_batchnorm.biases import BIAS, bias_handed_over, bias_work
from tb_tidy_plugin.rules.fusion.conv_bias_before_batchnorm.parameter_costs import ParameterCosts, costs_of_parameters
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.event_names import MODULE

_MODULES = aten.by_name("product", {"conv1d": "Conv1d", "conv2d": "Conv2d", "conv3d": "Conv3d"})  # with a benchmark
TRANSPOSED = aten.names("product", "conv_transpose1d conv_transpose2d conv_transpose3d")
_CONVOLUTIONS = (*_MODULES, *TRANSPOSED, "aten::convolution")
TRAINING = 5  # its position among the inputs of a batch norm
SYNCHRONISED = "SyncBatchNorm"  # runs in training mode only
BATCH_NORMS = aten.names("known", "batch_norm cudnn_batch_norm native_batch_norm") | {SYNCHRONISED}
STRIDE, PADDING, DILATION = 3, 4, 5  # their positions among the inputs of a convolution
PASSING_ON = aten.names("known", "_to_copy contiguous to")
FUSED_SHARE = 0.005  # of a convolution that adds the bias itself: measured on a CPU, where the step stays the same


class Evidence(msgspec.Struct, frozen=True):
    """A convolution, and the batch norm after it.

    Attributes:
        op: the convolution's operator. dtype, input, weight: of its inputs; the type as PyTorch's profiler names it.
        stride, padding, dilation: its options, empty if they were not recorded.
        channels: number of channels with a bias.
        conv, norm: the modules of both, or their operators.
        is_training: True if the norm is known to be in training mode.
        time: of the bias in operators of its own.
    """

    op: str
    dtype: str
    input: tt.Sizes
    weight: tt.Sizes
    stride: tt.Sizes
    padding: tt.Sizes
    dilation: tt.Sizes
    channels: int
    conv: str
    norm: str
    is_training: bool
    time: tt.Nanoseconds

    @property
    def mode(self) -> str:
        return "training mode" if self.is_training else "a mode that was not recorded"

    @property
    def separate(self) -> str:
        """A sentence on operators of the bias alone, if there are any."""
        return f"Adding the bias and summing its gradient take {self.time} in separate operators. " if self.time else ""


class ConvBiasBeforeBatchnorm(tt.Rule[Evidence]):
    """Convolutions with a bias that batch norm in training mode cancels."""

    code = "TT701"
    needs = frozenset({"shapes"})
    reads_operators = True
    action = "Remove the bias of the convolution"
    message = "`{conv}` adds a bias to {channels} channels, and `{norm}` right after it cancels the bias"
    why = (
        "Batch norm in {mode} subtracts each channel's mean, and the bias with it. {separate}On a CPU the saving "
        "includes the bias's part of the optimizer step and of accumulating gradients"
    )
    fix = "Pass `bias=False` to the convolution"
    caveat = (
        "Checkpoints saved before this change contain a bias that the model no longer has: load them with "
        "`strict=False`."
    )

    max_operators = tt.Threshold(
        8, "before it uses the output, batch norm counts its calls and may prepare its arguments"
    )

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        convs = profile.named(*_CONVOLUTIONS)
        convs = convs[~profile.inside(convs)[convs]]
        given, reach = zip(convs.tolist(), profile.inputs_of(convs), strict=True), int(self.max_operators)
        norms = {conv: norm for conv, each in given if (norm := _norm_after(profile, conv, each, reach)) is not None}
        costs = costs_of_parameters(profile) if norms and "device" not in profile.recorded else {}
        for conv, norm in norms.items():
            yield _match(profile, conv, profile.inputs(conv), norm, costs)

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        module, data, weight = _MODULES.get(evidence.op), tuple(evidence.input), tuple(evidence.weight)
        if module is None or evidence.dtype != "float" or not (data and weight):
            return None
        batch = tt.fitting(data[0], 16 * prod(data[2:]) * (data[1] + weight[0]))
        given = {"stride": evidence.stride, "padding": evidence.padding, "dilation": evidence.dilation}
        options = "".join(f"{key}={tuple(each)}, " for key, each in given.items() if len(each) == len(weight) - 2)
        sizes = f"{data[1]}, {weight[0]}, {weight[2:]}, {options}groups={data[1] // weight[1]}"
        module, norm = f"torch.nn.{module}({sizes}, device=device", f"torch.nn.{module.replace('Conv', 'BatchNorm')}"
        setup = f"import torch\nx = torch.randn({(batch, *data[1:])}, device=device)\nbiased = {module})\n"
        setup += f"plain = {module}, bias=False)\nnorm = {norm}({weight[0]}, device=device)"
        pair = tt.Benchmark("norm(biased(x)).sum().backward()", "norm(plain(x)).sum().backward()", setup)
        return pair if batch else None

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        found = [call for call in code.calls_on(spot.lines) if _makes(code, call, "Conv")]
        found = [call for call in found if (norm := code.used_by(call)) and _makes(code, norm, "BatchNorm")]
        called = [code.source(call.func) for call in code.calls]
        once = [code.made_by(call.func) for call in found if called.count(code.source(call.func)) == 1]
        if len(made := once or _in_sequences(code)) != 1:
            raise Unfixable("The lines do not contain one convolution and the batch norm on its output.")
        splices = code.with_arguments(made[0], {"bias": "False"}, instead_of="True")
        how = "initial values differ under the same seed"
        return Change(tuple(splices), changes_behaviour(how), "No checkpoint with the bias is loaded.")


def _norm_after(profile: tt.Profile, conv: int, inputs: tt.Inputs, reach: int) -> int | None:
    """The batch norm that is the first to use the output of a convolution with a bias, unless in evaluation mode."""
    data, bias = inputs.shape(0), inputs.shape(BIAS)
    if not data or not bias:
        return None
    for row in profile.operators_after(conv, reach):
        if profile.name(row) in PASSING_ON or not _uses(profile.inputs(row), len(data), (data[0], bias[0])):
            continue
        is_norm = profile.name(row) in BATCH_NORMS and profile.inputs(row).scalar(TRAINING) != "False"
        return row if is_norm else None
    return None


def _uses(inputs: tt.Inputs, rank: int, batch_and_channels: tuple[int, int]) -> bool:
    shapes = (inputs.shape(at) for at in range(len(inputs.dtypes)))
    return any(shape is not None and len(shape) == rank and shape[:2] == batch_and_channels for shape in shapes)


def _match(profile: tt.Profile, conv: int, inputs: tt.Inputs, norm: int, costs: ParameterCosts) -> tt.Match[Evidence]:
    work, handed = bias_work(profile, conv), [row for row in bias_handed_over(profile, conv, inputs) if row in costs]
    conv_module, norm_module = _module(profile, conv), _module(profile, norm)
    are_modules = conv_module != norm_module  # not two calls in the `forward` of one
    mode = profile.inputs(norm).scalar(TRAINING) or str(profile.name(norm) == SYNCHRONISED)
    return tt.Match(
        anchor=conv,
        events=(*(work or (conv,)), *handed),
        evidence=Evidence(
            op=profile.name(conv),
            dtype=inputs.dtype(0),
            input=tt.Sizes(inputs.shape(0) or ()),
            weight=tt.Sizes(inputs.shape(1) or ()),
            stride=tt.Sizes(inputs.integers(STRIDE)),
            padding=tt.Sizes(inputs.integers(PADDING)),
            dilation=tt.Sizes(inputs.integers(DILATION)),
            channels=(inputs.shape(BIAS) or (0,))[0],
            conv=conv_module if are_modules else profile.name(conv),
            norm=norm_module if are_modules else profile.name(norm),
            is_training=mode == "True",
            time=tt.Nanoseconds(sum(profile.duration_ns(row) for row in work)),
        ),
        confidence="high" if mode == "True" else "medium",
        lost=[*_lost(profile, conv, work), *(span for row in handed for span in costs[row])],
    )


def _lost(profile: tt.Profile, conv: int, work: tuple[int, ...]) -> list[tuple[int, int]]:
    """Time of the bias: that of its own operators or kernels, else a small part of the convolution."""
    start, share_ns = profile.start_ns(conv), round(FUSED_SHARE * profile.duration_ns(conv))
    return [(profile.start_ns(row), profile.end_ns(row)) for row in work] or [(start, start + share_ns)]


def _module(profile: tt.Profile, row: int) -> str:
    """The nearest `nn.Module` around an operator, empty without stacks."""
    names = map(profile.name, profile.ancestors(row))
    return next((name.removeprefix(MODULE) for name in names if name.startswith(MODULE)), "")


def _in_sequences(code: tt.Code) -> "list[tt.Call]":
    """The convolutions right before a batch norm in a `Sequential` that the file spells out."""
    found = []
    for call in code.calls:
        if code.qualified(call.func) == "torch.nn.Sequential":
            made = [each for each in code.arguments(call) if code.is_call(each)]
            kinds = [code.qualified(each.func) for each in made]
            for at, kind in enumerate(kinds[1:]):
                if kind.startswith("torch.nn.BatchNorm") and kinds[at].startswith("torch.nn.Conv"):
                    found.append(made[at])
    return found


def _makes(code: tt.Code, call: tt.Call, kind: str) -> bool:
    """True if a call is of a module of `torch.nn` of this kind that the file creates once."""
    values = code.assigned(code.source(call.func))
    if len(values) != 1 or not code.is_call(values[0]):
        return False
    return code.qualified(values[0].func).startswith(f"torch.nn.{kind}")
