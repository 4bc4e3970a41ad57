"""Operators: host and device time of each call and each group of calls, counted as in torch's `key_averages`.

Source of the rules: https://github.com/pytorch/pytorch/blob/v2.13.0/torch/autograd/profiler_util.py. Differences from
torch:

- device work belongs to the innermost operator whose launch lies in its time, or to the annotation around it without an
  operator. torch uses `External id`, which graph launches and many traces lack; where both are known they agree;
- the device's copy of an annotation (`gpu_user_annotation`) is not work: torch adds its time to the kernels' time;
- where calls on one thread overlap in part, the time between is subtracted from the call around them once, not twice;
- Python frames are not calls. With stacks torch counts them as calls, so the same program's operators have less self
  time than without.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.nesting import Nesting
from tb_tidy_plugin.profile.kernels import kernel_kind, uses_tensor_cores
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category, EventTable, Mask, Numbers, Rows, Times, repeated
from tb_tidy_plugin.trace.sets import distinct, first_of_each, numbered
from tb_tidy_plugin.words.vocabulary import KernelKind

TENSOR_CORES, OTHER_CORES, UNKNOWN_CORES, NO_KERNEL = range(4)
"""Units that a piece of device work runs on."""

MOST_AROUND = 100
"""Most calls around a launch that its work counts for; recordings have up to 14."""


class Operators(msgspec.Struct, frozen=True):
    """Every operator, annotation and runtime call, by position in `nested`.

    Attributes:
        table: the profile's events.
        nested: the calls and their nesting.
        host_self_ns: duration without the calls inside.
        device_total_ns: durations of the kernels, copies and fills that the call or any call inside it launched, added
            up, so that concurrent work counts several times, as in torch. device_self_ns: launched by the call itself.
        on_host: True if the call had no part in device work: it launched nothing, and made no runtime call. False for
            all if the profile holds device work with an unknown launch, since it may be any call's.
        work: rows of device work with a known cause. work_call: the call each one belongs to.
        work_start_ns, work_end_ns: when it ran.
        work_name: number of its name in `EventTable.names`.
        work_cores: `TENSOR_CORES`, `OTHER_CORES`, `UNKNOWN_CORES` by a kernel's name, `NO_KERNEL` for copies and fills.
    """

    table: EventTable
    nested: Nesting
    host_self_ns: Times
    device_total_ns: Times
    device_self_ns: Times
    on_host: Mask
    work: Rows
    work_call: Rows
    work_start_ns: Times
    work_end_ns: Times
    work_name: Numbers
    work_cores: Numbers

    @property
    def host_total_ns(self) -> Times:
        """The duration of each call."""
        rows = self.nested.rows
        return self.table.end_ns[rows] - self.table.start_ns[rows]


class OperatorTotals(msgspec.Struct, frozen=True):
    """Time of one group of calls over the whole profile.

    Attributes:
        group: its number in the given keys. first: position of its first call in `Profile.nested`.
        calls: number of calls.
        host_total_ns: their durations added up. host_self_ns: without calls inside.
        device_total_ns: durations of all that they launched, added up as in torch: concurrent work on several streams
            counts twice. device_self_ns: launched by no call inside.
        device_busy_ns: time in which at least one of those kernels, copies or fills ran.
        device_work: number of those.
        tensor_cores: True if one of the kernels runs on matrix units; None without kernels, and if no name shows that
            it does and some names show neither.
    """

    group: int
    first: int
    calls: int
    host_total_ns: int
    host_self_ns: int
    device_total_ns: int
    device_self_ns: int
    device_busy_ns: int
    device_work: int
    tensor_cores: bool | None


class KernelUse(msgspec.Struct, frozen=True):
    """One kernel, copy or fill by name, as some calls used it.

    Attributes:
        count: number of runs. total_ns: durations added up. longest_ns: the longest one.
        kind: by its name. tensor_cores: True if it runs on matrix units, None if its name does not show it, and for
            copies and fills.
    """

    name: str
    category: Category
    count: int
    total_ns: int
    longest_ns: int
    kind: KernelKind
    tensor_cores: bool | None


def operators_of(table: EventTable, nested: Nesting, launch: Rows, launched_by: Rows, replayed: Mask) -> Operators:
    """The calls of a profile with their times.

    Args:
        table: the profile's events.
        nested: its calls.
        launch: the runtime call that launched each row of device work, else `ABSENT`.
        launched_by: the host event that caused each row of device work, else `ABSENT`.
        replayed: mask of rows of device work that a graph launched; they have the cause that they had in its capture.
    """
    work = np.flatnonzero(table.is_category(DEVICE_WORK))
    call = _calls_that_launched(table, nested, np.where(replayed, ABSENT, launch)[work], launched_by[work])
    known = call != ABSENT
    is_runtime = table.category[nested.rows] == Category.RUNTIME
    if len(work):
        device_self = np.bincount(call[known], table.durations_of(work[known]), len(nested)).astype(np.int64)
        device_total = nested.sums(device_self)
        takes_part = np.bincount(call[known], minlength=len(nested)) + is_runtime
    else:
        device_self = device_total = repeated(0, len(nested))
        takes_part = is_runtime
    return Operators(
        table=table,
        nested=nested,
        host_self_ns=nested.self_ns,
        device_total_ns=device_total,
        device_self_ns=device_self,
        on_host=(nested.sums(takes_part) == 0) & bool(known.all()),
        work=work[known],
        work_call=call[known],
        work_start_ns=table.start_ns[work[known]],
        work_end_ns=table.end_ns[work[known]],
        work_name=table.name[work[known]],
        work_cores=_cores(table, work[known]),
    )


def _calls_that_launched(table: EventTable, nested: Nesting, launch: Rows, launched_by: Rows) -> Rows:
    """Position of the call that each piece of device work belongs to, `ABSENT` if unknown."""
    parent, at = np.append(nested.parent, ABSENT), np.append(nested.at, ABSENT)
    call = np.where(launch != ABSENT, parent[at[launch]], at[launched_by])
    operator = nested.nearest(table.category[nested.rows] == Category.OPERATOR)
    operator = np.append(operator, ABSENT)[call]
    return np.where(operator != ABSENT, operator, call)


def totals(operators: Operators, keys: Rows, *, outermost: bool = False) -> list[OperatorTotals]:
    """Times of groups of calls, in order of the groups' numbers.

    Args:
        operators: all calls.
        keys: number of each call's group, `ABSENT` for calls that are not counted.
        outermost: count only calls with no call of their group around them. Without it, as in torch, a call inside
            another of its group adds its time to the totals again. Self times are those of all calls either way.
    """
    chosen = np.flatnonzero(keys != ABSENT)
    groups, number = numbered(keys[chosen])
    counted = operators.nested.outermost(chosen, number) if outermost else np.ones(len(chosen), np.bool_)
    calls, call_group = chosen[counted], number[counted]
    group_of_call = np.full(len(keys), ABSENT, np.int64)
    group_of_call[chosen] = number
    work_group, work = work_of_groups(operators, group_of_call)
    columns = (
        groups,
        chosen[first_of_each(number, len(groups))],
        _summed(np.ones(len(calls), np.int64), call_group, len(groups)),
        _summed(operators.host_total_ns[calls], call_group, len(groups)),
        _summed(operators.host_self_ns[chosen], number, len(groups)),
        _summed(operators.device_total_ns[calls], call_group, len(groups)),
        _summed(operators.device_self_ns[chosen], number, len(groups)),
        _busy(operators, work_group, work, len(groups)),
        _summed(np.ones(len(work), np.int64), work_group, len(groups)),
    )
    tensor_cores = _tensor_cores(operators.work_cores[work], work_group, len(groups))
    rows = zip(*(column.tolist() for column in columns), tensor_cores, strict=True)
    return [OperatorTotals(*row) for row in rows]


def kernels_of(table: EventTable, operators: Operators, calls: Mask) -> list[KernelUse]:
    """The kernels, copies and fills that `calls` or calls inside them launched, by name, longest total first.

    Args:
        table: the profile's events.
        operators: all calls.
        calls: mask of the wanted calls, one entry per call.
    """
    _, work = work_of_groups(operators, np.where(calls, 0, ABSENT))
    names, number = numbered(operators.work_name[work])
    duration_ns = operators.work_end_ns[work] - operators.work_start_ns[work]
    count, total_ns = np.bincount(number, minlength=len(names)), _summed(duration_ns, number, len(names))
    longest_ns, category = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    np.maximum.at(longest_ns, number, duration_ns)
    category[number] = table.category[operators.work[work]]
    order = np.argsort(-total_ns, kind="stable")
    columns = (column[order].tolist() for column in (names, category, count, total_ns, longest_ns))
    return [_kernel_use(table.names[name], *values) for name, *values in zip(*columns, strict=True)]


def _kernel_use(name: str, category: int, count: int, total_ns: int, longest_ns: int) -> KernelUse:
    kind: KernelKind = "other"
    tensor_cores = None
    if category == Category.KERNEL:
        kind, tensor_cores = kernel_kind(name), uses_tensor_cores(name)
    return KernelUse(name, Category(category), count, total_ns, longest_ns, kind, tensor_cores)


def work_of_groups(operators: Operators, group_of_call: Rows) -> tuple[Rows, Rows]:
    """Each group (of the launching call and the calls around it) with each piece of its device work, once.

    Of the calls around a launch, the `MOST_AROUND` innermost ones count.

    Returns:
        Group numbers and positions in `Operators.work`, sorted by group and start of the work.
    """
    parent = np.append(operators.nested.parent, ABSENT)
    work, call = np.arange(len(operators.work)), operators.work_call
    found = []
    for _ in range(MOST_AROUND):
        if not len(work):
            break
        group = group_of_call[call]
        found.append(group[group != ABSENT] * len(operators.work) + work[group != ABSENT])
        call = parent[call]
        work, call = work[call != ABSENT], call[call != ABSENT]
    pairs = distinct(np.concatenate(found)) if found else np.zeros(0, np.int64)
    group, work = np.divmod(pairs, max(len(operators.work), 1))
    order = np.lexsort((operators.work_start_ns[work], group))
    return group[order], work[order]


def _summed(values: Times, number: Rows, count: int) -> Times:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, number, values)
    return sums


def _busy(operators: Operators, group: Rows, work: Rows, count: int) -> Times:
    """Time that the work of each group covers; `group` and `work` are sorted by group and start."""
    starts, ends = operators.work_start_ns[work], operators.work_end_ns[work]
    base = group * (int(operators.work_end_ns.max(initial=0)) + 1)  # so that each group's times follow the last one's
    reach = np.concatenate([[0], np.maximum.accumulate(base + ends)])[: len(work)]
    return _summed(np.maximum(base + ends - np.maximum(base + starts, reach), 0), group, count)


def _tensor_cores(cores: Numbers, group: Rows, count: int) -> Iterator[bool | None]:
    """`OperatorTotals.tensor_cores` of each group."""
    kernels, unknown, used = (
        np.bincount(group[chosen], minlength=count).tolist()
        for chosen in (cores != NO_KERNEL, cores == UNKNOWN_CORES, cores == TENSOR_CORES)
    )
    for any_kernel, any_unknown, any_used in zip(kernels, unknown, used, strict=True):
        yield True if any_used else None if any_unknown or not any_kernel else False


def _cores(table: EventTable, work: Rows) -> Numbers:
    """The units that each piece of device work runs on, by its name."""
    answers = {True: TENSOR_CORES, False: OTHER_CORES, None: UNKNOWN_CORES}
    names, number = numbered(table.name[work])
    by_name = np.array([answers[uses_tensor_cores(table.names[name])] for name in names.tolist()], np.int32)
    cores = by_name[number] if len(work) else np.zeros(0, np.int32)
    return np.where(table.category[work] == Category.KERNEL, cores, np.int32(NO_KERNEL))
