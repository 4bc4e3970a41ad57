"""Iterations of inference servers, and replayed graphs, as the report shows them."""

from __future__ import annotations

from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.words.vocabulary import GraphMode, KnownBy, Phase


class IterationItem(Model, frozen=True):
    """One batch of a server, from its annotations and its kernels; null for what they do not show.

    Attributes:
        phase: `diffusion` is one call of a diffusion model, with all of its denoising steps.
        requests: of a diffusion model, images. prefills, decodes: requests of each phase.
        tokens: tokens that are computed. kv_tokens: tokens that attention reads. size: of an image, `256x256`.
        mode: whether one graph was replayed (of a diffusion model one per denoising step), several pieces, or none.
        host_ns: length of the mark. start_ns, device_ns: the device's window, from the first to the last kernel that
            the mark launched on the stream with most time; of the mark if the device did nothing.
        busy_ns: of the window. host_late_ns, queued_ns: pauses of more than 20 µs in it, by whether the work behind
            them was launched after the pause began, or before.
        lead_ns: time from the launch of the first kernel to its start; behind a copy that held the host, if any.
        gap_ns: from the window's end to that of the next iteration.
    """

    name: str
    phase: Phase
    requests: int | None
    prefills: int | None
    decodes: int | None
    tokens: int | None
    kv_tokens: int | None
    size: str | None
    mode: GraphMode
    graph_launches: int
    kernels: int
    host_ns: int
    start_ns: int
    device_ns: int
    busy_ns: int
    host_late_ns: int
    queued_ns: int
    lead_ns: int | None
    gap_ns: int | None
    tokens_per_second: float | None
    time_per_output_token_ns: int | None


class DecodeFloor(Model, frozen=True):
    """The least that a decode iteration must read, and the time that this takes at the device's memory bandwidth."""

    weight_bytes: int
    kv_bytes: int
    ns: int


class PhaseTotal(Model, frozen=True):
    """All iterations of one phase, mode and size: their number, medians, and sums of tokens by sums of windows.

    `padded` is the batch that the graph computes, null if that is not larger or unknown. `floor` is that of the median
    iteration, null if it does more than decode, or if the sizes of weights are unknown.
    """

    phase: Phase
    mode: GraphMode
    size: str | None
    count: int
    requests: int | None
    kv_tokens: int | None
    device_ns: int
    busy_share: float
    host_late_ns: int
    queued_ns: int
    lead_ns: int | None
    tokens_per_second: float | None
    time_per_output_token_ns: int | None
    tokens: int | None = None
    padded: int | None = None
    graph_launches: int = 0
    floor: DecodeFloor | None = None


class Attribution(Model, frozen=True):
    """Device work of replayed graphs whose operator is known in one way.

    Attributes:
        known_by: `exact`: the sequences of kernels in capture and replay are equal. `unique`: a comparison of the two
            allows nothing else. `renamed`: by its place between two certain kernels. `donor`: by an eager iteration of
            the same model, whose line may be another one. Null: unknown.
        kernels: pieces of device work. time_ns: their durations, added up.
    """

    known_by: KnownBy | None
    kernels: int
    time_ns: int


class Graphs(Model, frozen=True):
    """Replays of graphs in the whole recording.

    `sources` are the names of the files that hold the captures; an empty name stands for the recording itself.
    """

    launches: int
    kernels: int
    time_ns: int
    attribution: list[Attribution]
    sources: list[str]


class Repetition(Model, frozen=True):
    """A sequence of kernels that repeats within an iteration, such as a layer; `share` is of its device time."""

    count: int
    kernels: int
    share: float


class Serving(Model, frozen=True):
    """Iterations and graphs of a profile.

    `iterations` are the first 1,000 of `count`, in order of time. `phases` begins with the one that takes most time.
    `repetition` is that of the longest iteration, null if nothing repeats.
    """

    count: int
    iterations: list[IterationItem]
    phases: list[PhaseTotal]
    repetition: Repetition | None
    graphs: Graphs | None
