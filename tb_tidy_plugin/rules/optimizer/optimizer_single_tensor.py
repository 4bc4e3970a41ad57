"""Optimizer that updates one parameter at a time.

## What it finds
An optimizer of `torch.optim` that runs its update once per parameter: frames `_single_tensor_…`, or without stacks an
`Optimizer.step` that repeats the same in-place operators and holds no `_foreach_` or `_fused_` operator.

## Why it is slow
Adam takes nine operators per parameter, on a GPU as many launches, most of them too small to keep the device busy. With
`foreach`, each operator updates all parameters; with `fused`, a single operator does the whole update.

## Example
```python
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
```

Use instead:
```python
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
```

## How the saving is estimated
The update is scaled by measured factors. On a CPU with torch 2.13, `fused=True` takes 0.11 to 0.41 of the time for Adam
and AdamW, 0.17 to 0.73 for Adagrad, and 0.15 to 0.94 for SGD with momentum or weight decay (10 to 200 parameters of 32
to a million elements). The factor grows with the number of elements per parameter: for Adam it is 0.2 up to 1,000
elements and 0.39 for 65,000 or more, for Adagrad 0.28 and 0.38, for SGD 0.19 and 0.65; in between it grows with the
logarithm. On a GPU, `foreach` takes 0.13 to 0.88 according to https://github.com/pytorch/pytorch/pull/49039.

## When it stays quiet
Optimizers with fewer than 10 parameters. On a CPU, where one parameter at a time is the default, optimizers without a
`fused` version: `foreach` took 0.4 to 10 times as long there, more for larger parameters. Plain SGD on a CPU, whose
operator `fused` replaces in 0.7 to 1.1 times its time. Sparse gradients and complex parameters, for which there is no
alternative.
"""

from collections import Counter
from collections.abc import Iterator
from math import log, sqrt

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_UP_TO_ROUNDING, Change, Spot, Unfixable
from tb_tidy_plugin.profile.work.training import WITH_FOREACH, Update, updates_one_by_one
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.words.units import plural

FUSED_ON_CPU = {
    "adam": ((0.2, 0.39), 0.11, 0.41), "adamw": ((0.2, 0.39), 0.11, 0.41), "adagrad": ((0.28, 0.38), 0.17, 0.73),
    "sgd": ((0.19, 0.65), 0.15, 0.94),
}  # fmt: skip
"""Part that `fused=True` leaves on a CPU, see the page: factors for small and large parameters, low and high. On a GPU
no others take it either.
"""

SMALL, _LARGE = 1_000, 65_000  # elements of a parameter

_ON_GPU = (0.3, 0.13, 0.88)  # part that `foreach=True` leaves; `fused` takes no longer
UNSUPPORTED = aten.names("known", "coalesce view_as_real")  # of sparse gradients, of complex parameters
OFTEN = 2  # steps of an optimizer with equal numbers of parameters
FOREACH, _FUSED = "foreach=True", "fused=True"
_TENSORS = (
    8  # of a parameter's size in the benchmark: itself, gradient, two states and one temporary for each optimizer
)


class Evidence(msgspec.Struct, frozen=True):
    """An optimizer, and the work of its step.

    Attributes:
        optimizer: its name. algorithm: that of `torch.optim`.
        on_gpu: True if it updates parameters on a GPU, and not on the CPU.
        parameters, operators: number per step. each: number of operators for each parameter.
        elements: of a parameter, 0 if shapes were not recorded.
        time: of the updates per step.
        switches: options set by the job, if they were captured.
    """

    optimizer: str
    algorithm: str
    on_gpu: bool
    parameters: int
    operators: int
    each: int
    elements: int
    time: tt.Nanoseconds
    switches: str

    @property
    def per_parameter(self) -> str:
        return plural(self.each, "operator")

    @property
    def device(self) -> str:
        return "GPU" if self.on_gpu else "CPU"

    @property
    def setting(self) -> str:
        """The option that updates all parameters at once."""
        return _FUSED if self.algorithm in FUSED_ON_CPU else FOREACH


class OptimizerSingleTensor(tt.Rule[Evidence]):
    """Optimizer that updates one parameter at a time."""

    code = "TT301"
    reads_operators = True
    action = "Update all parameters of `{optimizer}` at once"
    message = "`{optimizer}` updates {parameters} parameters one at a time: {operators} operators and {time} per step"
    why = (
        "The step on the {device} runs {per_parameter} for each parameter and no `_foreach_` or `_fused_` "
        "operator{switches}. Reported for {min_parameters} parameters or more"
    )
    fix = "Pass `{setting}` to `{optimizer}`"
    caveat = (
        "Results differ in their last bits. `foreach=True` needs memory for about one more copy of the parameters; "
        "`fused=True` needs floating-point parameters, and on a CPU PyTorch 2.4 or newer."
    )

    min_parameters = tt.Threshold(
        10, "per step; for fewer parameters the loop costs little more than the preparation of a fused update"
    )

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        by_optimizer: dict[str, list[Update]] = {}
        for update in updates_one_by_one(profile):
            by_optimizer.setdefault(update.optimizer, []).append(update)
        for optimizer, of_class in by_optimizer.items():
            objects = _by_object(of_class)
            for parameters, updates in objects.items():
                subject = optimizer if len(objects) == 1 else f"{optimizer} of {parameters}"
                if evidence := _evidence(profile, updates, self.min_parameters):
                    for update in updates:
                        yield tt.Match(update.events[0], update.events, evidence, subject=subject)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, *(_ON_GPU if match.evidence.on_gpu else _fused_on_cpu(match.evidence)))

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        elements, algorithm = evidence.elements, evidence.algorithm
        if not elements or not (parameters := tt.fitting(evidence.parameters, _TENSORS * 4 * elements)):
            return None
        optimizer = f"torch.optim.{WITH_FOREACH[algorithm]}(parameters, lr=1e-3"
        optimizer += ", momentum=0.9" if algorithm == "sgd" and evidence.each > 1 else ""
        setup = (
            f"import torch\nparameters = [torch.randn({elements}, device=device) for _ in range({parameters})]\n"
            "for parameter in parameters:\n    parameter.grad = torch.randn_like(parameter)\n"
            f"one_by_one = {optimizer}, foreach=False)\ntogether = {optimizer}, {evidence.setting})"
        )
        return tt.Benchmark(
            "one_by_one.step()", "together.step()", setup, compare=("parameters",), of_events=True,
            devices=("cuda", "xpu") if evidence.on_gpu else ("cpu",),
        )  # fmt: skip

    def made_by(self, evidence: Evidence) -> tt.Made:
        def is_wanted(name: str) -> bool:
            return name.startswith("torch.optim.") and name.rpartition(".")[2] == evidence.optimizer

        return tt.Made("optimizer", "step", is_wanted, 'optim="adamw_torch_fused"')

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        steps = code.methods_on(spot.lines, "step")
        used = [each for call in steps for each in (code.receiver(call), *(arg.value for arg in call.args))]
        made = code.constructor(used, self.made_by(evidence))
        if code.argument(made, "differentiable") or code.argument(made, "capturable"):
            raise Unfixable("The optimizer is created with `differentiable` or `capturable`.")
        setting = evidence.setting.partition("=")[0]
        return Change(tuple(code.with_arguments(made, {setting: "True"}, instead_of="False")), SAME_UP_TO_ROUNDING)


def _fused_on_cpu(evidence: Evidence) -> tuple[float, float, float]:
    """Factor, low and high; half way between small and large parameters if shapes were not recorded."""
    (small, large), low, high = FUSED_ON_CPU[evidence.algorithm]
    elements = min(max(evidence.elements, SMALL), _LARGE) if evidence.elements else sqrt(SMALL * _LARGE)
    return small + (large - small) * log(elements / SMALL) / log(_LARGE / SMALL), low, high


def _by_object(updates: list[Update]) -> dict[int, list[Update]]:
    """Updates of one class by the number of parameters that their steps update, which identifies its optimizers.

    All of them together, under 0, if a number occurs only once: then it is one optimizer with other gradients.
    """
    parameters: dict[int, int] = {}
    for update in updates:
        parameters[update.step] = parameters.get(update.step, 0) + update.parameters
    steps = Counter(parameters.values())
    if min(steps.values()) < OFTEN:
        return {0: updates}
    found: dict[int, list[Update]] = {}
    for update in updates:
        found.setdefault(parameters[update.step], []).append(update)
    return found


def _evidence(profile: tt.Profile, updates: list[Update], least: float) -> Evidence | None:
    """The evidence for the updates of one optimizer, None if there is nothing to gain."""
    largest = max(updates, key=lambda update: len(update.operators))
    steps = len({update.step for update in updates})
    parameters = round(sum(update.parameters for update in updates) / steps)
    operators = round(sum(len(update.operators) for update in updates) / steps)
    names = {name for update in updates for _, name in update.operators}
    if parameters < least or not names.isdisjoint(UNSUPPORTED):
        return None
    each, on_gpu = round(operators / parameters), any(len(profile.device_activity_of(row)) for row in largest.events)
    if not on_gpu and (largest.algorithm not in FUSED_ON_CPU or each == 1):
        return None
    return Evidence(
        optimizer=largest.optimizer,
        algorithm=largest.algorithm,
        on_gpu=on_gpu,
        parameters=parameters,
        operators=operators,
        each=each,
        elements=largest.elements(profile),
        time=tt.Nanoseconds(sum(profile.duration_ns(row) for update in updates for row in update.events) / steps),
        switches=_switches(profile, largest.optimizer),
    )


def _switches(profile: tt.Profile, optimizer: str) -> str:
    """The options that the job set for the optimizer, if they were captured."""
    known = profile.settings.optimizer(optimizer)
    if known is None:
        return ""
    given = {"foreach": known.foreach, "fused": known.fused, "capturable": known.capturable or None}
    text = " and ".join(f"`{name}={value}`" for name, value in given.items() if value is not None)
    return f"; it was created with {text}" if text else "; neither `foreach` nor `fused` was given"
