"""Tables and charts beside the report: operators, modules, memory and CPU work of one profile.

Times are totals over the whole profile in ns, unless they are per step; null if the recording does not show them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from tb_tidy_plugin.report.flame import Flame
from tb_tidy_plugin.report.generated import Generated
from tb_tidy_plugin.report.idle import IdleGaps
from tb_tidy_plugin.report.roofline import Roofline
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.words.causes import Kind
from tb_tidy_plugin.words.vocabulary import KernelKind, KnownBy, MemoryKind, TotalBasis

OperatorGroup: TypeAlias = Literal["name", "shape", "line", "module"]
CallKind: TypeAlias = Literal["operator", "annotation", "runtime", "mixed"]


class KernelRow(Model, frozen=True):
    """One kernel, copy or fill by name, as the calls of an operator row used it."""

    name: str
    kind: KernelKind
    calls: int
    total_ns: int
    tensor_cores: bool | None


class OperatorRow(Model, frozen=True):
    """Calls of operators that share name, name and shapes, source line, or module.

    Attributes:
        key: stable within its grouping; used in deep links.
        kind: of the calls: operators, annotations (`record_function`, steps), runtime calls (`cudaLaunchKernel`);
            `mixed` for groups by line and module, which hold operators and runtime calls.
        name: the operator; if a group holds several, the one with the most host self time.
        operators: number of distinct operators in the group.
        shapes: input shapes and dtypes as text, for groups by shape.
        file, line, function: the place, for groups by line; `line` as precise as the report's places.
        module: name of the module, for groups by module. Lines and modules have one more row, with an empty file or
            module, for all calls without a known one, so that every grouping adds up to the same self time.
        host_self_ns, device_self_ns: without calls inside.
        device_total_ns: durations of all launched work added up, as torch counts it.
        device_busy_ns: time in which at least one piece of that work ran.
        tensor_cores: null if no kernel ran or the names do not show it.
        roofline: least time that the known device needs for the work, as a share of the time taken.
        low_ns, median_ns, high_ns: 10th, 50th and 90th percentile of the CPU time of a call; groups by shape.
        slow_calls: calls far above the median, groups by shape. share_of_best: rate by the best of the same operator.
        kernels: the largest ones, at most eight.
        findings: ids of the findings whose matched events are among the calls.
        replayed_calls: calls of a graph's capture whose device work is that of its replays; they take no host time.
        known_by: the least certain way in which those are known; null without any.
        generated: for groups by line of code that `torch.compile` generated.
    """

    key: str
    name: str
    operators: int
    calls: int
    host_total_ns: int
    host_self_ns: int
    device_total_ns: int | None
    device_self_ns: int | None
    device_busy_ns: int | None
    tensor_cores: bool | None
    flops: int | None
    flops_per_second: float | None
    bytes_per_second: float | None
    roofline: float | None
    kernels: list[KernelRow]
    findings: list[str]
    shapes: str = ""
    file: str = ""
    line: int | None = None
    function: str = ""
    generated: Generated | None = None
    module: str = ""
    kind: CallKind = "operator"
    low_ns: int | None = None
    median_ns: int | None = None
    high_ns: int | None = None
    longest_ns: int | None = None
    slow_calls: int | None = None
    share_of_best: float | None = None
    replayed_calls: int = 0
    known_by: KnownBy | None = None


class DeviceKernelRow(Model, frozen=True):
    """Kernels, copies or fills with one name that one operator launched.

    Attributes:
        key: stable; used in deep links.
        family: by the operator, else by the kernel's name. operator: empty if unknown.
        total_ns: durations, added up. share: of all device work. mean_ns: of one.
        flops_per_second, bytes_per_second: of the operators whose longest kernel it is, over all of their device work;
            null if their work is unknown, or if a rate exceeds what the device can do.
        roofline: least time that the known device needs for the work, as a share of the time taken; at most 1.
        tensor_cores: null if the name does not show it.
        replayed: number of them that a replayed graph launched, with an operator known from its capture.
        known_by: the least certain way in which that is known; null without any.
    """

    key: str
    family: Kind
    operator: str
    name: str
    count: int
    total_ns: int
    share: float
    mean_ns: int
    flops_per_second: float | None
    bytes_per_second: float | None
    roofline: float | None
    tensor_cores: bool | None
    replayed: int
    known_by: KnownBy | None = None


class KernelFamilyRow(Model, frozen=True):
    """All device work of one family; rates are over the part `rated_share` of its time, for which the work is known.

    `label` is the family in words.
    """

    family: Kind
    label: str
    count: int
    total_ns: int
    share: float
    flops_per_second: float | None
    bytes_per_second: float | None
    roofline: float | None
    rated_share: float


class ModuleRow(Model, frozen=True):
    """One `nn.Module` at one place in the hierarchy, in pre-order.

    `parent` is the position of the module around it, null for roots; `last` that of the last module inside.
    `places` is the number of places in which the same object is called. `known_by` is the least certain way in which
    work of replayed graphs is attributed to it, null without any.

    `step_ns` is the module's part of the ledger's steps, in sum and with the modules inside: `step_forward_ns`,
    `step_backward_ns`, and the rest, such as Python between operators. `step_optimizer_ns` is null if it is not known:
    a recording does not say whose parameters an update changes, unless it runs inside a module. Times without `step`
    are totals of calls over the recording.
    """

    name: str
    class_name: str
    parent: int | None
    last: int
    depth: int
    calls: int
    places: int
    file: str
    line: int | None
    forward_ns: int
    forward_self_ns: int
    backward_ns: int
    backward_self_ns: int
    device_forward_ns: int | None
    device_backward_ns: int | None
    allocated_bytes: int | None
    known_by: KnownBy | None = None
    step_ns: int = 0
    step_forward_ns: int = 0
    step_backward_ns: int = 0
    step_optimizer_ns: int | None = None


class MemoryHolder(Model, frozen=True):
    """Memory of one kind that one operator, called from one place, holds at a device's peak.

    `stack` is the stack of the allocation in a memory snapshot, innermost frame first, at most thirty frames.
    """

    operator: str
    file: str
    line: int | None
    function: str
    allocations: int
    bytes: int
    kind: MemoryKind = "unknown"
    stack: list[str] = msgspec.field(default_factory=list)


class MemoryKindCurve(Model, frozen=True):
    """Bytes of one kind, one entry per time of `DeviceMemoryRow.kinds_ns`, and at the peak."""

    kind: MemoryKind
    bytes: list[int]
    peak_bytes: int


class MemoryStep(Model, frozen=True):
    """One device's memory in one step; `kept` allocations were made in the step and not freed in it."""

    step: str
    start_bytes: int
    peak_bytes: int
    end_bytes: int
    kept: int | None
    kept_bytes: int | None


class DeviceMemoryRow(Model, frozen=True):
    """One device's memory over time, thinned so that peaks stay; between two points the first one's value holds.

    Attributes:
        device: `cpu` or `cuda:0`. basis: the allocator's own figure, the running sum of events ("at least"), or the
            history in a memory snapshot, whose times count from its first action.
        other_bytes: part of the peak that was allocated before the recording.
        failures: allocations that failed for lack of memory.
        holders: what holds the peak, largest first, at most fifty.
        steps: per step, empty without steps.
        kinds: curves that add up to all allocated bytes, over `kinds_ns`; empty if addresses were not recorded.
    """

    device: str
    basis: TotalBasis
    time_ns: list[int]
    allocated_bytes: list[int]
    reserved_bytes: list[int] | None
    peak_ns: int
    peak_bytes: int
    peak_reserved_bytes: int | None
    other_bytes: int | None
    allocations: int
    holders: list[MemoryHolder]
    steps: list[MemoryStep]
    kinds_ns: list[int] = msgspec.field(default_factory=list)
    kinds: list[MemoryKindCurve] = msgspec.field(default_factory=list)
    failures: int = 0


class SlowCallRow(Model, frozen=True):
    """A call that took far longer than its like. `contended`: other threads ran operators, and it was not the first."""

    operator: str
    shapes: str
    start_ns: int
    own_ns: int
    median_ns: int
    threads: int
    contended: bool
    step: str | None
    file: str
    line: int | None


class FrameRow(Model, frozen=True):
    """One Python function and the time in it but in nothing that it calls: Python between operators."""

    file: str
    line: int
    function: str
    own_code: bool
    calls: int
    self_ns: int


class CpuFigures(Model, frozen=True):
    """Work of the CPU.

    Attributes:
        threads: number of threads that ran operators. most_threads: at the same time. mean_threads: while any did.
        slow_calls: by time lost, at most two hundred.
        frames: by self time, at most two hundred; null without stacks.
    """

    threads: int
    most_threads: int
    mean_threads: float
    slow_calls: list[SlowCallRow]
    frames: list[FrameRow] | None


class Figures(Model, frozen=True):
    """All tables of one profile. `operators` has one list per grouping that the recording allows.

    `left_out` has the number of rows with less host time that are not listed, for groupings with too many.
    `families` and `kernels` are the device's work, most time first; `kernels` has at most 20,000 rows. `missing` names
    the option that records each absent table of `name`, `shape`, `line`, `module`, `modules`, `memory`.
    """

    operators: dict[OperatorGroup, list[OperatorRow]]
    left_out: dict[OperatorGroup, int]
    modules: list[ModuleRow]
    memory: list[DeviceMemoryRow]
    cpu: CpuFigures
    flame: Flame
    roofline: Roofline
    idle: IdleGaps
    missing: dict[str, str]
    families: list[KernelFamilyRow] = msgspec.field(default_factory=list)
    kernels: list[DeviceKernelRow] = msgspec.field(default_factory=list)
