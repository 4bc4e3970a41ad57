"""Collective operations of one rank: their kinds, their issuers, and the time that the rank only waits for them.

On devices a collective is a kernel (NCCL, RCCL, vendor all-reduce); on the CPU it is gloo's annotation, on a thread of
gloo's own. Both backends annotate with the tensors that are sent, `nccl:all_reduce` around the kernel's launch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.inputs import Inputs, tensor_bytes
from tb_tidy_plugin.profile.events.intervals import Intervals, covered, positions_of_each
from tb_tidy_plugin.profile.host.critical import clipped_to_steps, per_step
from tb_tidy_plugin.profile.kernels import collective_kernels
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows, Times
from tb_tidy_plugin.trace.sets import among, distinct

ON_HOST = re.compile(r"^(gloo|mpi|ucc):")
_ANNOTATED = re.compile(r"^(nccl|rccl|gloo|mpi|ucc|xccl|hccl):")
ISSUE = re.compile(r"^c10d::|^_c10d_functional::(?!wait)")
PARAMETERS = re.compile(r"^record_param_comms$")
WAITING_OPERATOR = re.compile(r"wait_tensor$")
WAITING_FRAME = re.compile(r"^<built-in method (wait|run_backward|synchronize)\b")
"""Calls in which Python waits: `Work.wait`, and the backward pass, at whose end DDP waits for its buckets."""

COLLECTIVE_KINDS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("all_reduce", r"all_?reduce"),
        ("all_gather", r"all_?gather"),
        ("reduce_scatter", r"reduce_?scatter"),
        ("all_to_all", r"all_?to_?all"),
        ("broadcast", r"broadcast"),
        ("barrier", r"barrier"),
        ("send_recv", r"send|recv|p2p"),
        ("reduce", r"reduce"),
        ("gather", r"gather"),
        ("scatter", r"scatter"),
    )
)
"""Names of collectives in `torch.distributed`, with the patterns that match annotations and kernels."""

UNKNOWN_KIND = "collective"


class _Parameters(msgspec.Struct):
    group: str = msgspec.field(name="Process Group Name", default="")


class Collectives(msgspec.Struct, frozen=True):
    """All collectives of a profile, in order of start; one entry per collective in each column.

    Attributes:
        rows: the kernel, or gloo's annotation.
        issue: the host event that issued it, `ABSENT` if unknown.
        kinds: `all_reduce`, `all_gather`, …; `collective` if the name does not show it.
        groups: name of the process group, empty if it was not recorded.
        sizes: bytes of the tensors that this rank sends, `ABSENT` if shapes were not recorded.
        exposed_ns: exposed time of each; time that two of them share counts for the earlier one.
        exposed: when a device, or without one the host, does nothing but communicate.
    """

    rows: Rows
    issue: Rows
    kinds: tuple[str, ...]
    groups: tuple[str, ...]
    sizes: Rows
    exposed_ns: Times
    exposed: Intervals


class ExposedKind(msgspec.Struct, frozen=True):
    """The exposed collectives of one kind that belong to steps.

    A collective is assumed to send for as long as the fastest equal one takes, at its end: the time before is waiting
    for a later rank. Equal collectives share process group and size; if sizes are unknown, their position in the step.

    Attributes:
        kind: as in `Collectives.kinds`.
        issue: the host event that issued the collective with the longest exposure; its row if that is unknown.
        steps: for each step with any, the rows of its collectives and the exposed spans in which they send.
        per_step: number of these collectives per step.
        bytes_per_step: bytes that this rank sends, None if not recorded.
        total_ns: their time per step; time that two share counts once.
        sending_ns, waiting_ns: exposed time per step, split into sending and waiting.
    """

    kind: str
    issue: int
    steps: tuple[tuple[Rows, tuple[tuple[int, int], ...]], ...]
    per_step: float
    bytes_per_step: int | None
    total_ns: int
    sending_ns: int
    waiting_ns: int


def exposed_collectives(profile: Profile) -> Iterator[ExposedKind]:
    """Exposed collectives, one value per kind.

    Leaves out kernels of unknown kind that were launched before the recording: nobody could act on them.
    """
    found = collectives_of(profile)
    step = profile.step_of(found.rows)
    kinds = np.array(found.kinds)
    known = (step != ABSENT) & ~((kinds == UNKNOWN_KIND) & (found.issue == ABSENT))
    exposed = clipped_to_steps(profile, found.exposed)
    for kind in dict.fromkeys(found.kinds):
        here = np.flatnonzero((kinds == kind) & known)
        if exposed.overlap_ns(profile.covered(found.rows[here])):
            yield _exposed_kind(profile, found, here, step[here], exposed)


def collectives_of(profile: Profile) -> Collectives:
    """The collectives on devices, or those of the host if no device has any."""
    table = profile.table
    rows = collective_kernels(table)
    if len(rows):
        exposed = _exposed_on_devices(profile, rows)
        annotation, issue = _launching(profile, rows), profile.launched_by[rows]
    else:
        rows = profile.matching(ON_HOST.pattern, Category.ANNOTATION)
        rows = rows[np.argsort(table.start_ns[rows], kind="stable")]
        exposed, annotation, issue = _exposed_on_host(profile, rows), rows, _issuing(profile, rows)
    order = np.argsort(table.start_ns[rows], kind="stable")
    rows, annotation, issue = rows[order], annotation[order], issue[order]
    ends = table.end_ns[rows]
    begins = np.maximum(table.start_ns[rows], np.maximum.accumulate(np.append(0, ends))[:-1])
    return Collectives(
        rows=rows,
        issue=issue,
        kinds=_kinds(profile, rows, annotation),
        groups=_groups(profile, issue),
        sizes=_sizes(profile, annotation),
        exposed_ns=np.maximum(exposed.within(begins, np.maximum(begins, ends)), 0),
        exposed=exposed,
    )


# Exposed time


def _exposed_on_devices(profile: Profile, rows: Rows) -> Intervals:
    """Spans in which a device runs only collectives."""
    table, found = profile.table, Intervals.none()
    kernels = table.category == Category.KERNEL
    kernels[rows] = False
    for device in distinct(table.device[rows]).tolist():
        mine = covered(table, rows[table.device[rows] == device])
        found = found.plus(mine.minus(covered(table, kernels & (table.device == device))))
    return found


def _exposed_on_host(profile: Profile, rows: Rows) -> Intervals:
    """Spans in which the training threads wait for a collective.

    Such a wait is a gap between operators in which a collective ends, since its end releases the waiting thread. If
    Python was recorded, the gap must also lie in a call that waits, so that Python's own work in it does not count.
    """
    table = profile.table
    theirs = among(table.thread, distinct(table.thread[rows]))
    operators = (table.category == Category.OPERATOR) & ~theirs
    work = covered(table, operators & ~table.is_named(WAITING_OPERATOR.search))
    if not len(rows) or not len(work.starts):
        return Intervals.none()
    gaps = Intervals(work.ends, np.append(work.starts[1:], max(int(table.end_ns.max()), int(work.ends[-1]) + 1)))
    at = np.searchsorted(gaps.starts, table.end_ns[rows], side="right") - 1
    ended = distinct(at[(at >= 0) & (table.end_ns[rows] <= gaps.ends[at])])
    waits = Intervals(gaps.starts[ended], gaps.ends[ended]).intersection(covered(table, rows))
    python = table.category == Category.PYTHON
    if not python.any():
        return waits
    return waits.intersection(covered(table, python & table.is_named(WAITING_FRAME.search)))


def _exposed_kind(profile: Profile, found: Collectives, here: Rows, step: Rows, exposed: Intervals) -> ExposedKind:
    longest = here[np.argmax(found.exposed_ns[here])]
    rows, sizes = found.rows[here], found.sizes[here]
    ends, steps = profile.table.end_ns[rows], len(profile.steps.items)
    sent = exposed.intersection(Intervals.union(ends - _fastest_ns(profile, found, here, step), ends))
    waited = exposed.intersection(profile.covered(rows)).minus(sent)
    return ExposedKind(
        kind=found.kinds[longest],
        issue=int(found.rows[longest] if found.issue[longest] == ABSENT else found.issue[longest]),
        steps=tuple(_sent_in_step(profile, sent, rows[ours]) for ours in positions_of_each(step)),
        per_step=len(here) / steps,
        bytes_per_step=None if (sizes == ABSENT).any() else round(int(sizes.sum()) / steps),
        total_ns=profile.per_step_ns(rows),
        sending_ns=per_step(profile, sent),
        waiting_ns=per_step(profile, waited),
    )


def _sent_in_step(profile: Profile, sent: Intervals, rows: Rows) -> tuple[Rows, tuple[tuple[int, int], ...]]:
    mine = sent.intersection(profile.covered(rows))
    return rows, tuple(zip(mine.starts.tolist(), mine.ends.tolist(), strict=True))


def _fastest_ns(profile: Profile, found: Collectives, here: Rows, step: Rows) -> Times:
    """Duration of the fastest equal collective, for each collective."""
    first = np.append(0, np.flatnonzero(np.diff(step)) + 1)
    position = np.arange(len(step)) - first[np.searchsorted(first, np.arange(len(step)), side="right") - 1]
    sized = found.sizes[here] != ABSENT
    which = np.where(sized, found.sizes[here], position).tolist()
    keys = list(zip([found.groups[at] for at in here.tolist()], sized.tolist(), which, strict=True))
    durations = profile.table.durations_of(found.rows[here])
    fastest: dict[tuple[str, bool, int], int] = {}
    for key, duration in zip(keys, durations.tolist(), strict=True):
        fastest[key] = min(fastest.get(key, duration), duration)
    return np.array([fastest[key] for key in keys], np.int64)


# Properties of each collective


def _launching(profile: Profile, rows: Rows) -> Rows:
    """The backend's annotation of each kernel: around its launch, else its copy on the device, else `ABSENT`."""
    table = profile.table
    annotated = table.is_named(_ANNOTATED.search)
    cause = profile.launched_by[rows]
    on_device = np.flatnonzero(annotated & (table.category == Category.DEVICE_ANNOTATION))
    copies = profile.covering(rows, on_device) if len(on_device) else np.full(len(rows), ABSENT)
    return np.where((cause != ABSENT) & annotated[cause], cause, copies)


def _issuing(profile: Profile, rows: Rows) -> Rows:
    """The operator that issued each of gloo's annotations: the last one begun before it that issued no other."""
    table = profile.table
    issues = profile.matching(ISSUE.pattern, Category.OPERATOR)
    issues = issues[np.argsort(table.start_ns[issues], kind="stable")]
    before = np.searchsorted(table.start_ns[issues], table.start_ns[rows], side="right") - 1
    found = np.where(before >= 0, np.append(issues, ABSENT)[before], ABSENT)
    if len(issues) == len(rows) and (table.start_ns[issues] <= table.start_ns[rows]).all():
        return issues  # a queue: first in, first out
    return found


def _kinds(profile: Profile, rows: Rows, annotation: Rows) -> tuple[str, ...]:
    table = profile.table
    number = table.name[np.where(annotation == ABSENT, rows, annotation)]
    kinds = {each: _kind(table.names[each]) for each in distinct(number).tolist()}
    return tuple(kinds[each] for each in number.tolist())


def _kind(name: str) -> str:
    return next((kind for kind, pattern in COLLECTIVE_KINDS if pattern.search(name)), UNKNOWN_KIND)


def _groups(profile: Profile, issue: Rows) -> tuple[str, ...]:
    """The process group, from the `record_param_comms` around the issuing event."""
    tree = profile.tree
    parameters = profile.table.is_named(PARAMETERS.search)[: tree.size]
    if not parameters.any() or not len(issue):
        return ("",) * len(issue)
    above = np.append(tree.nearest_ancestor(parameters), ABSENT)[issue]
    at = np.where((issue != ABSENT) & np.append(parameters, False)[issue], issue, above)
    known = np.flatnonzero(at != ABSENT)
    groups = [""] * len(issue)
    for place, entry in zip(known.tolist(), profile.table.args.decoded(at[known], _Parameters), strict=True):
        groups[place] = entry.group
    return tuple(groups)


def _sizes(profile: Profile, annotation: Rows) -> Rows:
    sizes = np.full(len(annotation), ABSENT, np.int64)
    known = np.flatnonzero(annotation != ABSENT)
    if "shapes" in profile.recorded:
        sizes[known] = [_bytes(inputs) for inputs in profile.inputs_of(annotation[known])]
    return sizes


def _bytes(inputs: Inputs) -> int:
    """Bytes of all tensors of the annotation."""
    shapes = [(inputs.shape(position), inputs.dtype(position)) for position in range(len(inputs.dims))]
    return sum(tensor_bytes(shape, dtype) or 0 for shape, dtype in shapes if shape) or ABSENT
