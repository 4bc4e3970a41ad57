"""Kernels built inside steps.

## What it finds
Steps after the warm-up that wait for a compiler which their own code runs: Triton for a kernel with new arguments, or
its autotuner for new sizes; TorchScript, Numba, NVRTC, or a C++ extension.

## Why it is slow
To build a kernel takes from some milliseconds to minutes, a step some milliseconds. What is built is kept for arguments
of one kind. Where these change from step to step, each step builds again.

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
The time in the compiler goes. It is divided by all recorded steps: a recording that goes on for longer than the builds
do shows less.

## When it stays quiet
Builds in the first 2 recorded steps: warm-up. Fewer than 2 builds by one function after those steps. What
`torch.compile` builds: `torch-compile-recompilation` reports that. Steps that are not marked.
"""

from collections.abc import Iterator, Mapping

import msgspec

from tb_tidy_plugin.profile.builders import Builder, builds
from tb_tidy_plugin.profile.calls import rows_of
from tb_tidy_plugin.rulekit import Category, Match, Nanoseconds, Profile, Rule, Share, Threshold, parse_frame

FIX_OF_BUILDER: Mapping[Builder, str] = {
    "Triton": (
        "Keep `tl.constexpr` arguments the same from step to step: pass numbers that change as ordinary arguments, "
        "name them in `do_not_specialize`, or build all variants before the loop with `kernel.warmup`"
    ),
    "Triton's autotuner": (
        "Leave sizes that change in each step out of the `key` of `triton.autotune`, or round them; keep what was "
        "tuned with `cache_results=True`"
    ),
    "TorchScript": "Script or trace the module once, before the loop",
    "NVRTC": "Compile the kernel once, before the loop, and pass what changes as arguments",
    "Numba": "Call the function with the same types and layouts in each step, or give it its signatures",
    "a C++ extension": "Load the extension once, where the program begins",
}


class Evidence(msgspec.Struct, frozen=True):
    """What one function of the user's builds.

    Attributes:
        builder: which compiler. builds: how many builds come after the warm-up.
        time: what they take. share: that of the recorded steps.
    """

    builder: Builder
    builds: int
    time: Nanoseconds
    share: Share

    @property
    def what(self) -> str:
        """What builds, as the subject of a sentence."""
        return self.builder[:1].upper() + self.builder[1:]

    @property
    def cure(self) -> str:
        """What to do."""
        return FIX_OF_BUILDER[self.builder]


class KernelBuiltInStep(Rule[Evidence]):
    """Kernels built inside steps."""

    code = "TT1006"
    needs = frozenset({"stacks"})
    action = "Build kernels once, before the steps"
    message = "{what} builds code {builds} times inside steps, which takes {time}"
    why = (
        "The builds come after the first {warm_up_steps} recorded steps, by when all should be built, and take "
        "{share} of the recorded steps. Reported for {min_builds} builds or more"
    )
    fix = "{cure}"

    warm_up_steps = Threshold(2, "kernels are built when they are first called")
    min_builds = Threshold(2, "after the warm-up: one more may be for the last, smaller batch or a first validation")

    def detect(self, profile: Profile) -> Iterator[Match[Evidence]]:
        if profile.steps.basis == "whole_trace":
            return
        for builder, rows in builds(profile).items():
            by_caller: dict[str, list[int]] = {}
            for row in rows[profile.step_of(rows) >= self.warm_up_steps].tolist():
                by_caller.setdefault(_caller(profile, row), []).append(row)
            for late in by_caller.values():
                if len(late) >= self.min_builds:
                    yield from self._matches(profile, builder, late)

    def _matches(self, profile: Profile, builder: Builder, late: list[int]) -> Iterator[Match[Evidence]]:
        time_ns = profile.covered(rows_of(late)).total_ns
        evidence = Evidence(
            builder=builder,
            builds=len(late),
            time=Nanoseconds(time_ns),
            share=Share(time_ns / sum(step.duration_ns for step in profile.steps.items)),
        )
        yield from (Match(row, (row,), evidence, builder) for row in late)


def _caller(profile: Profile, row: int) -> str:
    """The user's own function around a row; empty where there is none."""
    for above in profile.ancestors(row):
        if (
            profile.category(above) is Category.PYTHON
            and (frame := parse_frame(profile.name(above)))
            and frame.own_code
        ):
            return profile.name(above)
    return ""
