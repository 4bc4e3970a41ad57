"""Steps in the report: their durations, and which of them are unusual."""

from __future__ import annotations

from typing import Literal, TypeAlias

from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.words.vocabulary import Oddity, StepBasis

OutlierKind: TypeAlias = Literal["wait", "entry", "operator", "kernel"]


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
        kind: `wait` (`data_loading`, `garbage_collection`, `compilation`, `allocator`, `synchronisation`), `entry` of
            the ledger (by its title), `operator` (its self time on the host), or `kernel`.
        title: the name in words.
        shapes: input shapes of operators, and of those that launched a kernel.
        calls, usual_calls: of operators and kernels, else null.
    """

    kind: OutlierKind
    name: str
    title: str
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
