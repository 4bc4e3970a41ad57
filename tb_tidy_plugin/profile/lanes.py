"""Time of a profile by part: unions over host threads and device streams, and steps cut into parts.

A step is cut by layers: each part takes what it covers of the time that earlier parts left. So the parts of a step add
up to the step exactly, and time in which two things happened counts for the first of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.profile.intervals import Intervals, positions_of_each
from tb_tidy_plugin.profile.kernels import KERNEL_KINDS, kernel_kind
from tb_tidy_plugin.profile.steps import LOADER_NEXT, ProfileSteps
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, HOST_TREE, Category, EventTable, Mask, Rows, Times
from tb_tidy_plugin.trace.links import launches
from tb_tidy_plugin.trace.sets import distinct
from tb_tidy_plugin.vocabulary import DevicePart, KernelKind, Part

TO_DEVICE = re.compile(r"HtoD|HostToDevice", re.IGNORECASE)
TO_HOST = re.compile(r"DtoH|DeviceToHost", re.IGNORECASE)
TO_PAGEABLE = re.compile(r"(?:DtoH|DeviceToHost).{0,100}Pageable", re.IGNORECASE)
SYNCHRONISATION = re.compile(
    r"(cuda|hip|cu)(Stream|Device|Event|Ctx)Synchronize|^(cuda|hip)Memcpy$|^hipMemcpyWithStream|Memcpy.{0,100}Sync$"
)
"""Runtime calls that return only when the device has caught up; ROCm copies and waits in one call."""
COMMUNICATION_WAIT = re.compile(
    r"^(c10d::|gloo:|nccl:|mpi:)|record_param_comms|wait_tensor|distributed_c10d.{0,100}: (barrier|wait)"
)
GARBAGE_COLLECTION = re.compile(r"^Python GC")
COMPILATION = re.compile(
    r"torch/_dynamo/convert_frame\.py|torch/_inductor/compile_fx\.py|entire_frame_compile|backend_compile|_compile\.compile_inner"
)
OPTIMIZER = re.compile(r"^Optimizer\.")
BACKWARD = re.compile(
    r"^autograd::engine::evaluate_function|torch/_tensor\.py\(\d+\): backward|^CompiledFunctionBackward"
)


class TimeSpent(msgspec.Struct, frozen=True):
    """Unions over the whole profile, in ns; device figures are averages over devices, None without device work."""

    wall_ns: int
    data_loading_ns: int
    host_to_device_ns: int | None = None
    device_to_host_ns: int | None = None
    communication_ns: int | None = None
    communication_exposed_ns: int | None = None
    compute_ns: int | None = None
    device_busy_ns: int | None = None
    device_idle_ns: int | None = None


class LaneParts(msgspec.Struct, frozen=True):
    """Each step of one lane, cut into parts that add up to it.

    Attributes:
        device: number of the device, None for the host of a profile without devices.
        parts: per part its time in each step, in ns; in the order of the layers, without parts that never occur.
        communication_overlapped_ns: communication behind compute, per step; already inside other parts.
    """

    device: int | None
    parts: Mapping[Part, Times]
    communication_overlapped_ns: Times


def time_spent(table: EventTable) -> TimeSpent:
    """Time of the whole profile by part.

    Wall time is the first start to the last end of everything recorded. Communication is exposed while no other kernel
    runs on the same device.
    """
    wall_ns = int(table.end_ns.max(initial=0) - table.start_ns.min(initial=0)) if len(table) else 0
    data_loading_ns = covered(table, _host(table, LOADER_NEXT, Category.ANNOTATION)).total_ns
    devices = devices_of(table)
    if not devices:
        return TimeSpent(wall_ns, data_loading_ns)
    whole = _Whole(table)
    per_device = [_device_time(_DeviceLayers(whole, device)) for device in devices]
    means = [round(sum(times) / len(devices)) for times in zip(*per_device, strict=True)]
    to_device_ns, to_host_ns, communication_ns, exposed_ns, compute_ns, busy_ns = means
    return TimeSpent(
        wall_ns=wall_ns,
        data_loading_ns=data_loading_ns,
        host_to_device_ns=to_device_ns,
        device_to_host_ns=to_host_ns,
        communication_ns=communication_ns,
        communication_exposed_ns=exposed_ns,
        compute_ns=compute_ns,
        device_busy_ns=busy_ns,
        device_idle_ns=wall_ns - busy_ns,
    )


def step_parts(table: EventTable, steps: ProfileSteps) -> tuple[LaneParts, ...]:
    """The parts of each step, one lane per device; one lane for the host without device work.

    A profile of a device alone has no steps: its whole time counts as one.
    """
    if steps.items:
        starts, ends = steps.starts, steps.ends
    else:
        starts, ends = table.start_ns.min(initial=0)[None], table.end_ns.max(initial=0)[None]
    devices, whole = devices_of(table), _Whole(table)
    if not devices:
        return (_cut(None, list(_host_layers(table)), starts, ends, Intervals.none()),)
    return tuple(_device_lane(whole, device, starts, ends) for device in devices)


def idle_parts(table: EventTable, device: int) -> dict[DevicePart, Intervals]:
    """Idle spans of `device` by cause, over the whole profile; no two parts overlap.

    They lie between the first and the last event of the profile, and are those of `step_parts`.
    """
    busy = covered(table, table.is_category(DEVICE_WORK) & (table.device == device))
    return dict(_taken(_recorded_time(table).minus(busy), _idle_layers(_Whole(table), busy)))


def _recorded_time(table: EventTable) -> Intervals:
    """Time from the first start to the last end of everything recorded."""
    return Intervals.union(table.start_ns.min(initial=0)[None], table.end_ns.max(initial=0)[None])


def _taken(left: Intervals, layers: Iterable[tuple[DevicePart, Intervals]]) -> Iterator[tuple[DevicePart, Intervals]]:
    """Takes from `left` what each layer covers; the unknown part takes all of it."""
    for part, layer in layers:
        yield part, left.intersection(layer) if part != "idle_unknown" else left
        left = left.minus(layer)


def devices_of(table: EventTable) -> list[int]:
    """The devices with any work."""
    devices: list[int] = distinct(table.device[table.is_category(DEVICE_WORK)]).tolist()
    return devices


def _device_lane(whole: _Whole, device: int, starts: Times, ends: Times) -> LaneParts:
    work = _DeviceLayers(whole, device)
    layers = [*work.layers(), *_idle_layers(whole, work.busy)]
    return _cut(device, layers, starts, ends, work.communication.intersection(work.compute))


def _cut(
    device: int | None, layers: Sequence[tuple[Part, Intervals]], starts: Times, ends: Times, overlapped: Intervals
) -> LaneParts:
    """Cuts steps by layers: each takes what it covers of what is left; the last one takes the rest."""
    left = Intervals.union(starts, ends)
    taken: dict[Part, Times] = {}
    remaining = ends - starts
    for part, layer in layers[:-1]:
        mine = left.intersection(layer)
        taken[part] = mine.within(starts, ends)
        remaining = remaining - taken[part]
        left = left.minus(layer)
    taken[layers[-1][0]] = remaining
    return LaneParts(
        device=device,
        parts={part: times for part, times in taken.items() if times.any()},
        communication_overlapped_ns=overlapped.within(starts, ends),
    )


class _Whole:
    """Data shared by all devices of a table: their work, and the host's activity. Computed once."""

    def __init__(self, table: EventTable) -> None:
        self.table = table

    @cached_property
    def work(self) -> dict[int, Rows]:
        """The rows of each device's work."""
        rows = np.flatnonzero(self.table.is_category(DEVICE_WORK))
        device = self.table.device[rows]
        return {int(device[here[0]]): rows[here] for here in positions_of_each(device)}

    @cached_property
    def kinds(self) -> NDArray[np.int8]:
        return np.array([KERNEL_KINDS.index(kernel_kind(name)) for name in self.table.names], np.int8)

    def names(self, pattern: re.Pattern[str]) -> Mask:
        """Mask of the names that the pattern matches."""
        return np.array([pattern.search(name) is not None for name in self.table.names], np.bool_)

    @cached_property
    def to_device(self) -> Mask:
        """Mask of names of copies to a device."""
        return self.names(TO_DEVICE)

    @cached_property
    def to_host(self) -> Mask:
        """Mask of names of copies from a device."""
        return self.names(TO_HOST)

    @cached_property
    def before_waits(self) -> tuple[tuple[DevicePart, Intervals], ...]:
        """Host activity that leaves a device idle, most specific first, except waiting for the device."""
        table = self.table
        return (
            ("idle_data_loading", covered(table, _host(table, LOADER_NEXT, Category.ANNOTATION))),
            ("idle_compilation", covered(table, _host(table, COMPILATION, *HOST_TREE))),
            ("idle_garbage_collection", covered(table, _host(table, GARBAGE_COLLECTION, *Category))),
            ("idle_communication_wait", covered(table, _host(table, COMMUNICATION_WAIT, *HOST_TREE))),
        )

    @cached_property
    def waits(self) -> Intervals:
        """Spans in which the host waits for a device."""
        return covered(self.table, _host(self.table, SYNCHRONISATION, Category.RUNTIME))

    @cached_property
    def read_back(self) -> tuple[Times, Times]:
        """End of each copy to pageable memory, and the time for which its call held the host."""
        table = self.table
        copies = np.flatnonzero((table.category == Category.COPY) & table.is_named(TO_PAGEABLE.search))
        calls = launches(table)[copies] if len(copies) else copies
        known = calls != ABSENT
        return table.end_ns[copies[known]], table.durations_of(calls[known])

    @cached_property
    def works(self) -> Intervals:
        """Spans in which the host does anything."""
        return covered(self.table, self.table.is_category((*HOST_TREE, Category.RUNTIME)))


class _DeviceLayers:
    """The work of one device as sets of time."""

    def __init__(self, whole: _Whole, device: int) -> None:
        self._table = table = whole.table
        here = whole.work.get(device, np.empty(0, np.int64))
        self._kernels = here[table.category[here] == Category.KERNEL]
        self._kind = whole.kinds[table.name[self._kernels]]
        copies = here[table.category[here] == Category.COPY]
        self.busy = covered(table, here)
        self.communication = self.kernels("communication")
        self.compute = covered(table, self._kernels[self._kind != KERNEL_KINDS.index("communication")])
        self.to_device = covered(table, copies[whole.to_device[table.name[copies]]])
        self.to_host = covered(table, copies[whole.to_host[table.name[copies]]])

    def kernels(self, kind: KernelKind) -> Intervals:
        """Time in which kernels of this kind run."""
        return covered(self._table, self._kernels[self._kind == KERNEL_KINDS.index(kind)])

    def layers(self) -> Iterator[tuple[DevicePart, Intervals]]:
        """The device's activity, most specific first."""
        yield "matrix", self.kernels("matrix")
        yield "attention", self.kernels("attention")
        yield "convolution", self.kernels("convolution")
        yield "normalisation", self.kernels("normalisation")
        yield "reduction", self.kernels("reduction")
        yield "elementwise", self.kernels("elementwise")
        yield "optimizer", self.kernels("optimizer")
        yield "other_compute", self.kernels("other")
        yield "communication_exposed", self.communication
        yield "host_to_device", self.to_device
        yield "device_to_host", self.to_host
        yield "device_copy", self.busy


def _device_time(work: _DeviceLayers) -> tuple[int, ...]:
    """Unions on one device: copies to it, copies from it, communication, the exposed part of that, compute, busy."""
    return (
        work.to_device.total_ns,
        work.to_host.total_ns,
        work.communication.total_ns,
        work.communication.total_ns - work.communication.overlap_ns(work.compute),
        work.compute.total_ns,
        work.busy.total_ns,
    )


def _idle_layers(whole: _Whole, busy: Intervals) -> Iterator[tuple[DevicePart, Intervals]]:
    """Reasons why a device is idle, by the host's activity meanwhile.

    A gap that begins while the host waits for the device is caused by the wait: the queue has run dry, and the host
    fills it again only after the wait. The same holds for the host's waits in a gap that began before. The rest is the
    host's own pace while it works, and unknown while it does nothing.
    """
    yield from whole.before_waits
    gap_starts, gap_ends = busy.ends[:-1], busy.starts[1:]
    drained = whole.waits.containing(gap_starts)
    waited = Intervals(gap_starts[drained], gap_ends[drained]).plus(whole.waits)
    yield "idle_synchronisation", waited.plus(_after_reads(whole, gap_starts, gap_ends))
    yield "idle_launch_bound", whole.works
    yield "idle_unknown", Intervals.none()


def _after_reads(whole: _Whole, gap_starts: Times, gap_ends: Times) -> Intervals:
    """The gaps that begin when a copy to pageable memory ends, up to the time for which its call held the host.

    CUDA waits for such a copy in the call that starts it, before `cudaStreamSynchronize` is called. Without the copy
    the host would have been ahead by no more than the duration of that call.
    """
    end_ns, held_ns = whole.read_back
    at = np.searchsorted(gap_starts, end_ns)
    begins = np.append(gap_starts, -1)[at] == end_ns
    at, held_ns = at[begins], held_ns[begins]
    return Intervals.union(gap_starts[at], np.minimum(gap_ends[at], gap_starts[at] + held_ns))


def _host_layers(table: EventTable) -> Iterator[tuple[Part, Intervals]]:
    """Host activity in a profile without devices. Backward work counts wherever the autograd engine runs it."""
    yield "data_loading", covered(table, _host(table, LOADER_NEXT, Category.ANNOTATION))
    yield "communication", covered(table, _host(table, COMMUNICATION_WAIT, *HOST_TREE))
    yield "optimizer", covered(table, _host(table, OPTIMIZER, Category.ANNOTATION))
    yield "backward", covered(table, _host(table, BACKWARD, *HOST_TREE))
    yield "forward", covered(table, table.category == Category.OPERATOR)
    has_stacks = bool((table.category == Category.PYTHON).any())
    if has_stacks:
        yield "python", covered(table, table.category == Category.PYTHON)
    yield "other" if has_stacks else "python", Intervals.none()


def collective_kernels(table: EventTable) -> Rows:
    """Rows of kernels with the name of a communication kernel (NCCL, RCCL, vendor all-reduce), in row order."""
    kernels = np.flatnonzero(table.category == Category.KERNEL)
    collective = np.zeros(len(table.names), np.bool_)
    for name in distinct(table.name[kernels]).tolist():
        collective[name] = kernel_kind(table.names[name]) == "communication"
    return kernels[collective[table.name[kernels]]]


def covered(table: EventTable, rows: Mask | Rows) -> Intervals:
    """The time that `rows` cover together."""
    return Intervals.union(table.start_ns[rows], table.end_ns[rows])


def _host(table: EventTable, pattern: re.Pattern[str], *categories: Category) -> Mask:
    return table.is_category(categories) & table.is_named(pattern.search)
