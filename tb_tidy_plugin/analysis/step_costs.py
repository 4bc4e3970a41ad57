"""Operators, kernels, waits and findings of each step of a profile.

The report's own figures are sums and means over all steps. Comparing steps, and explaining what one step has that the
others have not, needs figures per step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.analysis.findings import TracedFinding, lost_by
from tb_tidy_plugin.analysis.operator_rows import shapes_text
from tb_tidy_plugin.estimate.saving import intervals_of
from tb_tidy_plugin.profile.events.inputs import NOT_A_TENSOR, TORCH_DTYPES, Inputs, flat_shapes
from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps.steps import LOADER_NEXT
from tb_tidy_plugin.profile.work.flops import estimate
from tb_tidy_plugin.report.left_out import LeftOutFinding
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.rulekit import Match
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.event_names import COMPILATION, GARBAGE_COLLECTION, SYNCHRONISATION
from tb_tidy_plugin.trace.columns import ABSENT, HOST_TREE, Category, Numbers, Rows, Times
from tb_tidy_plugin.trace.sets import distinct, numbered
from tb_tidy_plugin.words.vocabulary import KnownBy

WaitKind: TypeAlias = Literal["data_loading", "garbage_collection", "compilation", "allocator", "synchronisation"]

ALLOCATOR = re.compile(r"^(cuda|hip)(Malloc|Free)|^cuMem(Alloc|Free|Create|Map|Unmap|Release)")
"""Calls by which the caching allocator asks the driver for memory; they wait for the device."""

RECORDED = frozenset({"record_shapes", "with_stack", "profile_memory"})
"""Options visible in the recorded events: older traces have shapes and stacks without stating so."""

WAITS: tuple[tuple[WaitKind, re.Pattern[str], tuple[Category, ...]], ...] = (
    ("data_loading", LOADER_NEXT, (Category.ANNOTATION,)),
    ("garbage_collection", GARBAGE_COLLECTION, tuple(Category)),
    ("compilation", COMPILATION, HOST_TREE),
    ("allocator", ALLOCATOR, (Category.RUNTIME,)),
    ("synchronisation", SYNCHRONISATION, (Category.RUNTIME,)),
)


PRODUCT_OPERATORS = aten.names(
    "product",
    """
    _scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward
    _scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward
    _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward
    _scaled_mm _scaled_mm_v2 addmm addmv baddbmm bmm convolution convolution_backward mm mv
    """,
)
"""Operators that do nearly all operations of a model; none of them calls another one."""


class CallCosts(Model, frozen=True):
    """One operator with one set of inputs, or one kernel launched by such an operator: one entry per step with any.

    Attributes:
        shapes: input shapes and dtypes as text; empty if they were not recorded.
        step: positions in the report's steps, ascending.
        calls: number of calls in each of them.
        host_ns: self time of the calls; 0 for kernels.
        device_ns: time of the device work that the calls launched themselves; of a kernel, its own.
        known_by: the least certain way in which calls of replayed graphs are known; None without any.
        flops: estimated operations of one call of one of `PRODUCT_OPERATORS`; None for others, and if unknown.
    """

    name: str
    shapes: str
    step: list[int]
    calls: list[int]
    host_ns: list[int]
    device_ns: list[int]
    known_by: KnownBy | None = None
    flops: int | None = None


class StepCosts(Model, frozen=True):
    """The content of each step. A profile without steps counts as one.

    Attributes:
        operators, kernels: most time over all steps first. Kernels belong to the step that launched them.
        findings: cost in ns in each step, by the finding's id.
        waits: the host's time in such calls in each step, by kind; kinds that never occur are left out.
        options: the profiler's options, besides those in `ProfileReport.recorded`.
        left_out: findings that the report leaves out.
    """

    operators: list[CallCosts]
    kernels: list[CallCosts]
    findings: dict[str, list[int]]
    waits: dict[WaitKind, list[int]]
    options: list[str]
    left_out: list[LeftOutFinding] = msgspec.field(default_factory=list)


def step_costs_of(profile: Profile) -> StepCosts:
    """The costs of a profile, step by step, without findings."""
    return StepCosts(
        operators=_operators(profile),
        kernels=_kernels(profile),
        findings={},
        waits=_waits(profile, _windows(profile)),
        options=sorted(profile.metadata.options - RECORDED),
    )


def with_costs_of_findings(costs: StepCosts, profile: Profile, traced: Sequence[TracedFinding]) -> StepCosts:
    """The same `costs` of a profile with those of its findings."""
    windows = _windows(profile)
    findings = {each.finding.id: _cost_ns(profile, each.rows, each.fix.lost, windows).tolist() for each in traced}
    return msgspec.structs.replace(costs, findings=findings)


def costs_of_matches(profile: Profile, matches: Sequence[Match]) -> Times:
    """Cost in ns of matches in each step, counted as in `cost_ns_of`."""
    rows = distinct(np.array([row for match in matches for row in match.events], np.int64))
    return _cost_ns(profile, rows, lost_by(matches), _windows(profile))


class _Windows(msgspec.Struct, frozen=True):
    starts: Times
    ends: Times


def _windows(profile: Profile) -> _Windows:
    """The steps; the whole profile if there are none."""
    steps, table = profile.steps, profile.table
    if steps.items:
        return _Windows(steps.starts, steps.ends)
    return _Windows(table.start_ns.min(initial=0)[None], table.end_ns.max(initial=0)[None])


def _step_of(profile: Profile, rows: Rows) -> Numbers:
    return profile.step_of(rows).astype(np.int32) if profile.steps.items else np.zeros(len(rows), np.int32)


def _cost_ns(profile: Profile, rows: Rows, lost: Sequence[tuple[int, int]] | None, windows: _Windows) -> Times:
    """Cost in ns of a finding's events in each step, or of the spans that it loses."""
    if lost is not None:
        return intervals_of(lost).within(windows.starts, windows.ends)
    step = _step_of(profile, rows)
    return _covered_per_step(profile, rows[step != ABSENT], step[step != ABSENT], len(windows.starts))


def _covered_per_step(profile: Profile, rows: Rows, step: Numbers, count: int) -> Times:
    """Time that the rows of each step cover together; steps are laid end to end, so that they do not overlap."""
    table = profile.table
    length_ns = int(table.end_ns.max(initial=0)) + 1
    base = step.astype(np.int64) * length_ns
    starts = np.arange(count, dtype=np.int64) * length_ns
    together = Intervals.union(table.start_ns[rows] + base, table.end_ns[rows] + base)
    return together.within(starts, starts + length_ns)


def _waits(profile: Profile, windows: _Windows) -> dict[WaitKind, list[int]]:
    found = dict[WaitKind, list[int]]()
    for kind, pattern, categories in WAITS:
        rows = profile.matching(pattern.pattern, *categories)
        times = profile.covered(rows).within(windows.starts, windows.ends)
        if times.any():
            found[kind] = times.tolist()
    return found


class _Entries(msgspec.Struct, frozen=True):
    """Calls or pieces of device work, one entry each in every array.

    Attributes:
        name: number of the name in `names`.
        call: position in `Profile.nested` of the call whose inputs distinguish entries with the same name.
    """

    names: Sequence[str]
    name: Numbers
    call: Rows
    step: Numbers
    host_ns: Times
    device_ns: Times


def _operators(profile: Profile) -> list[CallCosts]:
    rows, operators = profile.nested.rows, profile.operators
    step = _step_of(profile, rows)
    at = np.flatnonzero((profile.table.category[rows] == Category.OPERATOR) & (step != ABSENT))
    names, name = profile.plain_names, profile.plain_number(rows[at])
    return _grouped(
        profile, _Entries(names, name, at, step[at], operators.host_self_ns[at], operators.device_self_ns[at])
    )


def _kernels(profile: Profile) -> list[CallCosts]:
    operators = profile.operators
    step = _step_of(profile, profile.nested.rows[operators.work_call])
    work = np.flatnonzero(step != ABSENT)
    call, name = operators.work_call[work], operators.work_name[work].astype(np.int32)
    device_ns = (operators.work_end_ns - operators.work_start_ns)[work]
    return _grouped(
        profile, _Entries(profile.table.names, name, call, step[work], np.zeros(len(work), np.int64), device_ns)
    )


def _grouped(profile: Profile, entries: _Entries) -> list[CallCosts]:
    """The entries by name and inputs, summed by step."""
    if not len(entries.name):
        return []
    labels, label, inputs = _labelled(profile, entries)
    count = int(entries.step.max()) + 1
    cells, cell = numbered(label.astype(np.int64) * count + entries.step)
    sums = (_summed(values, cell, len(cells)) for values in (entries.host_ns, entries.device_ns))
    known_by = profile.replayed.least_by_group(profile.nested.rows[entries.call], label, len(labels))
    edges = np.searchsorted(cells, np.arange(len(labels) + 1) * count).tolist()
    columns = (cells % count, np.bincount(cell, minlength=len(cells)), *sums)
    steps, calls, host_ns, device_ns = (column.tolist() for column in columns)
    found = [
        CallCosts(
            name=name,
            shapes=shapes,
            step=steps[low:high],
            calls=calls[low:high],
            host_ns=host_ns[low:high],
            device_ns=device_ns[low:high],
            known_by=known,
            flops=_flops(name, profile.signatures.inputs[at]),
        )
        for (name, shapes), at, known, low, high in zip(labels, inputs, known_by, edges, edges[1:], strict=False)
    ]
    return sorted(found, key=lambda row: -max(sum(row.host_ns), sum(row.device_ns)))


def _flops(name: str, inputs: Inputs) -> int | None:
    found = estimate(name, inputs) if name in PRODUCT_OPERATORS else None
    return None if found is None else found.flops


def _labelled(profile: Profile, entries: _Entries) -> tuple[list[tuple[str, str]], Numbers, list[int]]:
    """Distinct pairs of name and inputs as text, the position of each entry's pair, and the inputs of one of each."""
    inputs = profile.signatures.inputs
    pairs, number = numbered(entries.name.astype(np.int64) * len(inputs) + profile.signatures.number[entries.call])
    texts = {at: inputs_text(inputs[at]) for at in distinct(pairs % len(inputs)).tolist()}
    labels: dict[tuple[str, str], int] = {}
    split = (divmod(pair, len(inputs)) for pair in pairs.tolist())
    of_pair = [labels.setdefault((entries.names[name], texts[at]), len(labels)) for name, at in split]
    of_label = dict(zip(reversed(of_pair), reversed((pairs % len(inputs)).tolist()), strict=True))
    return list(labels), np.array(of_pair, np.int32)[number], [of_label[at] for at in range(len(labels))]


def _summed(values: Times, number: Rows, count: int) -> Times:
    sums = np.zeros(count, np.int64)
    if values.any():  # a recording without a device has no device time
        np.add.at(sums, number, values)
    return sums


def inputs_text(inputs: Inputs) -> str:
    """Shapes and dtypes of the tensors among the inputs, as tables of operators show them."""
    shapes = flat_shapes(inputs)
    tensors = [
        dtype
        for shape, dtype in zip(shapes, inputs.dtypes, strict=False)
        if shape and dtype and dtype not in NOT_A_TENSOR
    ]
    return shapes_text(
        shapes, list(dict.fromkeys(TORCH_DTYPES.get(each, each.removeprefix("c10::")) for each in tensors))
    )
