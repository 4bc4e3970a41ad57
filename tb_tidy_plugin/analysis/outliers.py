"""Steps that took much longer or shorter than the others, and how each of them differs from the median step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from tb_tidy_plugin.analysis.step_costs import CallCosts, StepCosts
from tb_tidy_plugin.ledger.model import Ledger, LedgerStep
from tb_tidy_plugin.profile.steps.steps import ODD_SHARE
from tb_tidy_plugin.report.step_model import Outlier, OutlierCause, OutlierKind, StepItem, Steps
from tb_tidy_plugin.trace.columns import Rows, Times
from tb_tidy_plugin.words.units import Nanoseconds

MOST_OUTLIERS = 20
_MOST_CAUSES = 3  # of each kind
LEAST_PART = 0.1  # of the difference in duration; a smaller part explains nothing

WAIT_WORDS = {
    "data_loading": "waiting for data",
    "garbage_collection": "Python's garbage collection",
    "compilation": "compiling",
    "allocator": "the allocator asking the driver for memory",
    "synchronisation": "waiting for the device",
}


class _Quantity(msgspec.Struct, frozen=True):
    """Something that a step contains: its time in each step, and its count where known."""

    kind: OutlierKind
    name: str
    shapes: str
    time_ns: Times
    calls: Times | None = None

    def usual(self, steps: Rows) -> tuple[int, int | None]:
        """The medians of its time and its count over these steps."""
        return _median(self.time_ns[steps]), None if self.calls is None else _median(self.calls[steps])


def has_outliers(steps: Steps) -> bool:
    """True if any step is an outlier; needs no other data about the steps."""
    return any(step.oddity == "outlier" for step in steps.items)


def outliers_of(steps: Steps, ledger: Ledger, costs: StepCosts) -> list[Outlier]:
    """The outliers that differ most, in order of time, each with what differs about it.

    The reference is the median of the ordinary steps, for each quantity. Quantities overlap: a wait may lie in an
    operator, whose time belongs to an entry of the ledger, so their times do not add up. Steps are as long as in the
    ledger: one whose mark alone is odd, since the host ran ahead, is left out.
    """
    odd = [at for at, step in enumerate(steps.items) if step.oddity == "outlier"]
    usual = np.array([at for at, step in enumerate(steps.items) if step.oddity is None], np.int64)
    if not odd or not len(usual) or steps.median_ns is None:
        return []
    position = _positions(steps.items, ledger.steps)
    lengths, median_ns = [item.duration_ns for item in steps.items], steps.median_ns
    if len(position):
        median_ns = ledger.step_ns.median
        for at, step in zip(position.tolist(), ledger.steps, strict=True):
            lengths[at] = step.end_ns - step.start_ns
    odd = [at for at in odd if abs(lengths[at] - median_ns) > ODD_SHARE * median_ns]
    largest = sorted(odd, key=lambda at: -abs(lengths[at] - median_ns))[:MOST_OUTLIERS]
    quantities = [(each, each.usual(usual)) for each in _quantities(steps, ledger, position, costs)]
    return [
        _outlier(at, steps.items[at].name, lengths[at], median_ns, list(_causes(quantities, at)))
        for at in sorted(largest)
    ]


def _quantities(steps: Steps, ledger: Ledger, position: Rows, costs: StepCosts) -> Iterator[_Quantity]:
    count = len(steps.items)
    for wait, times in costs.waits.items():
        yield _Quantity("wait", wait, "", np.array(times, np.int64))
    for entry in ledger.entries if len(position) else ():
        time_ns = np.zeros(count, np.int64)
        time_ns[position] = entry.ns_by_step
        yield _Quantity("entry", entry.title, "", time_ns)
    for row in costs.operators:
        yield _of_calls("operator", row, row.host_ns, count)
    for row in costs.kernels:
        yield _of_calls("kernel", row, row.device_ns, count)


def _positions(items: Sequence[StepItem], accounted: Sequence[LedgerStep]) -> Rows:
    """The position among `items` of each step that the ledger accounts for; empty if it has steps of another source.

    Names need not be distinct, so a step is also known by the length of its mark.
    """
    found, last = [], -1
    for step in accounted:
        marks = range(last + 1, len(items))
        last = next((at for at in marks if _is_of(items[at], step)), len(items))
        if last == len(items):
            return np.empty(0, np.int64)
        found.append(last)
    return np.array(found, np.int64)


def _is_of(item: StepItem, step: LedgerStep) -> bool:
    return item.name.startswith(step.name) and item.duration_ns == step.host_ns


def _of_calls(kind: OutlierKind, row: CallCosts, time_ns: Sequence[int], count: int) -> _Quantity:
    times, calls = np.zeros(count, np.int64), np.zeros(count, np.int64)
    times[row.step], calls[row.step] = time_ns, row.calls
    return _Quantity(kind, row.name, row.shapes, times, calls)


def _median(values: Times) -> int:
    """Same as `np.median`, ten times as fast for few values."""
    ascending: list[int] = sorted(values.tolist())
    return round((ascending[(len(ascending) - 1) // 2] + ascending[len(ascending) // 2]) / 2)


def _causes(quantities: Iterable[tuple[_Quantity, tuple[int, int | None]]], at: int) -> Iterator[OutlierCause]:
    for each, (usual_ns, usual_calls) in quantities:
        yield OutlierCause(
            kind=each.kind,
            name=each.name,
            title=WAIT_WORDS[each.name] if each.kind == "wait" else each.name,
            shapes=each.shapes,
            time_ns=int(each.time_ns[at]),
            usual_ns=usual_ns,
            calls=None if each.calls is None else int(each.calls[at]),
            usual_calls=usual_calls,
        )


def _outlier(at: int, name: str, length_ns: int, median_ns: int, causes: Sequence[OutlierCause]) -> Outlier:
    excess_ns = length_ns - median_ns
    ranked = sorted(causes, key=lambda cause: -abs(_excess_ns(cause)))
    telling = [cause for cause in ranked if _excess_ns(cause) / excess_ns >= LEAST_PART]
    kinds: tuple[OutlierKind, ...] = ("wait", "entry", "operator", "kernel")
    kept = [cause for kind in kinds for cause in [each for each in telling if each.kind == kind][:_MOST_CAUSES]]
    return Outlier(
        step=at,
        name=name,
        duration_ns=length_ns,
        median_ns=median_ns,
        causes=kept,
        text=_text(name, length_ns, excess_ns, kept),
    )


def _excess_ns(cause: OutlierCause) -> int:
    return cause.time_ns - cause.usual_ns


def _text(name: str, duration_ns: int, excess_ns: int, causes: Sequence[OutlierCause]) -> str:
    compared = "longer" if excess_ns > 0 else "shorter"
    took = f"{name} took {Nanoseconds(duration_ns)}, {Nanoseconds(abs(excess_ns))} {compared} than the median step"
    held = "; ".join(_cause_text(cause) for cause in causes)
    return f"{took}: {held}." if held else f"{took}; no operator, kernel or wait accounts for that."


def _cause_text(cause: OutlierCause) -> str:
    excess_ns = _excess_ns(cause)
    more = f"{Nanoseconds(abs(excess_ns))} {'more' if excess_ns > 0 else 'less'}"
    if cause.kind == "wait":
        return f"{cause.title} {more}"
    name = f"“{cause.name}”" if cause.kind == "entry" else f"`{cause.name}`"
    shapes = f" of {cause.shapes}" if cause.shapes else ""
    calls = f" ({cause.calls} calls instead of {cause.usual_calls})" if cause.calls != cause.usual_calls else ""
    return f"{name}{shapes} {more}{calls}"
