"""Values of tensors read one by one in Python.

## What it finds
On a device: `.item()`, `if tensor:`, `.tolist()`, `.cpu()` and other reads of a few bytes, for which the host waits and
after which the device has nothing to do. On a CPU, where nothing waits: Python loops of many reads.

## Why it is slow
A read returns only when the device has finished all launched work. Meanwhile the host launches nothing, so the device
then idles until the host has caught up. On a CPU each read costs a call of a few hundred nanoseconds for one number.

## Example
```python
for x, y in loader:
    loss = train_step(x, y)
    total += loss.item()
```

Use instead:
```python
for x, y in loader:
    loss = train_step(x, y)
    total += loss.detach()
```

## How the saving is estimated
On a device: the ledger's time after these waits, "The device idles after the host waited for it". It is at most the
time for which they block the host, since without them the host would be that far ahead. On a CPU the loop is scaled to
0 to 0.7 of its time, most likely 0.2: recording makes such loops 3.5 to 6 times as long, but the code that takes the
tensor apart before them also goes and is not counted.

## When it stays quiet
Idle time below 50 µs per step, as at the end of a finished step or while other streams work. Places that read in fewer
than half of the steps, such as loggers. PyTorch's own optimizers and gradient scalers. Copies above 4 KiB, or to pinned
memory without a wait. Idle time due to loading, compilation, garbage collection, communication. On a CPU: loops that
read fewer than 64 values per step or run other operators.
"""

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Splice, Spot, Unfixable, changes_behaviour
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.events.intervals import Intervals, Spans, positions_of_each
from tb_tidy_plugin.profile.host.transfers import device_readbacks, enclosing, read_loops
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.words.causes import Cause
from tb_tidy_plugin.words.units import times

_OTHERS = ("Optimizer.", "torch/optim/", "torch/amp/", "torch/cuda/amp/", "torch/profiler/", "enumerate(DataLoader)#")
"""Callers whose reads nobody would change: optimizers, gradient scalers, the profiler, loaders."""
_LEFT = (0.2, 0.0, 0.7)  # of a loop's time: most likely, at least, at most; see the page


class Evidence(msgspec.Struct, frozen=True):
    """The reads of one place.

    Attributes:
        names: the reading operators, if the host waits for a device; empty for a loop on a CPU.
        per_step: reads per step.
        time: their cost per step.
        held: time per step that they hold the host; without time before the ledger's first step.
        values: most values that one loop reads; 0 if the host waits for a device.
        limit: least number that is reported.
    """

    names: tuple[str, ...]
    per_step: float
    time: tt.Nanoseconds
    held: tt.Nanoseconds
    values: int
    limit: str

    @property
    def reader(self) -> str:
        if self.values:
            return "A Python loop reads single values of tensors"
        names = ", ".join(f"`{name}`" for name in self.names)
        return f"Reading values ({names}) makes the host wait for the device"

    @property
    def calls(self) -> str:
        if self.values:
            return f"{round(self.per_step)} times"
        return times(self.per_step)

    @property
    def effect(self) -> str:
        return "this takes" if self.values else "then the device idles for"

    @property
    def reason(self) -> str:
        if self.values:
            return "Each read is a separate call for one number, while one operator can read a whole tensor"
        if not self.held:
            return "The host waits there for work from before the recording, and meanwhile launches nothing"
        return f"The host is held there for {self.held} per step, and launches nothing meanwhile"


class HostSyncScalarReadback(tt.Rule[Evidence]):
    """Values of tensors read one by one in Python."""

    code = "TT801"
    reads_ledger = True
    # The checks for NaN read a value for each node of the backward pass.
    yields_to = ("anomaly-mode-enabled",)
    action = "Read values of tensors together, or less often"
    message = "{reader} {calls} per step; {effect} {time} per step"
    why = "{reason}. Reported for {limit} per step or more"
    fix = "Keep values in tensors, and read them together (`.tolist()`, one reduction) or every few steps"

    min_idle_ns = tt.Threshold(50_000, "per step and place; a few late launches cost as much")
    min_steps = tt.Threshold(0.5, "share of the steps in which a place reads; rarer reads are logging")
    min_values = tt.Threshold(64, "values read per step in loops on a CPU; fewer take about 20 µs")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        return self._waits(profile) if "device" in profile.recorded else self._loops(profile)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, *_LEFT) if match.evidence.values else tt.Unblock(match.anchor)

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        setup, values = "import torch\nx = torch.zeros({}, device=device)", evidence.values
        before, after = "result = [value.item() for value in x]", "result = x.tolist()"
        return tt.Benchmark(before, after, setup.format(values), of_events=True) if values else None

    def _waits(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        places = _by_place(profile, device_readbacks(profile).tolist())
        usual = [rows for rows in places if self._is_usual(profile, rows)]
        idle = _idle_after(profile, rows_of(sorted(row for rows in usual for row in rows)))
        steps, span = len(profile.steps.items), profile.step_bounds
        window = np.array([span.start_ns]), np.array([span.end_ns])
        for rows in usual:
            idle_ns = sum(end - start for row in rows for start, end in idle[row]) / steps
            held = tt.Nanoseconds(int(profile.covered(rows_of(rows)).within(*window)[0]) / steps)
            evidence = Evidence(
                names=tuple(sorted({profile.name(row) for row in rows})),
                per_step=len(rows) / steps,
                time=tt.Nanoseconds(idle_ns),
                held=held,
                values=0,
                limit=f"{tt.Nanoseconds(self.min_idle_ns)} of idle time",
            )
            if idle_ns >= self.min_idle_ns:
                yield from (tt.Match(row, (row,), evidence, lost=idle[row]) for row in rows)

    def _loops(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        loops = {loop.calls[0]: (loop.calls, reads) for loop, reads in read_loops(profile, tt.is_own_code)}
        for firsts in _by_place(profile, loops):
            values = round(profile.per_step_count(rows_of(row for first in firsts for row in loops[first][1])))
            spans = {at: (profile.start_ns(at), profile.end_ns(loops[at][0][-1])) for at in firsts}
            time_ns = sum(end - start for start, end in spans.values()) / len(profile.steps.items)
            evidence = Evidence(
                names=(),
                per_step=values,
                time=tt.Nanoseconds(time_ns),
                held=tt.Nanoseconds(time_ns),
                values=max(len(loops[first][1]) for first in firsts),
                limit=f"{round(self.min_values)} values",
            )
            if values >= self.min_values and self._is_usual(profile, firsts):
                yield from (tt.Match(_anchor(profile, at), loops[at][0], evidence, lost=(spans[at],)) for at in firsts)

    def _is_usual(self, profile: tt.Profile, rows: list[int]) -> bool:
        """True if a place reads in enough of the steps."""
        steps = {step for step in profile.step_of(rows_of(rows)).tolist() if step >= 0}
        return len(steps) >= max(self.min_steps * len(profile.steps.items), 1)

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        if splices := code.read_at_once(spot.lines, "item", "tolist"):
            return Change(tuple(splices), SAME_RESULTS, "The loop iterates over a tensor with one dimension.")
        reads = [call for call in code.methods_on(spot.lines, "item") if not call.args and code.collects(call)]
        if not reads:
            raise Unfixable("The lines do not add the value of `item()` to a sum or a list.")
        ends = [(code.span(code.receiver(call))[1], code.span(call)[1]) for call in reads]
        how = "the sum or list holds tensors instead of numbers"
        detached = tuple(Splice(start, end, ".detach()") for start, end in ends)
        return Change(detached, changes_behaviour(how), "Only code after the loop reads the values, with `float()`.")


def _idle_after(profile: tt.Profile, reads: tt.Rows) -> dict[int, Spans]:
    """The spans of the ledger's entry `synchronisation` after waits in each of `reads`, which must not nest."""
    account = account_of(profile)
    segments = account.segments
    here = np.flatnonzero((segments.cause == Cause.SYNCHRONISATION.number) & (account.calls != ABSENT))
    read = enclosing(profile, reads, profile.launched_by[account.calls[here]])
    here, read = here[read != ABSENT], read[read != ABSENT]
    found: dict[int, Spans] = dict.fromkeys(reads.tolist(), ())
    for at in positions_of_each(read):
        time = Intervals.union(segments.starts[here[at]], segments.ends[here[at]])
        found[int(read[at[0]])] = tuple(zip(time.starts.tolist(), time.ends.tolist(), strict=True))
    return found


def _by_place(profile: tt.Profile, rows: Iterable[int]) -> list[list[int]]:
    """Rows by the user's own function around them, without those that a user cannot change."""
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(_place(profile, row), []).append(row)
    return [rows for place, rows in found.items() if not place.startswith(_OTHERS)]


def _place(profile: tt.Profile, row: int) -> str:
    """The name of the nearest caller that is the user's own or one of `_OTHERS`; empty for none."""
    while (name := profile.calls.caller_name(row)) and not tt.is_own_code(name) and not name.startswith(_OTHERS):
        row = int(profile.calls.caller[row])
    return name


def _anchor(profile: tt.Profile, first: int) -> int:
    """The first call of a loop, or its caller if it is a function. `<genexpr>` is on the line of its loop."""
    calls_function = profile.category(first) is tt.Category.PYTHON and "<" not in profile.name(first)
    return int(profile.calls.caller[first]) if calls_function else first
