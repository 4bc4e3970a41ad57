"""Function recompiled repeatedly.

## What it finds
A function under `torch.compile` that is recompiled in many steps because its guards fail: changing lengths, a changing
Python number or flag, or an attribute that counts up.

## Why it is slow
One compilation takes from a tenth of a second to minutes; a step takes milliseconds and waits for it. After 8 variants
(`torch._dynamo.config.recompile_limit`) Dynamo gives up, and the function runs uncompiled.

## Example
```python
compiled = torch.compile(loss, dynamic=False)
for batch in batches:
    compiled(batch)
```

Use instead:
```python
compiled = torch.compile(loss, dynamic=True)
for batch in batches:
    compiled(batch)
```

## How the saving is estimated
The time in the compiler goes, including that of backward passes. It is divided by all recorded steps, so a recording
that continues after the recompilations shows less.

## When it stays quiet
First compilations (variant 0 of a function) in any step, which are the warm-up. Recompilations in the first 2 recorded
steps, in which Dynamo learns which sizes change. Fewer than 2 variants of a function after those steps, such as one for
a last, smaller batch. In traces of older PyTorch without variant numbers, any compilation after those steps counts,
with medium confidence.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_UP_TO_ROUNDING, Change, Spot, Unfixable
from tb_tidy_plugin.profile.compiled.compilations import Compilation, compilations, recompile_reasons
from tb_tidy_plugin.profile.events.calls import rows_of

_COMPILED = tt.Made("compiled function", "call", "torch.compile".__eq__, "")
STATIC_NUMBER = "integer attributes of the nn.Module"
"""Part of Dynamo's hint about a guard on a number of a module, which `dynamic=True` leaves static."""
SIZE = re.compile(
    r"^tensor '(?:L\['(?P<local>\w+)'\]|(?P<name>[\w.\[\]'\"]{1,80}))' size mismatch at index (?P<at>\d{1,2})\b"
)
"""A failed guard on a size, in Dynamo's words."""
_MARKS = 3
_NUMBERS = "_dynamo.config.allow_unspec_int_on_nn_module"


class Evidence(msgspec.Struct, frozen=True):
    """A function, and the cost of its variants.

    Attributes:
        name: the function's; empty if no frame shows it. number: Dynamo's own for it, empty if it has none.
        variants: number of further ones. late: number of them after the warm-up.
        time: of compiling them. share: that of the recorded steps.
        reason: the guard that failed last, empty if it was not captured.
        sizes: tensors whose sizes changed, by their names in the function, each with the dimension.
    """

    name: str
    number: str
    variants: int
    late: int
    time: tt.Nanoseconds
    share: tt.Share
    reason: str = ""
    sizes: tuple[tuple[str, int], ...] = ()

    @property
    def cure(self) -> str:
        """Advice about the sizes that are known to change, else about all that may."""
        if not self.sizes:
            return (
                "Find what changes with `TORCH_LOGS=recompiles`. Then mark changing sizes with "
                "`torch._dynamo.mark_dynamic`, pass `dynamic=True` or pad to a few sizes. Keep changing Python "
                "numbers in tensors, or set `torch._dynamo.config.allow_unspec_int_on_nn_module` for those of modules"
            )
        marks = [f"`torch._dynamo.mark_dynamic({tensor}, {at})`" for tensor, at in self.sizes[:_MARKS]]
        others = [f"{len(self.sizes) - _MARKS} more"] if len(self.sizes) > _MARKS else []
        return (
            f"Say which sizes change before the first call: {', '.join([*marks, *others])}, on the tensors that are "
            "passed for these names. Or pass `dynamic=True`, or pad to a few sizes"
        )

    @property
    def because(self) -> str:
        """The guard that failed, as a sentence of its own."""
        return f". The guard that failed last: {self.reason}" if self.reason else ""

    @property
    def function(self) -> str:
        return f"`{self.name}`" if self.name else f"function {self.number}" if self.number else "functions"


class TorchCompileRecompilation(tt.Rule[Evidence]):
    """Function recompiled repeatedly."""

    code = "TT1002"
    action = "Keep {function} from recompiling"
    message = "`torch.compile` recompiles {function}: {variants} more variants take {time}"
    why = (
        "{late} of the {variants} variants are compiled after the first {warm_up_steps} recorded steps, when all "
        "should be compiled; the compiler takes {share} of the recorded steps{because}. Reported for {min_variants} "
        "variants or more"
    )
    fix = "{cure}"
    caveat = (
        "`mark_dynamic` raises an error if the function works with only one size; `maybe_mark_dynamic` then compiles "
        "for each size."
    )

    warm_up_steps = tt.Threshold(2, "Dynamo compiles for the first sizes, then once more for changing sizes")
    min_variants = tt.Threshold(
        2, "after the warm-up; a single one may be for the last, smaller batch or a first validation"
    )

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        found, by_function = compilations(profile), dict[str, list[Compilation]]()
        reasons = recompile_reasons(profile)
        has_numbers = any(each.function for each in found)
        for each in found:
            if each.variant != 0 and (each.function or not has_numbers):
                by_function.setdefault(each.function, []).append(each)
        for function, again in by_function.items():
            step = profile.step_of(rows_of(each.row for each in again))
            late = {_variant(each) for each, at in zip(again, step.tolist(), strict=True) if at >= self.warm_up_steps}
            if len(late) >= self.min_variants:
                yield from self._matches(profile, function, again, len(late), reasons)

    def not_applicable(self, profile: tt.Profile) -> str | None:
        if profile.steps.basis != "whole_trace" or not compilations(profile):
            return None
        return (
            "The profile has no steps, so warm-up cannot be distinguished from recompilations; record with a "
            "`schedule` and call `prof.step()` after each step."
        )

    def _matches(
        self,
        profile: tt.Profile,
        function: str,
        again: Sequence[Compilation],
        late: int,
        reasons: Mapping[str, str],
    ) -> Iterator[tt.Match[Evidence]]:
        rows = rows_of(each.row for each in again)
        time_ns = profile.covered(rows).total_ns
        anchor, name = _place(profile, function, again)
        failed = [reasons.get(f"{function}/{each.variant}", "") for each in again]
        evidence = Evidence(
            name=name,
            number=function,
            variants=len({_variant(each) for each in again}),
            late=late,
            time=tt.Nanoseconds(time_ns),
            share=tt.Share(profile.share_of_step(time_ns // len(profile.steps.items)) or 0.0),
            reason=reasons.get(f"{function}/{max(each.variant for each in again)}", ""),
            sizes=tuple(dict.fromkeys(size for reason in failed for size in _sizes(reason))),
        )
        for each in again:
            yield tt.Match(anchor, (each.row,), evidence, function, "high" if function else "medium")

    def made_by(self, evidence: Evidence) -> tt.Made:
        return _COMPILED

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        if STATIC_NUMBER in evidence.reason:
            if _NUMBERS in code.text:
                raise Unfixable(f"The file sets `{_NUMBERS}` already.")
            line = f"{code.module_called('torch')}.{_NUMBERS} = True"
            return Change((code.after_imports(line),), SAME_UP_TO_ROUNDING)
        made = code.constructor([call.func for call in code.calls_on(spot.lines)], _COMPILED)
        splices = code.with_arguments(made, {"dynamic": "True"}, instead_of="False")
        return Change(tuple(splices), SAME_UP_TO_ROUNDING, "Only sizes change: see `TORCH_LOGS=recompiles`.")


def _sizes(reason: str) -> Iterator[tuple[str, int]]:
    """The tensor and the dimension of a guard on a size."""
    if (failed := SIZE.match(reason)) is not None:
        yield failed["local"] or failed["name"], int(failed["at"])


def _variant(compilation: Compilation) -> int:
    """Number of a variant, shared by its forward and backward pass; without numbers each compilation counts."""
    return compilation.variant if compilation.variant >= 0 else -compilation.row - 1


def _place(profile: tt.Profile, function: str, again: Sequence[Compilation]) -> tuple[int, str]:
    """A frame of the compiled function in one of its calls, and its name; else the place of its first recompilation."""
    regions = (
        profile.matching(rf"^Torch-Compiled Region: {function}/", tt.Category.OPERATOR) if function else rows_of(())
    )
    for region in regions.tolist():
        for row in profile.subtree(region)[1:2]:
            if profile.category(row) is tt.Category.PYTHON:
                return row, profile.name(row).rsplit(": ", 1)[-1]
    return again[0].row, ""
