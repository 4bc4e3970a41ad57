"""The ledger as blocks: where the step's time goes, who owns it, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tb_tidy_plugin.ledger.advice import bound_by, is_mostly_waiting
from tb_tidy_plugin.ledger.model import OF_DEVICE, Entry, Function, Ledger, Owner
from tb_tidy_plugin.render import document as doc
from tb_tidy_plugin.render import words
from tb_tidy_plugin.render.document import Block, Line, Paragraph, Span, sentence
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.words.units import Nanoseconds, Share, plural

MOST_LINES = 5
LONGEST_KERNEL = 60

OF_A_KIND = frozenset({"compute", "copy", "cpu"})
"""Causes whose entries are drawn by kind."""


def step_line(profile: ProfileReport, *, has_spread: bool = False) -> Line:
    """`3 steps, median 29.3 ms (profiler steps), device busy 61 %`: the same step everywhere.

    With the duration of a step without the profiler, if known: the other figures are of recorded steps.
    """
    ledger, true = profile.ledger, true_step(profile)
    if not ledger.step_ns.median:
        return (f"no steps{true}",)
    steps, host, busy = ledger.step_ns, "", ""
    count = "1 step of " if steps.n == 1 else f"{plural(steps.n, 'step')}, median "
    if ledger.host_step_ns is not None and abs(ledger.host_step_ns - steps.median) * 50 > steps.median:
        host = f"; the host's own mark takes {Nanoseconds(ledger.host_step_ns)}"
    if has_device(ledger):
        busy = f", device busy {busy_share(ledger)}"
    spread = _spread(ledger) if has_spread else ""
    mean = ""
    if abs(steps.mean - steps.median) * 50 > steps.median:
        mean = f", mean {Nanoseconds(steps.mean)}"
    source = f"{mean}{spread} ({words.STEP_BASIS[ledger.step_source]}){busy}{host}{true}"
    return (count, Span(str(Nanoseconds(steps.median)), "strong"), source)


def true_step(profile: ProfileReport) -> str:
    """`, recorded; 14.4 ms without the profiler`; empty if that is unknown, or if there is no step."""
    if not profile.true_step_ns or profile.steps.median_ns is None:
        return ""
    return f", recorded; {words.time_text(profile.true_step_ns)} without the profiler"


def lengths_of(ledger: Ledger) -> list[int]:
    """The duration of each step in ns."""
    return [step.end_ns - step.start_ns for step in ledger.steps]


def _spread(ledger: Ledger) -> str:
    if len(ledger.steps) < 2:
        return ""
    low, high = words.percentiles(lengths_of(ledger))
    return f", p10 to p90 {Nanoseconds(low)} to {Nanoseconds(high)}"


def has_device(ledger: Ledger) -> bool:
    """True if any device worked."""
    return any(entry.cause in OF_DEVICE for entry in ledger.entries)


def busy_share(ledger: Ledger) -> Share:
    """The part of the window in which the device worked."""
    return Share(sum(entry.share for entry in ledger.entries if entry.cause in OF_DEVICE))


def ledger_blocks(profile: ProfileReport, *, is_terminal: bool = False) -> Iterator[Block]:
    """A banner for recordings that are not steady, the largest entries, and what was left out."""
    ledger = profile.ledger
    entries = [
        each for at, each in enumerate(ledger.entries[:MOST_LINES]) if at == 0 or each.share >= words.LEAST_SHARE
    ]
    table = doc.Table(("where the step's time goes", "what to do"), ("share", "per step"), tuple(map(_row, entries)))
    yield from _around(ledger, map(_paragraph, entries) if is_terminal else [table] if entries else [])


def chart_blocks(ledger: Ledger, unit: str) -> Iterator[Block]:
    """The step as a bar, and all entries with the colours of its parts; without entries, the reason."""
    if not ledger.entries:
        yield from _around(ledger, [])
        return
    whole = f"Where the {Nanoseconds(ledger.step_ns.mean)} of {'an average step' if unit == 'step' else 'the trace'} go"
    rows = tuple(map(_with_swatch, ledger.entries))
    table = doc.Table(("Entry", "What to do"), ("Share", f"Per {unit}"), rows)
    bar = doc.Bar(tuple((part_of(entry), entry.share) for entry in ledger.entries))
    yield from _around(ledger, [doc.section(whole, doc.Chart((bar,), whole), table)])


def _with_swatch(entry: Entry) -> tuple[Line, ...]:
    what, *others = _row(entry)
    return ((Span(part_of(entry), "swatch"), *what), *others)


def part_of(entry: Entry) -> str:
    """The part of a bar whose colour an entry has, as on the page: its kind, else its cause."""
    return entry.kind or "other" if entry.cause in OF_A_KIND else entry.cause


def whole_ledger(ledger: Ledger) -> Iterator[Block]:
    """All entries, and the sum of each column; without entries, the reason."""
    if not ledger.entries:
        yield from _around(ledger, [])
        return
    rows = [_amounts(_what(entry), entry.share, entry.ns_per_step) for entry in ledger.entries]
    rows.append(_amounts(("sum",), 1, ledger.step_ns.mean))
    yield from _around(ledger, [doc.Table(("where the step's time goes",), ("share", "per step"), tuple(rows))])


def _around(ledger: Ledger, entries: Iterable[Block]) -> Iterator[Block]:
    if ledger.banner is not None:
        yield sentence(ledger.banner, "recording", "warning")
    yield from entries
    yield from (sentence(left.reason, "left out", "muted") for left in ledger.left_out)


def _paragraph(entry: Entry) -> Paragraph:
    amount = f"{Share(entry.share)!s:>6}  {Nanoseconds(entry.ns_per_step)!s:>8}  "
    advice = _advice(entry)
    return Paragraph((amount, *_what(entry)), below=(Span("→ ", "good"), advice) if advice else ())


def _row(entry: Entry) -> tuple[Line, ...]:
    what, *amounts = _amounts(_what(entry), entry.share, entry.ns_per_step)
    return (what, (_advice(entry),), *amounts)


def _amounts(what: Line, share: float, ns: int) -> tuple[Line, ...]:
    return what, (str(Share(share)),), (str(Nanoseconds(ns)),)


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
    owner = entry.owner
    name = _name(entry, owner)
    share = f" ({Share(owner.ns / max(entry.ns_total, 1))} of it)" if name and owner.ns < entry.ns_total else ""
    return f"{name}{share}"


def _name(entry: Entry, owner: Owner) -> str:
    if owner.known_by == "stack" and owner.library is not None:
        called = "" if owner.own in {None, owner.library} else f", called from {_function(owner.own)}"
        return f"{_function(owner.library)}{called}"
    if entry.cause in OF_DEVICE and owner.kernel:
        kernel = owner.kernel if len(owner.kernel) <= LONGEST_KERNEL else f"{owner.kernel[: LONGEST_KERNEL - 1]}…"
        operator = f"{owner.operator}{words.known_by_mark(owner.replayed)}"
        return f"{operator}: {kernel}" if owner.operator else kernel
    for name in (owner.operator, owner.mark, owner.neighbours, owner.kernel):
        if name:
            return name
    return ""


def _function(function: Function | None) -> str:
    return "" if function is None else f"{function.file}:{function.line} {function.function}"
