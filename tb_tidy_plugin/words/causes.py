"""Causes of time and kinds of work: everything that is stated of one, in one place.

A new cause or kind is a member here; mypy reports an attribute that it lacks. `ledger/causes.py` decides which cause a
piece of time has.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Literal, TypeAlias

from tb_tidy_plugin.words.vocabulary import Confidence, GapReason, RankPart

OwnerSide: TypeAlias = Literal["device", "queue", "host"]
"""Owner of time: work of the device, the work that the device starts next, or the host."""

AtWork: TypeAlias = Literal["device", "cpu", "none"]
"""What works in some time: a device, the CPU of a job without one, or nothing that the step waits for."""

OneTime: TypeAlias = Literal["start-up", "compilation"]
"""Recordings that are not of steady steps, because causes of one-time work take much of them."""

Colour: TypeAlias = Literal[
    "blue", "blue-dark", "blue-darker", "blue-light", "blue-lighter",
    "green", "green-dark", "green-darker", "green-light", "green-lighter",
    "orange", "orange-dark", "orange-light", "orange-lighter",
    "red", "red-dark", "pink", "pink-dark", "sky", "grey", "rows", "columns", "stripes", "dots",
]  # fmt: skip
"""Colours and patterns of the parts of a bar; the style sheets of both pages have a class for each."""


@dataclass(eq=False, repr=False)
class Advice:
    """Advice about a cause or a kind of work, and what stands in its place under a condition.

    Attributes:
        usual: the advice. pinned: about copies from or to pinned memory. narrow: about work of 16 bits or fewer.
        served: in servers of language models. with_workers: if all batches come from a loader's workers.
        without_stacks: if Python's functions were not recorded.
        fused: the reason why there is nothing to fix if the work is fused. with_stacks, with_calls: the same if
            Python's functions, or runtime calls, were recorded.
    """

    usual: str
    _: KW_ONLY
    pinned: str = ""
    narrow: str = ""
    served: str = ""
    with_workers: str = ""
    without_stacks: str = ""
    fused: str = ""
    with_stacks: str = ""
    with_calls: str = ""


class CauseGroup(Enum):
    """Groups of causes, in the order of a bar, with their labels and the colours of causes without kinds."""

    label: str
    colour: Colour

    COMPUTE = "compute", "Device compute", "blue"
    COMMUNICATION = "communication", "Exposed communication", "pink"
    COPIES = "copies", "Copies", "orange"
    QUEUED = "queued", "Queued work", "rows"
    HOST = "host", "Host work", "red"
    LAUNCH = "launch", "Launch overhead", "stripes"
    DATA = "data", "Data loading", "orange"
    WAITING = "waiting", "Host waits", "columns"
    RUNTIME = "runtime", "Runtime calls", "red-dark"
    COMPILATION = "compilation", "Compilation and capture", "pink-dark"
    INTERRUPTION = "interruption", "Profiler and garbage collection", "dots"
    CPU = "cpu", "CPU work", "blue"
    UNNAMED = "unnamed", "Not explained", "grey"

    def __new__(cls, word: str, label: str, colour: Colour) -> CauseGroup:  # noqa: PYI034 - Self is of Python 3.11
        member = object.__new__(cls)
        member._value_, member.label, member.colour = word, label, colour
        return member


class Proof(Enum):
    """Evidence for why a device is idle; none for work, which needs no evidence, and for unrecorded time."""

    text: str

    QUEUED = "queued", "its next work was launched before the device ran dry"
    ISSUING = "issuing", "the host was launching the next work"
    IN_CALL = "in-call", "the host was in a call that says so"
    BLOCKED = "blocked", "the host waited for the device"
    SILENT = "silent", "no thread launched anything for a while"
    NONE = "none", ""

    def __new__(cls, word: str, text: str) -> Proof:  # noqa: PYI034 - Self is of Python 3.11
        member = object.__new__(cls)
        member._value_, member.text = word, text
        return member


class _Stated(Enum):
    """Members with attributes, whose value is their word in reports."""

    def __new__(cls, traits: CauseTraits | KindTraits) -> _Stated:  # noqa: PYI034 - Self is of Python 3.11
        member = object.__new__(cls)
        member._value_ = traits.word
        return member

    def __str__(self) -> str:
        return str(self.value)

    def __lt__(self, other: _Stated) -> bool:
        return str(self) < str(other)  # tables are sorted by words


@dataclass(eq=False, repr=False)
class CauseTraits:
    """What is stated of a cause.

    Attributes:
        word: in reports. title: of its entry, with `{kind}` for its work. label: in a legend.
        side: owner of the time. certainty: of the cause, where it is found.
        rank_part: the part of a rank's step. doing: what a rank does more of that comes late, in a sentence; None if it
            communicates or waits then, which is never why it is late.
        advice: None if it depends on the kind of work.
        one_time: set if a job needs such time only once.
        is_unknown_wait: true if the device waits for something that no event shows: shortening the host's work
            meanwhile need not help.
        gap: why all of its time is above the floor; None if work may need some of it.
        number: position among the causes.
    """

    word: str
    title: str
    _: KW_ONLY
    label: str
    group: CauseGroup
    side: OwnerSide
    proof: Proof
    certainty: Confidence
    rank_part: RankPart
    doing: str | None
    advice: Advice | None
    one_time: OneTime | None = None
    is_unknown_wait: bool = False
    gap: GapReason | None = "waiting"
    number: int = -1


class Cause(CauseTraits, _Stated):
    """Causes of time.

    Device at work: compute, exposed communication, copies. Device idle with its next work queued: the next seven.
    Device idle for the host: up to `launch_pace`. `cpu` is the work of a job without a device, and the last three are
    what the recording does not explain.
    """

    COMPUTE = CauseTraits(
        "compute", "Device: {kind}", label="Compute", group=CauseGroup.COMPUTE, side="device", proof=Proof.NONE,
        gap=None,
        certainty="high", rank_part="compute", doing="work of the device", advice=None,
    )  # fmt: skip
    COMMUNICATION = CauseTraits(
        "communication", "Device: exposed communication", label="Exposed communication", group=CauseGroup.COMMUNICATION,
        gap=None,
        side="device", proof=Proof.NONE, certainty="high", rank_part="communication", doing=None,
        advice=Advice(
            "Overlap it with compute, and send fewer, larger messages. Compare the ranks to see which one comes late.",
        ),
    )  # fmt: skip
    COPY = CauseTraits(
        "copy", "Device: {kind}", label="Copies", group=CauseGroup.COPIES, side="device", proof=Proof.NONE,
        gap=None,
        certainty="high",
        rank_part="copies", doing="copies", advice=None,
    )  # fmt: skip
    BETWEEN_KERNELS = CauseTraits(
        "between_kernels", "Pauses between queued kernels", label="Between kernels", group=CauseGroup.QUEUED,
        gap="launch",
        side="queue",
        proof=Proof.QUEUED, certainty="high", rank_part="idle", doing="pauses between kernels",
        advice=Advice("Launch fewer, larger kernels: fuse them with torch.compile."),
    )  # fmt: skip
    INSIDE_GRAPH = CauseTraits(
        "inside_graph", "Pauses inside a replayed graph", label="Inside a graph", group=CauseGroup.QUEUED, side="queue",
        gap="launch",
        proof=Proof.QUEUED, certainty="high", rank_part="idle", doing="pauses inside graphs",
        advice=Advice("Capture fewer, larger kernels: compile the model before capturing it."),
    )  # fmt: skip
    GRAPH_START = CauseTraits(
        "graph_start", "A queued graph has not started yet", label="Graph start", group=CauseGroup.QUEUED, side="queue",
        gap="launch",
        proof=Proof.QUEUED, certainty="medium", rank_part="idle", doing="starting graphs",
        advice=Advice(
            "The graph's upload or its inputs are late: upload it earlier, and replay larger graphs less often.",
        ),
    )  # fmt: skip
    STREAM_WAIT = CauseTraits(
        "stream_wait", "The device waits for another stream", label="Stream wait", group=CauseGroup.QUEUED,
        side="queue",
        proof=Proof.QUEUED, certainty="medium", rank_part="idle", doing=None,
        advice=Advice("Check the work on the other stream, and record events as early as possible."),
    )  # fmt: skip
    COPY_SETUP = CauseTraits(
        "copy_setup", "A copy is being set up", label="Copy set-up", group=CauseGroup.QUEUED, side="queue",
        proof=Proof.QUEUED, certainty="medium", rank_part="copies", doing="setting up copies",
        advice=Advice(
            "Copy from pinned memory with non_blocking=True, so that the copy starts at once.",
            pinned="The memory is pinned already: make fewer, larger copies, with non_blocking=True.",
        ),
    )  # fmt: skip
    QUEUED_UNKNOWN = CauseTraits(
        "queued_unknown", "Queued work has not started, for a reason that was not recorded",
        gap="unknown",
        label="Queued, cause unknown", group=CauseGroup.UNNAMED, side="queue", proof=Proof.QUEUED, certainty="low",
        rank_part="idle", doing=None, is_unknown_wait=True,
        advice=Advice("Record with a newer PyTorch and synchronisation events to see what the device waits for."),
    )  # fmt: skip
    LAUNCH_LATENCY = CauseTraits(
        "launch_latency", "Launched work is on its way to the device", label="Launch latency", group=CauseGroup.QUEUED,
        gap="launch",
        side="queue", proof=Proof.ISSUING, certainty="high", rank_part="host",
        doing="the way of launches to the device",
        advice=Advice("Keep more work queued: launch earlier, or replay a CUDA graph."),
    )  # fmt: skip
    PROFILER = CauseTraits(
        "profiler", "The profiler's own work", label="Profiler", group=CauseGroup.INTERRUPTION, side="host",
        gap="recording",
        proof=Proof.IN_CALL, certainty="high", rank_part="host", doing="the profiler",
        advice=Advice("This is the cost of recording. Record less: no stacks, no shapes, fewer steps."),
    )  # fmt: skip
    GARBAGE_COLLECTION = CauseTraits(
        "garbage_collection", "Python collects garbage", label="Garbage collection", group=CauseGroup.INTERRUPTION,
        side="host", proof=Proof.IN_CALL, certainty="high", rank_part="host", doing="Python's garbage collection",
        advice=Advice("Call gc.freeze() after start-up, then gc.disable(), and gc.collect() between steps."),
    )  # fmt: skip
    GRAPH_CAPTURE = CauseTraits(
        "graph_capture", "A graph is being captured", label="Graph capture", group=CauseGroup.COMPILATION, side="host",
        proof=Proof.IN_CALL, certainty="high", rank_part="host", doing="capturing graphs", one_time="compilation",
        advice=Advice("Capture once at start-up, and record the replays."),
    )  # fmt: skip
    COMPILATION = CauseTraits(
        "compilation", "Code is being compiled", label="Compilation", group=CauseGroup.COMPILATION, side="host",
        proof=Proof.IN_CALL, certainty="high", rank_part="host", doing="compiling", one_time="compilation",
        advice=Advice(
            "Compile at start-up, and record after that. Code that recompiles in each step has changing shapes.",
        ),
    )  # fmt: skip
    DATA_LOADING = CauseTraits(
        "data_loading", "The step waits for data", label="Data loading", group=CauseGroup.DATA, side="host",
        proof=Proof.IN_CALL, certainty="high", rank_part="loading", doing="loading data",
        advice=Advice(
            "Load in workers (num_workers, prefetch_factor, pin_memory); move heavy transforms to the device.",
            with_workers=(
                "The batches come from workers already: give the loader more of them (num_workers, prefetch_factor, "
                "persistent_workers), or move heavy transforms to the device."
            ),
        ),
    )  # fmt: skip
    HOST_COMMUNICATION = CauseTraits(
        "host_communication", "The host waits for other ranks", label="Host communication", group=CauseGroup.WAITING,
        side="host", proof=Proof.IN_CALL, certainty="high", rank_part="communication", doing=None,
        advice=Advice("Overlap it, and send fewer, larger messages. Compare the ranks to see which one comes late."),
    )  # fmt: skip
    SYNCHRONISATION = CauseTraits(
        "synchronisation", "The device idles after the host waited for it", label="Synchronisation",
        group=CauseGroup.WAITING, side="host", proof=Proof.BLOCKED, certainty="medium", rank_part="idle", doing=None,
        advice=Advice("Read values from the device less often, or after launching the next step."),
    )  # fmt: skip
    ALLOCATION = CauseTraits(
        "allocation", "The host allocates or frees device memory", label="Memory allocation", group=CauseGroup.RUNTIME,
        side="host", proof=Proof.IN_CALL, certainty="high", rank_part="host", doing="allocating memory",
        one_time="start-up",
        advice=Advice(
            "Let the caching allocator keep its memory: no empty_cache(), stable sizes, expandable_segments.",
        ),
    )  # fmt: skip
    FIRST_LAUNCH = CauseTraits(
        "first_launch", "Kernels are loaded at their first launch", label="First launch", group=CauseGroup.RUNTIME,
        side="host", proof=Proof.IN_CALL, certainty="high", rank_part="host", doing="loading kernels",
        one_time="start-up", advice=Advice("Warm up before you measure: kernels are loaded once."),
    )  # fmt: skip
    RUNTIME_CALL = CauseTraits(
        "runtime_call", "The host is in one long runtime call", label="Runtime call", group=CauseGroup.RUNTIME,
        side="host",
        proof=Proof.IN_CALL, certainty="high", rank_part="host", doing="long calls of the runtime", one_time="start-up",
        advice=Advice("Warm up before you measure. Move a call that repeats in every step out of the loop."),
    )  # fmt: skip
    HOST_WORK = CauseTraits(
        "host_work", "Host work delays the device", label="Host work", group=CauseGroup.HOST, side="host",
        proof=Proof.SILENT, certainty="high", rank_part="host", doing="work of the host",
        advice=Advice(
            "Move it to workers, prefetch it, or do it on the device.",
            without_stacks=(
                "Record with with_stack=True to see which code it is. An operator's first calls choose and load "
                "kernels, so warm up first."
            ),
        ),
    )  # fmt: skip
    LAUNCH_PACE = CauseTraits(
        "launch_pace", "The host launches more slowly than the device works", label="Launch overhead",
        gap="launch",
        group=CauseGroup.LAUNCH, side="host", proof=Proof.ISSUING, certainty="medium", rank_part="host",
        doing="launching kernels",
        advice=Advice(
            'Replay CUDA graphs or use torch.compile(mode="reduce-overhead"), larger batches, fewer operators.',
            served=(
                "Let the server replay graphs: start vLLM without --enforce-eager, SGLang without "
                "--disable-cuda-graph, and capture the sizes that you serve."
            ),
        ),
    )  # fmt: skip
    CPU = CauseTraits(
        "cpu", "CPU: {kind}", label="CPU", group=CauseGroup.CPU, side="host", proof=Proof.NONE, certainty="high",
        gap=None,
        rank_part="compute", doing="work of the processor", advice=None,
    )  # fmt: skip
    UNRECORDED_HOST = CauseTraits(
        "unrecorded_host", "The host did something that was not recorded", label="Host not recorded",
        gap="unknown",
        group=CauseGroup.UNNAMED, side="host", proof=Proof.NONE, certainty="low", rank_part="idle",
        doing="what was not recorded",
        advice=Advice(
            "Record with with_stack=True to see what it is.",
            with_stacks=(
                "Neither an operator nor a function was recorded then: the process waited, or worked in compiled code."
            ),
        ),
    )  # fmt: skip
    UNRECORDED_LAUNCH = CauseTraits(
        "unrecorded_launch", "The device waits for work whose launch was not recorded", label="Launch not recorded",
        gap="unknown",
        group=CauseGroup.UNNAMED, side="queue", proof=Proof.NONE, certainty="low", rank_part="idle", doing=None,
        is_unknown_wait=True,
        advice=Advice(
            "Record host and device together (activities=[CPU, CUDA]).",
            with_calls=(
                "Its launches are not linked to the device's work in this recording, so that the cause is unknown."
            ),
        ),
    )  # fmt: skip
    UNRECORDED_WAIT = CauseTraits(
        "unrecorded_wait", "The host waits for device work that was not recorded", label="Wait not recorded",
        gap="unknown",
        group=CauseGroup.UNNAMED, side="host", proof=Proof.BLOCKED, certainty="medium", rank_part="idle", doing=None,
        is_unknown_wait=True,
        advice=Advice("Start recording after a torch.cuda.synchronize(), so that it includes all work."),
    )  # fmt: skip

    def __init__(self, traits: CauseTraits) -> None:
        vars(self).update(vars(traits), number=len(type(self).__members__))

    @property
    def is_of_device(self) -> bool:
        """True if the device works in that time."""
        return self.side == "device"

    @property
    def at_work(self) -> AtWork:
        """What works in that time."""
        return "device" if self.is_of_device else "cpu" if self is Cause.CPU else "none"


@dataclass(eq=False, repr=False)
class KindTraits:
    """What is stated of a kind of work.

    Attributes:
        word: in reports. title: in sentences. colour: of its part of a bar.
        needs_limit: only its limit shows whether it could be faster. reads_weights: in a server that decodes, it reads
            weights once for all requests of a batch. is_fusible: fusion removes it, however fast it is.
        has_limit: false if it is only a part, or more than a part, of what its operator's formula counts.
        advice: None without a general one. rank_part: the part of a rank's step, if it is not that of its cause.
        gap: why all of its time is above the floor; None if work may need some of it.
        number: position among the kinds.
    """

    word: str
    title: str
    _: KW_ONLY
    colour: Colour
    advice: Advice | None
    needs_limit: bool = False
    reads_weights: bool = False
    is_fusible: bool = False
    has_limit: bool = True
    rank_part: RankPart | None = None
    gap: GapReason | None = None
    number: int = -1


_FUSE_MORE = "Fuse it with the neighbouring operators: use the server's fused kernels, or torch.compile."
_COMPILED = "torch.compile has fused it already."


class Kind(KindTraits, _Stated):
    """Kinds of kernels and operators; `to_device` and the three after it are copies by a device's copy engines."""

    MATRIX = KindTraits(
        "matrix", "matrix products", colour="blue", needs_limit=True, reads_weights=True,
        advice=Advice(
            "Use bfloat16 or float16, larger batches, and sizes that are multiples of 64.",
            narrow="Use larger batches, and sizes that are multiples of 64.",
        ),
    )  # fmt: skip
    ATTENTION = KindTraits(
        "attention", "attention", colour="blue-dark", needs_limit=True,
        advice=Advice(
            "Try another backend of scaled_dot_product_attention, and pass is_causal=True for a causal mask.",
            served="Try another attention backend: SGLang's --attention-backend, vLLM's VLLM_ATTENTION_BACKEND.",
        ),
    )  # fmt: skip
    CONVOLUTION = KindTraits(
        "convolution", "convolutions", colour="blue-light", needs_limit=True,
        advice=Advice(
            "Use bfloat16 or float16 with channels_last.",
            narrow="Use channels_last, larger batches, and torch.backends.cudnn.benchmark=True.",
        ),
    )  # fmt: skip
    MIXTURE_OF_EXPERTS = KindTraits(
        "mixture_of_experts", "mixture of experts", colour="blue-darker", needs_limit=True, reads_weights=True,
        advice=None,
    )  # fmt: skip
    NORMALISATION = KindTraits(
        "normalisation", "normalisation", colour="green",
        advice=Advice(
            "Use a fused normalisation, or torch.compile.",
            served=_FUSE_MORE,
            fused=_COMPILED,
        ),
    )  # fmt: skip
    SOFTMAX = KindTraits(
        "softmax", "softmax", colour="green-dark",
        advice=Advice("Use scaled_dot_product_attention or a fused loss, which never store the scores."),
    )  # fmt: skip
    EMBEDDING = KindTraits(
        "embedding", "embeddings", colour="blue-lighter",
        advice=Advice("Use fused or sparse embedding tables, and sort indices by table."),
    )  # fmt: skip
    POOLING = KindTraits(
        "pooling", "pooling", colour="green-lighter",
        advice=Advice("Use channels_last, and float16 or bfloat16.", narrow="Use channels_last."),
    )  # fmt: skip
    REDUCTION = KindTraits(
        "reduction", "reductions", colour="green-dark",
        advice=Advice(
            "Fuse the reduction with the operator that produces its input (torch.compile).",
            fused=_COMPILED,
        ),
    )  # fmt: skip
    SORT = KindTraits("sort", "sorting", colour="green-lighter", advice=Advice("Sort fewer elements, or less often."))
    INDEXING = KindTraits(
        "indexing", "indexing", colour="blue-lighter",
        advice=Advice("Gather once and contiguously, or fuse it (torch.compile).", fused=_COMPILED),
    )  # fmt: skip
    POINTWISE = KindTraits(
        "pointwise", "pointwise operators", colour="green-light", is_fusible=True,
        advice=Advice(
            "Fuse pointwise operators with torch.compile.",
            served=_FUSE_MORE,
            fused=_COMPILED,
        ),
    )  # fmt: skip
    RANDOM = KindTraits(
        "random", "random numbers", colour="green-light",
        advice=Advice("Draw random numbers on the device that uses them (device=), or once for several steps."),
    )  # fmt: skip
    FUSED = KindTraits("fused", "compiled kernels", colour="sky", needs_limit=True, has_limit=False, advice=None)
    QUANTISATION = KindTraits(
        "quantisation", "quantisation", colour="green-darker",
        advice=Advice("Fuse quantisation with the operator before it."),
    )  # fmt: skip
    OPTIMIZER = KindTraits(
        "optimizer", "optimizer", colour="sky",
        advice=Advice("Use a fused optimizer (fused=True).", fused="The optimizer is fused already."),
    )  # fmt: skip
    MEMORY_COPY = KindTraits(
        "memory_copy", "copies in memory", colour="orange-light", is_fusible=True,
        advice=Advice("Avoid the copies: keep one layout, write into preallocated tensors instead of cat."),
    )  # fmt: skip
    LAYOUT = KindTraits(
        "layout", "layout conversions", colour="orange-light", has_limit=False, gap="layout",
        advice=Advice("Keep model and input in channels_last, so that no conversion is needed."),
    )  # fmt: skip
    TO_DEVICE = KindTraits(
        "to_device", "copies to the device", colour="orange",
        advice=Advice(
            "Pin memory and copy with non_blocking=True while the device computes, or create the data there.",
            pinned=(
                "The memory is pinned already: copy the next batch on a stream of its own while the device computes, "
                "or copy less."
            ),
        ),
    )  # fmt: skip
    TO_HOST = KindTraits(
        "to_host", "copies to the host", colour="orange-dark",
        advice=Advice(
            "Copy less often, to pinned memory, with non_blocking=True.",
            pinned="The memory is pinned already: copy less often, with non_blocking=True.",
        ),
    )  # fmt: skip
    ON_DEVICE = KindTraits(
        "on_device", "copies on the device", colour="orange-lighter",
        advice=Advice(
            "Avoid the copies: in DDP set gradient_as_bucket_view=True, and broadcast_buffers=False where it is safe.",
        ),
    )  # fmt: skip
    FILL = KindTraits(
        "fill", "fills of memory", colour="orange-lighter", is_fusible=True,
        advice=Advice(
            "Allocate with torch.empty if everything is overwritten, and clear gradients with set_to_none=True.",
        ),
    )  # fmt: skip
    PYTHON = KindTraits("python", "Python between operators", colour="red", rank_part="host", gap="launch", advice=None)
    OTHER = KindTraits(
        "other", "other work", colour="grey", needs_limit=True, has_limit=False,
        advice=Advice("Check its longest events."),
    )  # fmt: skip
    COMMUNICATION = KindTraits("communication", "communication", colour="pink", advice=None)

    def __init__(self, traits: KindTraits) -> None:
        vars(self).update(vars(traits), number=len(type(self).__members__))

    @property
    def label(self) -> str:
        """The title as it begins a line."""
        return self.title[0].upper() + self.title[1:]

    @property
    def fused(self) -> str:
        """Why fused work of this kind needs no fix; empty if the advice is not to fuse it."""
        return "" if self.advice is None else self.advice.fused


def legend_of(cause: Cause, kind: Kind | None) -> tuple[str, Colour]:
    """Label and colour in a legend: of work those of its kind."""
    if "{kind}" not in cause.title:
        return cause.label, cause.group.colour
    work = kind or Kind.OTHER
    return work.label, work.colour


CAUSES: tuple[Cause, ...] = tuple(Cause)
KINDS: tuple[Kind, ...] = tuple(Kind)
