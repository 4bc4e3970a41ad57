"""Kernels built inside steps.

## What it finds
Steps after the warm-up that wait for a compiler: Triton for a kernel with new arguments, Triton's autotuner for new
sizes, TorchScript, Numba, NVRTC, or a C++ extension.

## Why it is slow
Building a kernel takes from a few milliseconds to minutes; a step takes a few milliseconds. A built kernel is reused
for arguments of the same kind. If these change from step to step, each step builds again.

## Example
```python
for batch in batches:
    scripted = torch.jit.script(model)
    scripted(batch)
```

Use instead:
```python
scripted = torch.jit.script(model)
for batch in batches:
    scripted(batch)
```

## How the saving is estimated
The time in the compiler goes. It is divided by all recorded steps, so a recording that continues after the builds shows
less. Builds in the first 2 recorded steps count if the function builds as often after them.

## When it stays quiet
Builds in the first 2 recorded steps, which are the warm-up. Fewer than 2 builds by one function after those steps.
Compilations by `torch.compile`, which `torch-compile-recompilation` reports. Recordings without marked steps.
"""

from collections.abc import Iterator, Mapping

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.compiled.compilations import Builder, builds
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.trace.columns import ABSENT

FIX_OF_BUILDER: Mapping[Builder, str] = {
    "Triton": (
        "Keep `tl.constexpr` arguments the same in all steps: pass changing numbers as ordinary arguments, name them "
        "in `do_not_specialize`, or build all variants before the loop with `kernel.warmup`"
    ),
    "Triton's autotuner": (
        "Leave sizes that change in each step out of the `key` of `triton.autotune`, or round them; keep tuning "
        "results with `cache_results=True`"
    ),
    "TorchScript": "Script or trace the module once, before the loop",
    "NVRTC": "Compile the kernel once, before the loop, and pass changing values as arguments",
    "Numba": "Call the function with the same types and layouts in each step, or declare its signatures",
    "a C++ extension": "Load the extension once, at the start of the program",
}


class Evidence(msgspec.Struct, frozen=True):
    """Builds of one of the user's functions.

    Attributes:
        builder: the compiler. builds: number of builds after the warm-up.
        time: of the builds. share: that of the recorded steps.
    """

    builder: Builder
    builds: int
    time: tt.Nanoseconds
    share: tt.Share

    @property
    def what(self) -> str:
        """The builder, as the subject of a sentence."""
        return self.builder[:1].upper() + self.builder[1:]

    @property
    def cure(self) -> str:
        return FIX_OF_BUILDER[self.builder]


class KernelBuiltInStep(tt.Rule[Evidence]):
    """Kernels built inside steps."""

    code = "TT1006"
    needs = frozenset({"stacks"})
    action = "Build kernels once, before the steps"
    message = "{what} builds code {builds} times inside steps, which takes {time}"
    why = (
        "The builds continue after the first {warm_up_steps} recorded steps, by when all should be built, and take "
        "{share} of the recorded steps. Reported for {min_builds} builds or more"
    )
    fix = "{cure}"

    warm_up_steps = tt.Threshold(2, "kernels are built at their first call")
    min_builds = tt.Threshold(
        2, "after the warm-up; a single build may be for the last, smaller batch or a first validation"
    )

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        if profile.steps.basis == "whole_trace":
            return
        for builder, rows in builds(profile).items():
            by_caller: dict[str, list[int]] = {}
            step_of: dict[int, int] = dict(zip(rows.tolist(), profile.step_of(rows).tolist(), strict=True))
            for row, step in step_of.items():
                if step != ABSENT:
                    by_caller.setdefault(_caller(profile, row), []).append(row)
            for own in by_caller.values():
                late = [row for row in own if step_of[row] >= self.warm_up_steps]
                if len(late) >= self.min_builds:
                    yield from self._matches(profile, builder, own if self._goes_on(profile, own, late) else late)

    def _goes_on(self, profile: tt.Profile, own: list[int], late: list[int]) -> bool:
        """True if a function builds no less often after the warm-up than in it."""
        after = len(profile.steps.items) - self.warm_up_steps
        return (len(own) - len(late)) * after <= len(late) * self.warm_up_steps

    def _matches(self, profile: tt.Profile, builder: Builder, rows: list[int]) -> Iterator[tt.Match[Evidence]]:
        time_ns = profile.covered(rows_of(rows)).total_ns
        evidence = Evidence(
            builder=builder,
            builds=len(rows),
            time=tt.Nanoseconds(time_ns),
            share=tt.Share(profile.share_of_step(time_ns // len(profile.steps.items)) or 0.0),
        )
        yield from (tt.Match(row, (row,), evidence, builder) for row in rows)


def _caller(profile: tt.Profile, row: int) -> str:
    """The user's own function around a row; empty if there is none."""
    for above in profile.ancestors(row):
        if (
            profile.category(above) is tt.Category.PYTHON
            and (frame := tt.parse_frame(profile.name(above)))
            and frame.own_code
        ):
            return profile.name(above)
    return ""
