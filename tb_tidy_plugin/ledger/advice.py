"""The catalogue of the ledger's sentences: advice for each cause, or why there is nothing to fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tb_tidy_plugin.ledger.model import Cause, Communication, Entry, Kind, Limit, Rate, RecordingKind
from tb_tidy_plugin.words.units import Nanoseconds, PerSecond, Share, plural
from tb_tidy_plugin.words.vocabulary import Phase

NEAR_LIMIT = 0.7
"""From this share of its limit, work cannot get faster without being changed itself."""

ENOUGH_KNOWN = 0.4
"""Share of an entry with a known limit from which a sentence says how near the limit is."""

TITLES: Mapping[Cause, str] = {
    "compute": "Device: {kind}",
    "communication": "Device: exposed communication",
    "copy": "Device: {kind}",
    "between_kernels": "Pauses between queued kernels",
    "inside_graph": "Pauses inside a replayed graph",
    "graph_start": "A queued graph has not started yet",
    "stream_wait": "The device waits for another stream",
    "copy_setup": "A copy is being set up",
    "queued_unknown": "Queued work has not started, for a reason that was not recorded",
    "launch_latency": "Launched work is on its way to the device",
    "profiler": "The profiler's own work",
    "garbage_collection": "Python collects garbage",
    "graph_capture": "A graph is being captured",
    "compilation": "Code is being compiled",
    "data_loading": "The step waits for data",
    "host_communication": "The host waits for other ranks",
    "synchronisation": "The device idles after the host waited for it",
    "allocation": "The host allocates or frees device memory",
    "first_launch": "Kernels are loaded at their first launch",
    "runtime_call": "The host is in one long runtime call",
    "host_work": "Host work delays the device",
    "launch_pace": "The host launches more slowly than the device works",
    "cpu": "CPU: {kind}",
    "unrecorded_host": "The host did something that was not recorded",
    "unrecorded_launch": "The device waits for work whose launch was not recorded",
    "unrecorded_wait": "The host waits for device work that was not recorded",
}

KIND_TITLES: Mapping[Kind, str] = {
    "matrix": "matrix products",
    "attention": "attention",
    "convolution": "convolutions",
    "mixture_of_experts": "mixture of experts",
    "normalisation": "normalisation",
    "softmax": "softmax",
    "embedding": "embeddings",
    "pooling": "pooling",
    "reduction": "reductions",
    "sort": "sorting",
    "indexing": "indexing",
    "pointwise": "pointwise operators",
    "random": "random numbers",
    "fused": "compiled kernels",
    "quantisation": "quantisation",
    "optimizer": "optimizer",
    "memory_copy": "copies in memory",
    "layout": "layout conversions",
    "to_device": "copies to the device",
    "to_host": "copies to the host",
    "on_device": "copies on the device",
    "fill": "fills of memory",
    "python": "Python between operators",
    "other": "other work",
}
"""Titles of kinds. The page has the same words (`KINDS` in `frontend/src/base/ledger.ts`)."""

BY_CAUSE: Mapping[Cause, str] = {
    "communication": (
        "Overlap it with compute, and send fewer, larger messages. Compare the ranks to see which one comes late."
    ),
    "between_kernels": "Launch fewer, larger kernels: fuse them with torch.compile.",
    "inside_graph": "Capture fewer, larger kernels: compile the model before capturing it.",
    "graph_start": (
        "The graph's upload or its inputs are late: upload it earlier, and replay larger graphs less often."
    ),
    "stream_wait": "Check the work on the other stream, and record events as early as possible.",
    "copy_setup": "Copy from pinned memory with non_blocking=True, so that the copy starts at once.",
    "queued_unknown": "Record with a newer PyTorch and synchronisation events to see what the device waits for.",
    "launch_latency": "Keep more work queued: launch earlier, or replay a CUDA graph.",
    "profiler": "This is the cost of recording. Record less: no stacks, no shapes, fewer steps.",
    "garbage_collection": "Call gc.freeze() after start-up, then gc.disable(), and gc.collect() between steps.",
    "graph_capture": "Capture once at start-up, and record the replays.",
    "compilation": (
        "Compile at start-up, and record after that. Code that recompiles in each step has changing shapes."
    ),
    "data_loading": "Load in workers (num_workers, prefetch_factor, pin_memory); move heavy transforms to the device.",
    "host_communication": (
        "Overlap it, and send fewer, larger messages. Compare the ranks to see which one comes late."
    ),
    "synchronisation": "Read values from the device less often, or after launching the next step.",
    "allocation": "Let the caching allocator keep its memory: no empty_cache(), stable sizes, expandable_segments.",
    "first_launch": "Warm up before you measure: kernels are loaded once.",
    "runtime_call": "Warm up before you measure. Move a call that repeats in every step out of the loop.",
    "host_work": "Move it to workers, prefetch it, or do it on the device.",
    "launch_pace": 'Replay CUDA graphs or use torch.compile(mode="reduce-overhead"), larger batches, fewer operators.',
    "unrecorded_host": "Record with with_stack=True to see what it is.",
    "unrecorded_launch": "Record host and device together (activities=[CPU, CUDA]).",
    "unrecorded_wait": "Start recording after a torch.cuda.synchronize(), so that it includes all work.",
}

BY_KIND: Mapping[Kind, str] = {
    "matrix": "Use bfloat16 or float16, larger batches, and sizes that are multiples of 64.",
    "convolution": "Use bfloat16 or float16 with channels_last.",
    "attention": "Try another backend of scaled_dot_product_attention, and pass is_causal=True for a causal mask.",
    "softmax": "Use scaled_dot_product_attention or a fused loss, which never store the scores.",
    "normalisation": "Use a fused normalisation, or torch.compile.",
    "pointwise": "Fuse pointwise operators with torch.compile.",
    "memory_copy": "Avoid the copies: keep one layout, write into preallocated tensors instead of cat.",
    "layout": "Keep model and input in channels_last, so that no conversion is needed.",
    "embedding": "Use fused or sparse embedding tables, and sort indices by table.",
    "random": "Draw random numbers on the device that uses them (device=), or once for several steps.",
    "reduction": "Fuse the reduction with the operator that produces its input (torch.compile).",
    "indexing": "Gather once and contiguously, or fuse it (torch.compile).",
    "sort": "Sort fewer elements, or less often.",
    "optimizer": "Use a fused optimizer (fused=True).",
    "pooling": "Use channels_last, and float16 or bfloat16.",
    "fill": "Allocate with torch.empty if everything is overwritten, and clear gradients with set_to_none=True.",
    "to_device": "Pin memory and copy with non_blocking=True while the device computes, or create the data there.",
    "to_host": "Copy less often, to pinned memory, with non_blocking=True.",
    "on_device": (
        "Avoid the copies: in DDP set gradient_as_bucket_view=True, and broadcast_buffers=False where it is safe."
    ),
    "other": "Check its longest events.",
    "quantisation": "Fuse quantisation with the operator before it.",
}

_NARROW: Mapping[Kind, str] = {
    "matrix": "Use larger batches, and sizes that are multiples of 64.",
    "convolution": "Use channels_last, larger batches, and torch.backends.cudnn.benchmark=True.",
    "pooling": "Use channels_last.",
}
"""Advice on work of 16 bits or fewer, which already uses them."""

PINNED_COPY: Mapping[Cause | Kind, str] = {
    "to_device": (
        "The memory is pinned already: copy the next batch on a stream of its own while the device computes, or copy "
        "less."
    ),
    "to_host": "The memory is pinned already: copy less often, with non_blocking=True.",
    "copy_setup": "The memory is pinned already: make fewer, larger copies, with non_blocking=True.",
}
"""Advice on copies from or to pinned memory."""

MORE_WORKERS = (
    "The batches come from workers already: give the loader more of them (num_workers, prefetch_factor, "
    "persistent_workers), or move heavy transforms to the device."
)

FUSE_MORE = "Fuse it with the neighbouring operators: use the server's fused kernels, or torch.compile."
SERVED: Mapping[Kind, str] = {
    "attention": "Try another attention backend: SGLang's --attention-backend, vLLM's VLLM_ATTENTION_BACKEND.",
    "normalisation": FUSE_MORE,
    "pointwise": FUSE_MORE,
}
"""Advice for servers of language models, whose kernels are already fused."""

_COMPILED = "torch.compile has fused it already."
FUSED: Mapping[Kind | None, str] = {
    "optimizer": "The optimizer is fused already.",
    "normalisation": _COMPILED,
    "pointwise": _COMPILED,
    "reduction": _COMPILED,
    "indexing": _COMPILED,
}
"""Reasons for kinds of work that would be advised to be fused, and are."""

HIDDEN_HOST_WORK = (
    "Record with with_stack=True to see which code it is. An operator's first calls choose and load kernels, so warm "
    "up first."
)

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
SERVER_LAUNCHES = (
    "Let the server replay graphs: start vLLM without --enforce-eager, SGLang without --disable-cuda-graph, and "
    "capture the sizes that you serve."
)

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
"""The device of a recording that names none; `base/ledger.ts` of the page has the same words."""


NO_SHAPES = "the recording contains no shapes"
_GRAPH = "kernels of a replayed graph carry no shapes"
NEEDS_LIMIT: frozenset[Kind | None] = frozenset(
    {"matrix", "convolution", "attention", "mixture_of_experts", "fused", "other", None}
)
"""Work for which only its limit shows whether it could be faster."""

READS_WEIGHTS: frozenset[Kind | None] = frozenset({"matrix", "mixture_of_experts"})
"""Work that, in a server that decodes, reads weights once for all requests of a batch."""

FUSIBLE: frozenset[Kind | None] = frozenset({"pointwise", "memory_copy", "fill"})
"""Work that fusion removes, however fast it is."""


def title_of(cause: Cause, kind: Kind | None, *, has_unknown_work: bool = False) -> str:
    """The entry's title; `has_unknown_work` is true if events that nobody understands may be a device's work."""
    if has_unknown_work and cause == "unrecorded_host":
        return UNKNOWN_TIME
    shown = "" if kind is None else KIND_TITLES[kind]
    return TITLES[cause].format(kind=shown)


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


def advised(
    cause: Cause, kind: Kind | None, limit: Limit | None, known: Circumstances
) -> tuple[str | None, str | None]:
    """Advice about an entry of any cause but `cpu`, and the reason if there is nothing to fix: one of them, or both."""
    if cause == "compute":
        return _on_compute(kind, limit, known)
    if cause == "launch_pace" and known.serves_text:
        return SERVER_LAUNCHES, None
    if (cause, True) in {("unrecorded_launch", known.has_calls), ("unrecorded_host", known.has_stacks)}:
        return None, UNLINKED if cause == "unrecorded_launch" else UNSEEN
    if cause == "host_work" and not known.has_stacks:
        return HIDDEN_HOST_WORK, None
    if cause == "data_loading" and known.has_workers:
        return MORE_WORKERS, None
    usual = BY_KIND[kind or "other"] if cause == "copy" else BY_CAUSE[cause]
    about = kind or "other" if cause == "copy" else cause
    return (PINNED_COPY.get(about, usual) if known.is_pinned else usual), None


def _on_compute(kind: Kind | None, limit: Limit | None, known: Circumstances) -> tuple[str | None, str | None]:
    if limit is not None and limit.bound == "fp32-cores":
        return MIXED, None
    if known.is_fused and kind in FUSED:
        return None, _fused(kind, limit)
    by_kind = {**BY_KIND, **(_NARROW if known.is_narrow else {}), **(SERVED if known.serves_text else {})}
    if limit is not None and limit.share_reached is not None and limit.known_share >= ENOUGH_KNOWN:
        usual = _of_server(kind, limit, known) or by_kind.get(kind or "other", by_kind["other"])
        return _at_limit(kind, limit.share_reached, _bound_text(limit), usual)
    unknown = f"Its efficiency is not known because {_GRAPH if known.in_graph else known.why_unknown}."
    if kind in READS_WEIGHTS and known.serving == "decode":
        return _batch(known), unknown
    if kind not in NEEDS_LIMIT:
        return by_kind.get(kind or "other"), None
    return RECORD_SHAPES if known.why_unknown == NO_SHAPES and not known.in_graph else None, unknown


def _fused(kind: Kind | None, limit: Limit | None) -> str:
    """The reason why fusing is no advice, and how near the limit the work is as far as that is known."""
    if limit is None or limit.share_reached is None or limit.known_share < ENOUGH_KNOWN:
        return FUSED[kind]
    return f"{FUSED[kind]} It reaches {Share(limit.share_reached)} of the device's {_bound_text(limit)}."


def _bound_text(limit: Limit) -> str:
    return "peak rate" if limit.bound == "compute" else "memory bandwidth"


def _of_server(kind: Kind | None, limit: Limit, known: Circumstances) -> str | None:
    """Advice on products and experts that applies only to servers; None if the general advice applies."""
    if kind in READS_WEIGHTS and known.serving == "decode" and limit.bound == "memory":
        return _batch(known)
    if kind == "matrix" and known.serving == "prefill" and known.is_narrow:
        return PREFILL.format(quantise="" if known.is_quantised else COMPUTE_NARROW)
    return None


def _batch(known: Circumstances) -> str:
    return _BATCH.format(quantise="" if known.is_quantised else STORE_NARROW)


def _at_limit(kind: Kind | None, reached: float, what: str, usual: str) -> tuple[str | None, str | None]:
    if reached >= NEAR_LIMIT and kind not in FUSIBLE:
        return None, f"It runs at {Share(reached)} of the device's {what}."
    return f"{usual} It reaches {Share(reached)} of the device's {what}.", None


UNSEEN = "Neither an operator nor a function was recorded then: the process waited, or worked in compiled code."
UNKNOWN_TIME = "Time without events of a known category"
UNKNOWN_DEVICE = (
    "Whether the step waits for it is unknown, because events of unknown categories may be a device's work."
)
NO_DEVICE = "Whether the step waits for it is unknown, because the device's work was not recorded."

UNLINKED = "Its launches are not linked to the device's work in this recording, so that the cause is unknown."


def on_communication(found: Communication) -> str:
    """Advice about exposed communication whose transfer is known."""
    if not is_mostly_waiting(found):
        return TRANSFER
    return _WAITING.format(share=Share(found.wait_ns / ((found.transfer_ns or 0) + found.wait_ns)))


def is_mostly_waiting(found: Communication) -> bool:
    """True if the recordings of all ranks show more waiting than transfer."""
    return found.transfer_ns is not None and found.wait_ns > found.transfer_ns


NOT_OWN = "It is Python between operators, outside your own files."


def on_cpu(
    kind: Kind | None, rate: Rate | None, *, has_shapes: bool, is_own: bool, is_fused: bool
) -> tuple[str | None, str | None]:
    """Advice about an entry of the cause `cpu`, and the reason if there is nothing to fix.

    `is_own` is True if its first owner is a function in the user's own files: nobody can rewrite a framework's.
    """
    if kind == "python":
        return ("Vectorise it, or move it out of the step.", None) if is_own else (None, NOT_OWN)
    if is_fused and kind in FUSED:
        return None, FUSED[kind]
    said = None if kind in NEEDS_LIMIT else BY_KIND.get(kind or "other")
    if rate is not None and (reached := _at_rate(kind, rate)):
        return said, reached
    why = "no formula is known for its operators" if has_shapes else "the shapes of its operators were not recorded"
    return said, None if said else f"Its efficiency is not known because {why}."


def _at_rate(kind: Kind | None, rate: Rate) -> str:
    """A sentence on the rate of operators; empty if neither figure applies to this kind of work."""
    parts = []
    if rate.flops_per_second is not None and kind in NEEDS_LIMIT:
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
