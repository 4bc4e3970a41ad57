"""Python's garbage collector stops the step.

## What it finds
Runs of Python's cyclic garbage collector within steps, recorded with `record_python_gc_info`. Either Python starts
them, or the program calls `gc.collect()`.

## Why it is slow
A full collection visits every object of the process. For millions of objects this takes hundreds of milliseconds, in
which nothing is launched. In a distributed job, all other ranks wait for the one that collects.

## Example
```python
for batch in loader:
    train_step(batch)
    gc.collect()
```

Use instead:
```python
gc.collect()
gc.freeze()  # what is alive now is not looked at again
for batch in loader:
    train_step(batch)
```

## How the saving is estimated
Explicit collections go. A tenth of Python's own collections remains, at most half, since `gc.freeze()` does not cover
later objects.

## When it stays quiet
Recordings without `record_python_gc_info`. Collections that take less than 1 % of the steps, such as those of the
youngest generation. Collections outside of steps.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Spot, Unfixable
from tb_tidy_plugin.profile.events.calls import BUILT_IN, rows_of

COLLECT = BUILT_IN + "function collect>"
LEFT_FROZEN = (0.1, 0.0, 0.5)


class Evidence(msgspec.Struct, frozen=True):
    """The collections of one kind.

    Attributes:
        explicit: True if the program requests them. count: their number in the profile.
        time: per step. longest: of one.
    """

    explicit: bool
    count: int
    time: tt.Nanoseconds
    longest: tt.Nanoseconds

    @property
    def who(self) -> str:
        return "`gc.collect()`" if self.explicit else "Python"

    @property
    def cure(self) -> str:
        return "Remove `gc.collect()` from the step" if self.explicit else "Call `gc.collect(); gc.freeze()` once"


class GarbageCollectedInStep(tt.CallRule[Evidence]):
    """Python's garbage collector stops the step."""

    code = "TT1451"
    frames = r"^Python GC$"
    in_most_steps = False
    action = "Keep garbage collection out of the steps"
    message = "{who} collects garbage in the steps, which takes {time} per step"
    why = "Number of collections in the profile: {count}; the longest takes {longest}"
    fix = (
        "{cure} before the first step. If memory grows, call `gc.disable()` and collect every few hundred steps, on "
        "all ranks at the same time"
    )
    caveat = "Objects in reference cycles stay in memory until the next collection."

    min_share = tt.Threshold(0.01, "collecting the youngest generation takes less in any program")

    def matches(self, profile: tt.Profile, rows: tt.Rows) -> Iterator[tt.Match[Evidence]]:
        collections = rows.tolist()
        explicit = {
            row for row in collections if (above := profile.parent(row)) is not None and profile.name(above) == COLLECT
        }
        for kind in (True, False):
            own = [row for row in collections if (row in explicit) is kind]
            for row in own:
                evidence = Evidence(
                    explicit=kind,
                    count=len(own),
                    time=tt.Nanoseconds(profile.per_step_ns(rows_of(own))),
                    longest=tt.Nanoseconds(max(map(profile.duration_ns, own))),
                )
                yield tt.Match(row, (row,), evidence, subject="explicit" if kind else "automatic")

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Remove(match.events) if match.evidence.explicit else tt.Scale(match.events, *LEFT_FROZEN)

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        if not evidence.explicit:
            raise Unfixable("Python starts the collections, and the file does not show where the first step begins.")
        splice = code.without_statement(spot.lines, "collect")
        return Change((splice,), SAME_RESULTS, "Memory in reference cycles may wait for Python's own collections.")
