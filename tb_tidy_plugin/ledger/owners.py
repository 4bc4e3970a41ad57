"""Whose time a piece of the ledger is: operator, kernel, library function, own function, thread and annotation."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tb_tidy_plugin.ledger.causes import NUMBER, Segments
from tb_tidy_plugin.ledger.host import Host
from tb_tidy_plugin.ledger.kinds import kind_of_copy, kind_of_kernel, kind_on_cpu
from tb_tidy_plugin.ledger.model import KINDS, Cause, Function, Owner
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.sources.frames import COMMON_USER_NAMES, is_generated, parse_frame, place_of
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows

OF_DEVICE: frozenset[Cause] = frozenset({"compute", "communication", "copy"})
OF_QUEUE: frozenset[Cause] = frozenset(
    {
        "between_kernels", "inside_graph", "graph_start", "stream_wait", "copy_setup", "queued_unknown",
        "launch_latency", "unrecorded_launch",
    }
)  # fmt: skip
"""Idle time that is told by the work that follows."""

NUMBER_OF_KIND = {kind: number for number, kind in enumerate(KINDS)}
MOST_OUTWARD = 400
LONGEST_NAME = 300


@dataclass(frozen=True, slots=True)
class Names:
    """What is known of each segment, as positions in `Host.rows` (`operator`, `library`) and keys that group owners.

    Attributes:
        operator: of device work the innermost operator around its launch, of host time the outermost one.
        library: the nearest function outside PyTorch and the standard library.
        mark: position in `Host.marks.rows` of the innermost annotation, where nothing else is known.
        kind: position in `KINDS`, `ABSENT` where the cause has none.
        key: equal for segments of one owner.
    """

    operator: Rows
    library: Rows
    mark: Rows
    kind: Rows
    key: Rows


def names_of(profile: Profile, host: Host, segments: Segments) -> Names:
    """What the recording calls those whose time each segment is."""
    of_device, of_queue = _is_cause(segments, OF_DEVICE), _is_cause(segments, OF_QUEUE)
    by_work = of_device | of_queue
    operator = np.where(by_work, _launching_operators(profile, host, segments), ABSENT)
    library = np.full(len(segments.starts), ABSENT, np.int64)
    mark = library.copy()
    on_host = np.flatnonzero(~by_work)
    calls = segments.call[on_host]
    outermost = host.is_operator & (host.nearest(host.parent, host.is_operator) == ABSENT)
    operator[on_host] = host.nearest(calls, outermost)
    library[on_host] = host.nearest(calls, _is_library(host))
    kind = _kinds(profile, host, segments, operator, of_device)
    on_cpu = np.flatnonzero(segments.cause == NUMBER["cpu"])
    known = host.nearest(segments.call[on_cpu], _is_known(host))
    operator[on_cpu] = np.where(known == ABSENT, host.nearest(segments.call[on_cpu], host.is_operator), known)
    bare = np.flatnonzero(~by_work & (library == ABSENT) & (operator == ABSENT))
    for thread in np.unique(segments.thread[bare]).tolist():
        here = bare[segments.thread[bare] == thread]
        mark[here] = host.marks.innermost(thread, segments.starts[here])
    return Names(operator, library, mark, kind, _keys(profile, host, segments, by_work, operator, library, mark))


def _is_cause(segments: Segments, causes: frozenset[Cause]) -> Mask:
    return np.isin(segments.cause, [NUMBER[cause] for cause in causes])


def _launching_operators(profile: Profile, host: Host, segments: Segments) -> Rows:
    """The innermost operator around the launch of each segment's device work."""
    launch = np.append(np.where(profile.replayed.operator == ABSENT, profile.launch, ABSENT), ABSENT)[segments.work]
    at = host.at[launch]
    by_id = np.append(profile.launched_by, ABSENT)[segments.work]
    at = np.where((at == ABSENT) & (launch == ABSENT), host.at[by_id], at)
    return host.nearest(at, host.is_operator)


def _is_library(host: Host) -> Mask:
    """Which calls are Python functions outside PyTorch and the standard library."""
    table = host.table
    python = table.category[host.rows] == Category.PYTHON
    wanted = np.zeros(len(table.names), np.bool_)
    numbers = np.flatnonzero(np.bincount(table.name[host.rows[python]], minlength=len(table.names)))
    wanted[numbers] = [is_library_frame(table.names[number]) for number in numbers.tolist()]
    found: Mask = python & wanted[table.name[host.rows]]
    return found


@lru_cache(maxsize=1 << 16)
def is_library_frame(name: str) -> bool:
    """Whether a Python frame is of a function outside PyTorch, code that it generates and the standard library."""
    file, bracket, rest = name.partition("(")
    if not bracket or "): " not in rest or name.startswith(("<", "nn.Module: ")) or is_generated(file):
        return False
    path = file.replace("\\", "/")
    for folder in ("site-packages/", "dist-packages/"):
        _, found, inside = path.rpartition(folder)
        if found:
            return not inside.startswith("torch/")
    if "/lib/python3." in path or path.startswith("lib/python3."):
        return False
    top = path.split("/", 1)[0].removesuffix(".py")
    return top != "torch" and (top not in sys.stdlib_module_names or top in COMMON_USER_NAMES)


def _is_known(host: Host) -> Mask:
    """Which calls are operators whose name says what they do."""
    table = host.table
    numbers = np.flatnonzero(np.bincount(table.name[host.rows[host.is_operator]], minlength=len(table.names)))
    wanted = np.zeros(len(table.names), np.bool_)
    wanted[numbers] = [kind_on_cpu(table.names[number]) is not None for number in numbers.tolist()]
    return host.is_operator & wanted[table.name[host.rows]]


def _kinds(profile: Profile, host: Host, segments: Segments, operator: Rows, of_device: Mask) -> Rows:
    table = profile.table
    kind = np.full(len(segments.starts), ABSENT, np.int64)
    here = np.flatnonzero(of_device & (segments.cause != NUMBER["communication"]))
    kernel = table.name[segments.work[here]].astype(np.int64)
    category = table.category[segments.work[here]].astype(np.int64)
    code = ((host.names(operator[here]).astype(np.int64) + 1) * len(table.names) + kernel) * 16 + category
    codes, number = np.unique(code, return_inverse=True)
    found = []
    for each in codes.tolist():
        (above, name), what = divmod(each // 16, len(table.names)), each % 16
        text = table.names[name]
        if what == Category.KERNEL:
            found.append(NUMBER_OF_KIND[kind_of_kernel(table.names[above - 1] if above else "", text)])
        else:
            found.append(NUMBER_OF_KIND[kind_of_copy(what, text)])
    kind[here] = np.array(found, np.int64)[number.reshape(-1)] if found else ABSENT
    on_cpu = np.flatnonzero(segments.cause == NUMBER["cpu"])
    if len(on_cpu):
        any_operator = host.nearest(segments.call[on_cpu], host.is_operator)
        name = host.names(host.nearest(segments.call[on_cpu], _is_known(host)))
        by_name = {number: kind_on_cpu(table.names[number]) for number in np.unique(name[name >= 0]).tolist()}
        known = [NUMBER_OF_KIND[by_name.get(number) or "other"] for number in name.tolist()]
        kind[on_cpu] = np.where(any_operator == ABSENT, NUMBER_OF_KIND["python"], known)
    return kind


def _keys(  # noqa: PLR0913, PLR0917 - one column each
    profile: Profile, host: Host, segments: Segments, by_work: Mask, operator: Rows, library: Rows, mark: Rows
) -> Rows:
    table = profile.table
    many = len(table.names) + 1
    above = host.names(operator).astype(np.int64) + 1
    kernel = np.append(table.name, np.int32(ABSENT))[segments.work].astype(np.int64) + 1
    function = host.names(library).astype(np.int64) + 1
    annotation = host.marks.names(mark).astype(np.int64) + 1
    on_host = np.where(function > 0, function, np.where(above > 0, above + many, annotation + 2 * many))
    return np.where(by_work, above * many + kernel, -1 - on_host)


def owner_of(profile: Profile, host: Host, segments: Segments, names: Names, at: int, ns: int) -> Owner:
    """The owner of the segment at position `at`, to which `ns` belong."""
    table = profile.table
    work, call, thread = int(segments.work[at]), int(segments.call[at]), int(segments.thread[at])
    operator, library = int(names.operator[at]), int(names.library[at])
    kernel = None if work == ABSENT else _shown(table.names[table.name[work]])
    start = int(segments.starts[at])
    position = call if call != ABSENT else operator
    if call == ABSENT and ABSENT not in {work, operator}:
        thread = int(table.thread[host.rows[operator]])
        start = int(table.start_ns[host.rows[operator]])
    functions = _functions(profile, host, position)
    mark = _mark(host, thread, start)
    beside = None
    if operator != ABSENT:
        known = "operator"
    elif mark is not None:
        known = "mark"
    else:
        known = "kernel-name" if kernel is not None and names.key[at] >= 0 else "none"
    if names.key[at] >= 0 and operator == ABSENT and kernel is not None:
        known = "kernel-name"
    if library != ABSENT:
        known = "stack"
    if call == ABSENT and names.key[at] < 0:
        beside = _neighbours(host, thread, start, int(segments.ends[at]))
        known = "neighbours" if known == "none" and beside else known
    nearest, own = functions
    return Owner(
        operator=None if operator == ABSENT else _shown(table.names[table.name[host.rows[operator]]]),
        kernel=kernel,
        library=nearest,
        own=own,
        thread=None if thread == ABSENT else _shown(f"{table.threads[thread].pid}/{table.threads[thread].tid}"),
        mark=mark,
        known_by=known,  # type: ignore[arg-type]
        ns=ns,
        neighbours=beside,
        replayed=None if work == ABSENT else profile.replayed.known_by(work),
    )


def _functions(profile: Profile, host: Host, position: int) -> tuple[Function | None, Function | None]:
    """The nearest library function and the nearest own one around a call."""
    nearest = own = None
    at, names, numbers = position, host.table.names, host.table.name
    for _ in range(MOST_OUTWARD):
        if at == ABSENT:
            break
        row = int(host.rows[at])
        name = names[numbers[row]]
        if host.table.category[row] == Category.PYTHON and is_library_frame(name):
            frame = parse_frame(name)
            if frame is not None:
                found = Function(function=_shown(frame.function), file=_shown(frame.file), line=frame.line)
                nearest = nearest or found
                if frame.own_code:
                    own = found
                    break
        at = int(host.parent[at])
    if nearest is None and position != ABSENT and profile.has_call_stacks:
        frame = place_of(profile, int(host.rows[position]))
        if frame is not None:
            nearest = Function(function=_shown(frame.function), file=_shown(frame.file), line=frame.line)
            own = nearest if frame.own_code else None
    return nearest, own


def _mark(host: Host, thread: int, start_ns: int) -> str | None:
    for asked in dict.fromkeys((thread, host.main)):
        if asked != ABSENT:
            at = int(host.marks.innermost(asked, np.array([start_ns]))[0])
            if at != ABSENT:
                return _shown(host.table.names[host.table.name[host.marks.rows[at]]])
    return None


def _neighbours(host: Host, thread: int, start_ns: int, end_ns: int) -> str | None:
    """The thread's events before and after silence."""
    if thread == ABSENT:
        return None
    table = host.table
    low, high = host.first[thread : thread + 2].tolist()
    starts = table.start_ns[host.rows[low:high]]
    before, after = int(np.searchsorted(starts, start_ns)), int(np.searchsorted(starts, end_ns))
    outer = low + before - 1
    for _ in range(MOST_OUTWARD):
        if outer < low or (up := int(host.parent[outer])) == ABSENT or table.end_ns[host.rows[up]] > start_ns:
            break
        outer = up
    said = []
    if before > 0:
        said.append(f"after {_shown(table.names[table.name[host.rows[outer]]])}")
    if low + after < high:
        said.append(f"before {_shown(table.names[table.name[host.rows[low + after]]])}")
    return ", ".join(said) or None


def _shown(name: str) -> str:
    return name[:LONGEST_NAME]
