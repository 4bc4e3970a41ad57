"""The ledger as blocks: what the step's time goes to, whose it is, and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from tb_tidy_plugin.ledger.advice import bound_by
from tb_tidy_plugin.ledger.model import Entry, Function, Ledger, Owner
from tb_tidy_plugin.ledger.owners import OF_DEVICE
from tb_tidy_plugin.render import document as doc
from tb_tidy_plugin.render import words
from tb_tidy_plugin.render.document import Block, Line, Paragraph, Span, sentence
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.units import Nanoseconds, Share, plural

MOST_LINES = 5
LEAST_SHARE = 0.01
LONGEST_KERNEL = 60

BUSY = frozenset({"compute", "communication", "copy"})

SOURCES = {
    "profiler_step": "profiler steps",
    "serving_step": "batches served",
    "framework_step": "steps of the framework",
    "optimizer_step": "times between optimizer steps",
    "repeating_unit": "repeating units: a step or one of its layers",
    "whole_trace": "no steps recorded: the whole trace counts as one",
}


def step_line(profile: ProfileReport) -> Line:
    """`3 steps, median 29.3 ms (profiler steps), device busy 61 %`: the one notion of the step."""
    ledger = profile.ledger
    if ledger is None or not ledger.entries:
        return words.steps_line(profile.steps)
    steps, host, busy = ledger.step_ns, "", ""
    count = "1 step of " if steps.n == 1 else f"{plural(steps.n, 'step')}, median "
    if ledger.host_step_ns is not None and abs(ledger.host_step_ns - steps.median) * 50 > steps.median:
        host = f"; the host's own mark takes {Nanoseconds(ledger.host_step_ns)}"
    if has_device(ledger):
        busy = f", device busy {Share(busy_ns(ledger) / max(ledger.window.end_ns - ledger.window.start_ns, 1))}"
    source = f" ({SOURCES[ledger.step_source]}){busy}{host}"
    return (count, Span(str(Nanoseconds(steps.median)), "strong"), source)


def has_device(ledger: Ledger) -> bool:
    """Whether any device worked."""
    return any(entry.cause in BUSY for entry in ledger.entries)


def busy_ns(ledger: Ledger) -> int:
    """How long the device worked in the window."""
    return sum(entry.ns_total for entry in ledger.entries if entry.cause in BUSY)


def ledger_blocks(ledger: Ledger | None, *, is_terminal: bool = False) -> Iterator[Block]:
    """A banner for recordings that are not steady, the largest entries, and what was left out."""
    if ledger is None or not ledger.entries:
        return
    if ledger.banner is not None:
        yield sentence(ledger.banner, "recording", "warning")
    entries = [each for at, each in enumerate(ledger.entries[:MOST_LINES]) if at == 0 or each.share >= LEAST_SHARE]
    if is_terminal:
        yield from map(_paragraph, entries)
    else:
        yield doc.Table(("where the step's time goes", "what to do"), ("share", "per step"), tuple(map(_row, entries)))
    yield from (sentence(left.reason, "left out", "muted") for left in ledger.left_out)


def _paragraph(entry: Entry) -> Paragraph:
    amount = f"{Share(entry.share)!s:>6}  {Nanoseconds(entry.ns_per_step)!s:>8}  "
    advice = _advice(entry)
    return Paragraph((amount, *_what(entry)), below=(Span("→ ", "good"), advice) if advice else ())


def _row(entry: Entry) -> tuple[Line, ...]:
    return _what(entry), (_advice(entry),), (str(Share(entry.share)),), (str(Nanoseconds(entry.ns_per_step)),)


def _what(entry: Entry) -> Line:
    where = _where(entry)
    return (Span(entry.title, "strong"), f": {where}" if where else "")


def _advice(entry: Entry) -> str:
    return " ".join(part for part in (entry.advice, entry.nothing_to_fix, _waiting(entry)) if part)


def verdict(ledger: Ledger | None) -> str:
    """What bounds the step and how near that is to its limit, for where no finding is there."""
    return "Nothing was recorded." if ledger is None else bound_by(ledger.entries)


def _waiting(entry: Entry) -> str:
    found = entry.communication
    if found is None or not found.wait_ns:
        return ""
    said = f"At least {Share(found.wait_ns / max(entry.ns_total, 1))} of it is waiting for other ranks."
    return said if found.by == "at-least" else said.removeprefix("At least ")


def _where(entry: Entry) -> str:
    """The owner in front, and how much of the entry is its."""
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
        return f"{owner.operator}: {kernel}" if owner.operator else kernel
    for name in (owner.operator, owner.mark, owner.neighbours, owner.kernel):
        if name:
            return name
    return ""


def _function(function: Function | None) -> str:
    return "" if function is None else f"{function.file}:{function.line} {function.function}"
