"""Steps in the report: their durations, their parts, and which of them are unusual."""

from __future__ import annotations

from typing import Literal, TypeAlias

from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.vocabulary import Oddity, Part, StepBasis

OutlierKind: TypeAlias = Literal["wait", "part", "operator", "kernel"]


class StepItem(Model, frozen=True):
    """One step, as recorded. `oddity` says what is unusual about it: part of the warm-up, or an outlier."""

    name: str
    start_ns: int
    duration_ns: int
    oddity: Oddity | None = None


class Steps(Model, frozen=True):
    """The steps and their source; `median_ns` and the percentiles are null without steps."""

    basis: StepBasis
    count: int
    median_ns: int | None
    items: list[StepItem]
    p10_ns: int | None = None
    p90_ns: int | None = None


class OutlierCause(Model, frozen=True):
    """Something of which an outlier holds more or less than the median of the ordinary steps.

    Attributes:
        kind: `wait` (`data_loading`, `garbage_collection`, `compilation`, `allocator`, `synchronisation`), `part` of
            the step (`host forward`), `operator` (its self time on the host), or `kernel`.
        shapes: input shapes of operators, and of those that launched a kernel.
        calls, usual_calls: of operators and kernels, else null.
    """

    kind: OutlierKind
    name: str
    shapes: str
    time_ns: int
    usual_ns: int
    calls: int | None
    usual_calls: int | None


class Outlier(Model, frozen=True):
    """An unusual step, and what is different about it.

    Attributes:
        step: its position in the steps.
        causes: the largest of each kind; they overlap, so their times do not add up.
        text: the same in a sentence.
    """

    step: int
    name: str
    duration_ns: int
    median_ns: int
    causes: list[OutlierCause]
    text: str


class Breakdown(Model, frozen=True):
    """Interval unions over the whole profile, in ns; null if the recording does not show them.

    `wall_ns` is first start to last end of all complete events except the profiler's own span. Busy time and
    communication are per device, averaged over several.
    """

    wall_ns: int
    data_loading_ns: int
    host_to_device_ns: int | None
    device_to_host_ns: int | None
    communication_ns: int | None
    communication_exposed_ns: int | None
    compute_ns: int | None
    device_busy_ns: int | None
    device_idle_ns: int | None
    idle_by_cause_ns: dict[str, int] | None = None


class LanePart(Model, frozen=True):
    """Time of one part of a step: on average over the steps, and in each of them."""

    part: Part
    mean_ns: int
    steps_ns: list[int]


class Lane(Model, frozen=True):
    """The steps of one device, or of the host without a device, cut into parts.

    In each step the parts add up to the step; time in which two things happened counts for the first of them.

    Attributes:
        lane: `cuda:0`, or `host`.
        parts: the parts that occur, in their order.
        communication_overlapped_ns: communication hidden behind compute, on average per step; it is inside other parts.
    """

    lane: str
    parts: list[LanePart]
    communication_overlapped_ns: int
