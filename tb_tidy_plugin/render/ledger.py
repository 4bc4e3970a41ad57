"""The ledger as blocks: where the step's time goes, who owns it, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tb_tidy_plugin.ledger.advice import bound_by, is_mostly_waiting
from tb_tidy_plugin.ledger.model import Entry, Ledger
from tb_tidy_plugin.render import document as doc
from tb_tidy_plugin.render import words
from tb_tidy_plugin.render.document import Block, Line, Paragraph, Span, sentence
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.words.units import Nanoseconds, Share, part_text, plural

MOST_LINES = 5
ENOUGH_FOR_PERCENTILES = 10  # with fewer steps, the 10th percentile is practically the minimum


def step_line(profile: ProfileReport, *, has_spread: bool = False) -> Line:
    """`3 steps, median 29.3 ms (marked by the profiler), device busy 61 %`: the same step everywhere."""
    steps = profile.ledger.step_ns
    if not steps.median:
        return (f"no steps{true_step(profile)}",)
    count = "1 step of " if steps.n == 1 else f"{plural(steps.n, 'step')}, median "
    remarks = step_remarks(profile, has_spread=has_spread, has_busy=True)
    return (count, Span(str(Nanoseconds(steps.median)), "strong"), remarks)


def step_remarks(profile: ProfileReport, *, has_spread: bool = True, has_busy: bool = False) -> str:
    """`, mean 31 ms, 28 ms to 40 ms min–max (marked by the profiler)`: what a reader of the median step should know.

    With the duration of a step without the profiler, if known: the other figures are of recorded steps.
    """
    ledger, host, mean = profile.ledger, "", ""
    steps = ledger.step_ns
    if ledger.host_step_ns is not None and abs(ledger.host_step_ns - steps.median) * 50 > steps.median:
        host = f"; the host's own mark takes {Nanoseconds(ledger.host_step_ns)}"
    if abs(steps.mean - steps.median) * 50 > steps.median:
        mean = f", mean {Nanoseconds(steps.mean)}"
    spread = _spread(ledger) if has_spread else ""
    busy = f", device busy {busy_share(ledger)}" if has_busy and has_device(ledger) else ""
    return f"{mean}{spread} ({ledger.step_source_text}){busy}{host}{true_step(profile)}"


def true_step(profile: ProfileReport) -> str:
    """`, recorded; 14.4 ms without the profiler`; empty if that is unknown, or if there is no step."""
    if not profile.true_step_ns or profile.steps.median_ns is None:
        return ""
    return f", recorded; {words.time_text(profile.true_step_ns)} without the profiler"


def lengths_of(ledger: Ledger) -> list[int]:
    """The duration of each step in ns."""
    return [step.end_ns - step.start_ns for step in ledger.steps]


def _spread(ledger: Ledger) -> str:
    """The 10th and 90th percentile, or with few steps the shortest and longest."""
    lengths = lengths_of(ledger)
    if len(lengths) < 2:
        return ""
    has_percentiles = len(lengths) >= ENOUGH_FOR_PERCENTILES
    low, high = words.percentiles(lengths) if has_percentiles else (min(lengths), max(lengths))
    return f", {Nanoseconds(low)} to {Nanoseconds(high)} {'p10–p90' if has_percentiles else 'min–max'}"


def has_device(ledger: Ledger) -> bool:
    """True if any device worked."""
    return any(entry.cause.is_of_device for entry in ledger.entries)


def busy_share(ledger: Ledger) -> Share:
    """The part of the window in which the device worked."""
    return Share(sum(entry.share for entry in ledger.entries if entry.cause.is_of_device))


def ledger_blocks(ledger: Ledger, form: doc.Form, unit: str = "step") -> Iterator[Block]:
    """A banner for recordings that are not steady, the largest entries, and what was left out.

    A page draws all entries as a bar, and lists them with the colours of its parts.
    """
    entries = ledger.entries
    if form != "html":
        entries = [each for at, each in enumerate(entries[:MOST_LINES]) if not at or each.share >= words.LEAST_SHARE]
    shown: list[Block] = []
    if form == "text":
        shown += map(_paragraph, entries)
    elif form == "html" and entries:
        of = "an average step" if unit == "step" else "the trace"
        whole = f"Where the {Nanoseconds(ledger.step_ns.mean)} of {of} go"
        bar = doc.Bar(tuple((entry.colour, entry.share) for entry in entries))
        rows = (
            ((Span(entry.colour, "swatch"), *what), *others) for entry in entries for what, *others in [_row(entry)]
        )
        table = doc.Table(("Entry", "What to do"), ("Share", f"Per {unit}"), tuple(rows))
        shown.append(doc.section(whole, doc.Chart((bar,), whole), table))
    elif entries:
        heads = ("where the step's time goes", "what to do")
        shown.append(doc.Table(heads, ("share", "per step"), tuple(map(_row, entries))))
    yield from _around(ledger, shown)


def whole_ledger(ledger: Ledger) -> Iterator[Block]:
    """All entries, and the sum of each column; without entries, the reason."""
    rows = [_amounts(_what(entry), entry.share, entry.ns_per_step) for entry in ledger.entries]
    rows.append(_amounts(("sum",), 1, ledger.step_ns.mean))
    table = doc.Table(("where the step's time goes",), ("share", "per step"), tuple(rows))
    yield from _around(ledger, [table] if ledger.entries else [])


def _around(ledger: Ledger, entries: Iterable[Block]) -> Iterator[Block]:
    if ledger.banner is not None:
        yield sentence(ledger.banner, "recording", "warning")
    yield from entries
    yield from (sentence(left.reason, "left out", "muted") for left in ledger.left_out)


def _paragraph(entry: Entry) -> Paragraph:
    amount = f"{part_text(entry.share):>6}  {Nanoseconds(entry.ns_per_step)!s:>8}  "
    advice = _advice(entry)
    return Paragraph((amount, *_what(entry)), below=(Span("→ ", "good"), advice) if advice else ())


def _row(entry: Entry) -> tuple[Line, ...]:
    what, *amounts = _amounts(_what(entry), entry.share, entry.ns_per_step)
    return (what, (_advice(entry),), *amounts)


def _amounts(what: Line, share: float, ns: int) -> tuple[Line, ...]:
    return what, (part_text(share),), (str(Nanoseconds(ns)),)


def _what(entry: Entry) -> Line:
    where = _where(entry)
    return (Span(entry.title, "strong"), f": {where}" if where else "")


def _advice(entry: Entry) -> str:
    return " ".join(part for part in (entry.advice, entry.nothing_to_fix, _waiting(entry)) if part)


def verdict(ledger: Ledger) -> str:
    """A sentence on what bounds the step and how near that is to its limit, for recordings without findings."""
    return bound_by(ledger.entries)


def _waiting(entry: Entry) -> str:
    found = entry.communication
    if found is None or not found.wait_ns or is_mostly_waiting(found):
        return ""  # or the advice says so
    said = f"At least {Share(found.wait_ns / max(entry.ns_total, 1))} of it is waiting for other ranks."
    return said if found.by == "at-least" else said.removeprefix("At least ")


def _where(entry: Entry) -> str:
    """The first owner, and its part of the entry."""
    owner, name = entry.owner, entry.owner.name
    share = f" ({Share(owner.ns / max(entry.ns_total, 1))} of it)" if name and owner.ns < entry.ns_total else ""
    return f"{name}{share}"
