"""Advice about an entry of the ledger in its circumstances, or why there is nothing to fix.

The words of each cause and kind are in `words/causes.py`; this module chooses among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from tb_tidy_plugin.ledger.model import Communication, Entry, Limit, Rate, RecordingKind
from tb_tidy_plugin.words.causes import Advice, Cause, Kind
from tb_tidy_plugin.words.units import Nanoseconds, PerSecond, Share, plural
from tb_tidy_plugin.words.vocabulary import Phase

NEAR_LIMIT = 0.7
"""From this share of its limit, work cannot get faster without being changed itself."""

ENOUGH_KNOWN = 0.4
"""Share of an entry with a known limit from which a sentence says how near the limit is."""

TRANSFER = "Overlap it with compute, and send fewer, larger messages."
_WAITING = (
    "{share} of it is waiting for late ranks: give all ranks equal work. The table of ranks shows which one comes last."
)
MIXED = "Use mixed precision (torch.autocast): these kernels multiply in float32 and leave the matrix units unused."
RECORD_SHAPES = "Record with record_shapes=True to see how close it is to its limit."
_BATCH = "Reading weights limits decoding: batch more requests{quantise}."
STORE_NARROW = ", or store weights in FP8 or INT8"
PREFILL = "Tune the products for these sizes (TunableOp, hipBLASLt or the server's own tables){quantise}."
COMPUTE_NARROW = ", or compute them in FP8"

BANNERS: Mapping[RecordingKind, str] = {
    "start-up": "This recording contains start-up: {share} of it is one-time calls. Warm up, then record.",
    "compilation": "{share} of this recording is compilation. Record after everything is compiled.",
    "capture": "This recording contains the capture of a graph, in which the device runs nothing. Record replays.",
    "thinned": "Events were removed from this recording: times are right, but causes are often unknown.",
    "no-device": (
        "Kernels were launched, but none was recorded: the device's work is unknown. Record it with activities="
        "[ProfilerActivity.CPU, ProfilerActivity.{activity}]."
    ),
    "unknown-device": (
        "TorchTidy does not know what {unknown} of this recording are. If they are a device's work, it is not known "
        "what the steps wait for."
    ),
    "empty": (
        "This recording contains no operators, no calls and no device work, so there is no time to account for. Run "
        "steps of the job between the start and the stop of the profiler."
    ),
}
HIDDEN_DEVICES: Mapping[RecordingKind, str] = {
    "no-device": "a device whose work was not recorded",
    "unknown-device": "an unknown device",
}
"""The device of a recording that names none."""

NO_SHAPES = "the recording contains no shapes"
_GRAPH = "kernels of a replayed graph carry no shapes"


def title_of(cause: Cause, kind: Kind | None, *, has_unknown_work: bool = False) -> str:
    """The entry's title; `has_unknown_work` is true if events that nobody understands may be a device's work."""
    if has_unknown_work and cause is Cause.UNRECORDED_HOST:
        return UNKNOWN_TIME
    return cause.title.format(kind="" if kind is None else kind.title)


class Circumstances(msgspec.Struct, frozen=True):
    """Conditions of advice besides an entry's cause, kind and limit.

    Attributes:
        serving: phase of the server's steps, `decode` if it may be; None if no server marks steps.
        has_stacks: True if Python's functions were recorded.
        why_unknown: the reason if a limit is unknown.
        in_graph: True if the work is a replayed graph's, with unknown operators.
        is_narrow: True if it computes with 16 bits or fewer. is_quantised: True if its weights have 8 bits or fewer.
        has_workers: True if all batches of the recording come from a loader's workers.
        has_calls: True if runtime calls were recorded.
        is_pinned: True if most of it copies from or to pinned memory.
        is_fused: True if most of it is a fused optimizer, or in kernels that `torch.compile` generated.
    """

    serving: Phase | None
    has_stacks: bool
    why_unknown: str
    in_graph: bool
    is_narrow: bool
    is_quantised: bool
    has_workers: bool
    has_calls: bool
    is_pinned: bool = False
    is_fused: bool = False

    @property
    def serves_text(self) -> bool:
        """True if a language model is served."""
        return self.serving is not None and self.serving != "diffusion"


Said: TypeAlias = tuple[str | None, str | None]
"""Advice about an entry, and the reason if there is nothing to fix: one of them, or both."""


def words_of(cause: Cause, kind: Kind | None) -> Advice | None:
    """Advice about a cause, or about its kind of work; None without a general one."""
    return cause.advice or (kind or Kind.OTHER).advice


def advised(cause: Cause, kind: Kind | None, limit: Limit | None, known: Circumstances) -> Said:
    """Advice about an entry of any cause but `cpu`, and the reason if there is nothing to fix."""
    words = words_of(cause, kind)
    if cause is Cause.COMPUTE:
        return _on_compute(kind or Kind.OTHER, limit, known)
    if words is None:
        return None, None
    if (words.with_calls and known.has_calls) or (words.with_stacks and known.has_stacks):
        return None, words.with_calls or words.with_stacks
    return _fitting(words, known), None


def _fitting(words: Advice, known: Circumstances) -> str:
    """The advice that fits the circumstances."""
    fitting = (
        (known.serves_text, words.served),
        (known.is_narrow, words.narrow),
        (known.is_pinned, words.pinned),
        (known.has_workers, words.with_workers),
        (not known.has_stacks, words.without_stacks),
    )
    return next((text for holds, text in fitting if holds and text), words.usual)


def _on_compute(kind: Kind, limit: Limit | None, known: Circumstances) -> Said:
    if limit is not None and limit.bound == "fp32-cores":
        return MIXED, None
    if known.is_fused and kind.fused:
        return None, _fused(kind.fused, limit)
    words = kind.advice or Kind.OTHER.advice
    usual = None if words is None else _fitting(words, known)
    if limit is not None and limit.share_reached is not None and limit.known_share >= ENOUGH_KNOWN:
        return _at_limit(kind, limit.share_reached, _bound_text(limit), _of_server(kind, limit, known) or usual or "")
    unknown = f"Its efficiency is not known because {_GRAPH if known.in_graph else known.why_unknown}."
    if kind.reads_weights and known.serving == "decode":
        return _batch(known), unknown
    if not kind.needs_limit:
        return usual, None
    return RECORD_SHAPES if known.why_unknown == NO_SHAPES and not known.in_graph else None, unknown


def _fused(reason: str, limit: Limit | None) -> str:
    """The reason why fusing is no advice, and how near the limit the work is as far as that is known."""
    if limit is None or limit.share_reached is None or limit.known_share < ENOUGH_KNOWN:
        return reason
    return f"{reason} It reaches {Share(limit.share_reached)} of the device's {_bound_text(limit)}."


def _bound_text(limit: Limit) -> str:
    return "peak rate" if limit.bound == "compute" else "memory bandwidth"


def _of_server(kind: Kind, limit: Limit, known: Circumstances) -> str | None:
    """Advice on products and experts that applies only to servers; None if the general advice applies."""
    if kind.reads_weights and known.serving == "decode" and limit.bound == "memory":
        return _batch(known)
    if kind is Kind.MATRIX and known.serving == "prefill" and known.is_narrow:
        return PREFILL.format(quantise="" if known.is_quantised else COMPUTE_NARROW)
    return None


def _batch(known: Circumstances) -> str:
    return _BATCH.format(quantise="" if known.is_quantised else STORE_NARROW)


def _at_limit(kind: Kind, reached: float, what: str, usual: str) -> Said:
    if reached >= NEAR_LIMIT and not kind.is_fusible:
        return None, f"It runs at {Share(reached)} of the device's {what}."
    return f"{usual} It reaches {Share(reached)} of the device's {what}.", None


UNKNOWN_TIME = "Time without events of a known category"
UNKNOWN_DEVICE = (
    "Whether the step waits for it is unknown, because events of unknown categories may be a device's work."
)
NO_DEVICE = "Whether the step waits for it is unknown, because the device's work was not recorded."


def on_communication(found: Communication) -> str:
    """Advice about exposed communication whose transfer is known."""
    if not is_mostly_waiting(found):
        return TRANSFER
    return _WAITING.format(share=Share(found.wait_ns / ((found.transfer_ns or 0) + found.wait_ns)))


def is_mostly_waiting(found: Communication) -> bool:
    """True if the recordings of all ranks show more waiting than transfer."""
    return found.transfer_ns is not None and found.wait_ns > found.transfer_ns


NOT_OWN = "It is Python between operators, outside your own files."


def on_cpu(kind: Kind, rate: Rate | None, *, has_shapes: bool, is_own: bool, is_fused: bool) -> Said:
    """Advice about an entry of the cause `cpu`, and the reason if there is nothing to fix.

    `is_own` is True if its first owner is a function in the user's own files: nobody can rewrite a framework's.
    """
    if kind is Kind.PYTHON:
        return ("Vectorise it, or move it out of the step.", None) if is_own else (None, NOT_OWN)
    if is_fused and kind.fused:
        return None, kind.fused
    said = None if kind.needs_limit or kind.advice is None else kind.advice.usual
    if rate is not None and (reached := _at_rate(kind, rate)):
        return said, reached
    why = "no formula is known for its operators" if has_shapes else "the shapes of its operators were not recorded"
    return said, None if said else f"Its efficiency is not known because {why}."


def _at_rate(kind: Kind, rate: Rate) -> str:
    """A sentence on the rate of operators; empty if neither figure applies to this kind of work."""
    parts = []
    if rate.flops_per_second is not None and kind.needs_limit:
        parts.append(f"computes {PerSecond(rate.flops_per_second)}FLOP/s")
    if rate.bytes_per_second is not None:
        parts.append(f"moves {PerSecond(rate.bytes_per_second)}B/s")
    threads = "" if rate.threads is None else f", with {plural(rate.threads, 'thread')}"
    return f"It {' and '.join(parts)}{threads}; the peak of this CPU is not known." if parts else ""


def bound_by(entries: Sequence[Entry]) -> str:
    """A sentence on what bounds the step, and how near that is to its limit."""
    if not entries:
        return BANNERS["empty"]
    first = entries[0]
    what = f"{first.title}: {Share(first.share)} of the step ({Nanoseconds(first.ns_per_step)})"
    if first.nothing_to_fix is not None:
        return f"{what}. {first.nothing_to_fix}"
    return f"{what}. {first.advice}" if first.advice else f"{what}."
