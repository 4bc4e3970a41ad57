"""The operator tables as the report shows them: kernels, findings, text and shares beside the sums of each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.analysis import operator_tables
from tb_tidy_plugin.analysis.findings import TracedFinding
from tb_tidy_plugin.analysis.operator_tables import MOST_ROWS, OperatorTable, operator_table, row_key
from tb_tidy_plugin.profile.events.inputs import NOT_A_TENSOR, TORCH_DTYPES, Shapes
from tb_tidy_plugin.profile.events.operators import totals, work_of_groups
from tb_tidy_plugin.profile.kernels import kernel_kind, uses_tensor_cores
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.cpu_work import CpuGroup, CpuWork
from tb_tidy_plugin.profile.work.flops import WorkEstimates, rates
from tb_tidy_plugin.profile.work.modules import ModuleTree
from tb_tidy_plugin.report.figures import KernelRow, OperatorGroup, OperatorRow
from tb_tidy_plugin.report.generated import generated_of
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.frames import Frame
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.sets import among, distinct, first_of_each, numbered
from tb_tidy_plugin.words.vocabulary import KnownBy

MOST_KERNELS = 8
NO_FRAME = Frame("", 0, "", "definition", own_code=False)


class Parts(msgspec.Struct, frozen=True):
    """Sources of the rows of all groupings.

    Attributes:
        linked: each finding's calls, as positions in `Profile.nested`.
        aligner: finds lines inside functions; None where the lines of definitions are enough.
    """

    profile: Profile
    estimates: WorkEstimates
    modules: ModuleTree
    cpu: CpuWork
    linked: Mapping[str, Rows]
    aligner: Aligner | None = None


def linked_calls(profile: Profile, traced: Sequence[TracedFinding]) -> dict[str, Rows]:
    """The calls that each finding is about, as positions in `Profile.nested`.

    These are matched events that are calls, operators and annotations inside a matched event, and calls that launched
    matched device work. Calls around a match are excluded, and so are runtime calls inside it: otherwise nearly every
    finding would be about `cudaLaunchKernel`.
    """
    return {each.finding.id: _linked(profile, each.rows) for each in traced}


def _linked(profile: Profile, rows: Rows) -> Rows:
    nested, operators, size = profile.nested, profile.operators, profile.tree.size
    is_meant = profile.inside(rows[rows < size])  # by the tree, which includes Python frames
    is_meant[rows] = True
    calls = nested.at[is_meant]
    calls = calls[calls != ABSENT]
    change = np.zeros(len(nested) + 1, np.int64)
    np.add.at(change, calls, 1)
    np.add.at(change, nested.last[calls] + 1, -1)
    is_linked = (np.cumsum(change)[:-1] > 0) & (profile.table.category[nested.rows] != Category.RUNTIME)
    is_linked[calls] = True
    is_linked[operators.work_call[is_meant[operators.work]]] = True
    return np.flatnonzero(is_linked)


def operator_rows(parts: Parts, by: OperatorGroup) -> tuple[list[OperatorRow], int]:
    """The rows of one grouping, most host self time first, and the number of rows beyond `MOST_ROWS`."""
    whole = _with_rest(parts, operator_table(parts.profile, by, parts.estimates, parts.modules, parts.aligner))
    table = _largest(whole)
    groups = np.array([row.totals.group for row in table.rows], np.int64)
    keys = np.where(table.keys == ABSENT, ABSENT, np.searchsorted(groups, table.keys))
    kernels = _kernel_rows(parts.profile, keys, len(groups))
    findings = _findings(parts.linked, keys, len(groups))
    leads = _leads(parts.profile, keys, len(groups))
    dtypes = _dtypes(parts.profile, table, keys)
    replayed = _replayed(parts.profile, keys, len(groups))
    found = [
        _row(parts, row, _Beside(kernels[at], findings[at], leads[at], dtypes[at], replayed[at]))
        for at, row in enumerate(table.rows)
    ]
    if by == "shape":
        cpu = _cpu_groups(parts)
        usual = [cpu.get((row.name, row.shapes or ())) if row.kind == "operator" else None for row in table.rows]
        found = [_with_spread(row, group) if group else row for row, group in zip(found, usual, strict=True)]
    return sorted(found, key=lambda row: -row.host_self_ns), len(whole.rows) - len(table.rows)


def _largest(table: OperatorTable) -> OperatorTable:
    """The `MOST_ROWS` rows with the most host self time."""
    if len(table.rows) <= MOST_ROWS:
        return table
    host_self_ns = np.array([row.totals.host_self_ns for row in table.rows], np.int64)
    kept = np.sort(np.argsort(-host_self_ns, kind="stable")[:MOST_ROWS])
    rows = tuple(table.rows[at] for at in kept.tolist())
    groups = np.array([row.totals.group for row in rows], np.int64)
    return replace(table, rows=rows, keys=np.where(among(table.keys, groups), table.keys, ABSENT))


def _with_rest(parts: Parts, table: OperatorTable) -> OperatorTable:
    """A table by line or module with one more row for calls without one; annotations stay left out."""
    if table.by not in {"line", "module"}:
        return table
    profile = parts.profile
    is_call = profile.table.category[profile.nested.rows] != Category.ANNOTATION
    rest = np.where((table.keys == ABSENT) & is_call, table.keys.max(initial=ABSENT) + 1, ABSENT)
    found = totals(profile.operators, rest, outermost=True)
    work = rates(profile.operators, parts.estimates, rest)
    rows = [operator_tables.TableRow("mixed", "", None, None, None, *both) for both in zip(found, work, strict=True)]
    return replace(table, rows=(*table.rows, *rows), keys=np.maximum(table.keys, rest))


class _Beside(msgspec.Struct, frozen=True):
    """Content of a row beside its sums. lead: the operator with most host self time, and the number of operators."""

    kernels: list[KernelRow]
    findings: list[str]
    lead: tuple[str, int]
    dtypes: tuple[str, ...]
    replayed: tuple[int, KnownBy | None]


def _row(parts: Parts, row: operator_tables.TableRow, beside: _Beside) -> OperatorRow:
    sums, rate = row.totals, row.rate
    has_device = "device" in parts.profile.recorded
    place = row.place or NO_FRAME
    is_mixed = row.kind == "mixed"
    return OperatorRow(
        key=_key(parts, row),
        kind=row.kind,
        name=beside.lead[0] if is_mixed else row.name,
        operators=beside.lead[1] if is_mixed else 1,
        calls=sums.calls,
        host_total_ns=sums.host_total_ns,
        host_self_ns=sums.host_self_ns,
        device_total_ns=sums.device_total_ns if has_device else None,
        device_self_ns=sums.device_self_ns if has_device else None,
        device_busy_ns=sums.device_busy_ns if has_device else None,
        tensor_cores=sums.tensor_cores,
        flops=rate.flops,
        flops_per_second=rate.flops_per_second,
        bytes_per_second=rate.bytes_per_second,
        roofline=rate.roofline,
        kernels=beside.kernels,
        findings=beside.findings,
        shapes=shapes_text(row.shapes or (), beside.dtypes),
        file=place.file,
        line=place.line or None,
        function=place.function,
        generated=generated_of(place),
        module=row.name if row.module is not None else "",
        replayed_calls=beside.replayed[0],
        known_by=beside.replayed[1],
    )


def _with_spread(row: OperatorRow, group: CpuGroup) -> OperatorRow:
    return msgspec.structs.replace(
        row,
        low_ns=group.low_ns,
        median_ns=group.median_ns,
        high_ns=group.high_ns,
        longest_ns=group.longest_ns,
        slow_calls=group.slow_calls,
        share_of_best=group.share_of_best,
    )


def _key(parts: Parts, row: operator_tables.TableRow) -> str:
    """A key that is the same in every recording of the same job."""
    texts: list[object] = [row.kind, row.name]
    if row.place is not None:
        texts = ["line", row.place.file, row.place.line, row.place.function, row.place.precision]
        texts += [row.place.compiled, row.place.also] if row.place.compiled else []
    elif row.module is not None:
        texts = ["module", *_path(parts, row.module)]
    elif row.shapes is not None:
        texts.append(row.shapes)
    return row_key(texts)


def _path(parts: Parts, module: int) -> list[tuple[str, str]]:
    """Names of a module and its ancestors, with their `forward` functions, since classes may share a name."""
    path, table = [], parts.profile.table
    while module != ABSENT:
        at = parts.modules.modules[module]
        forward = table.names[table.name[at.forward_frame]] if at.forward_frame != ABSENT else ""
        path.append((at.name, forward))
        module = at.parent
    return path


def shapes_text(shapes: Shapes, dtypes: Sequence[str]) -> str:
    """Input shapes in one line, then the dtypes (`64×256, 256 · float32`); other inputs are left out."""
    text = ", ".join("×".join(map(str, shape)) for shape in shapes if shape)
    return f"{text} · {', '.join(dtypes)}" if text and dtypes else text


def _dtypes(profile: Profile, table: OperatorTable, keys: Rows) -> list[tuple[str, ...]]:
    """The distinct tensor dtypes of each group by shape, as torch calls them."""
    found: list[dict[str, None]] = [{} for _ in table.rows]
    if table.by != "shape":
        return [tuple(names) for names in found]
    signatures = profile.signatures
    for pair in distinct(keys * len(signatures.inputs) + signatures.number).tolist():
        group, signature = divmod(pair, len(signatures.inputs))
        shapes, dtypes = table.rows[group].shapes or (), signatures.inputs[signature].dtypes
        tensors = [dtype for shape, dtype in zip(shapes, dtypes, strict=False) if shape and dtype not in NOT_A_TENSOR]
        found[group] |= {TORCH_DTYPES.get(dtype, dtype.removeprefix("c10::")): None for dtype in tensors if dtype}
    return [tuple(names) for names in found]


def _cpu_groups(parts: Parts) -> dict[tuple[str, Shapes], CpuGroup]:
    shapes = parts.profile.signatures.shapes
    return {(group.name, shapes[group.shape]): group for group in parts.cpu.groups}


def _findings(linked: Mapping[str, Rows], keys: Rows, count: int) -> list[list[str]]:
    """The findings that are linked with a call of each group, in the report's order."""
    found: list[list[str]] = [[] for _ in range(count)]
    for finding, calls in linked.items():
        groups = distinct(keys[calls])
        for group in groups[groups != ABSENT].tolist():
            found[group].append(finding)
    return found


def _leads(profile: Profile, keys: Rows, count: int) -> list[tuple[str, int]]:
    """The operator with most host self time of each group, and the number of operators; else of runtime calls."""
    names = profile.plain_names
    calls = np.flatnonzero(keys != ABSENT)
    rows = profile.nested.rows[calls]
    pair = keys[calls] * len(names) + profile.plain_number(rows)
    pairs, number = numbered(pair)
    self_ns = np.bincount(number, profile.nested.self_ns[calls], len(pairs))
    is_operator = profile.table.category[rows[first_of_each(number, len(pairs))]] == Category.OPERATOR
    group, name = np.divmod(pairs, max(len(names), 1))
    order = np.lexsort((-self_ns, ~is_operator, group))
    leading = order[np.flatnonzero(np.diff(group[order], prepend=ABSENT))]
    operators, others = (np.bincount(group[chosen], minlength=count) for chosen in (is_operator, ~is_operator))
    different = np.where(operators > 0, operators, others).tolist()
    return [(names[at], many) for at, many in zip(name[leading].tolist(), different, strict=True)]


def _replayed(profile: Profile, keys: Rows, count: int) -> list[tuple[int, KnownBy | None]]:
    """The number of each group's calls that come from a graph's capture, and the least certain way they are known."""
    rows = profile.nested.rows
    mine = np.flatnonzero((keys != ABSENT) & profile.replayed.inserted[rows])
    calls = np.bincount(keys[mine], minlength=count)
    least = profile.replayed.least_by_group(rows[mine], keys[mine], count)
    return list(zip(calls.tolist(), least, strict=True))


def _kernel_rows(profile: Profile, keys: Rows, count: int) -> list[list[KernelRow]]:
    """The largest kernels, copies and fills of each group; nested calls do not count them twice."""
    table, operators = profile.table, profile.operators
    group, work = work_of_groups(operators, keys)
    name = operators.work_name[work].astype(np.int64)
    pairs, number = numbered(group * len(table.names) + name)
    duration_ns = (operators.work_end_ns - operators.work_start_ns)[work]
    total_ns = np.zeros(len(pairs), np.int64)
    np.add.at(total_ns, number, duration_ns)
    calls = np.bincount(number, minlength=len(pairs))
    is_kernel = table.category[operators.work[work[first_of_each(number, len(pairs))]]] == Category.KERNEL
    groups, names = np.divmod(pairs, max(len(table.names), 1))
    found: list[list[KernelRow]] = [[] for _ in range(count)]
    order = np.lexsort((-total_ns, groups))
    columns = (column[order].tolist() for column in (groups, names, calls, total_ns, is_kernel))
    for at, text, many, time_ns, is_known in zip(*columns, strict=True):
        if len(found[at]) < MOST_KERNELS:
            found[at].append(_kernel_row(table.names[text], many, time_ns, is_kernel=is_known))
    return found


def _kernel_row(name: str, calls: int, total_ns: int, *, is_kernel: bool) -> KernelRow:
    return KernelRow(
        name=name,
        kind=kernel_kind(name) if is_kernel else "other",
        calls=calls,
        total_ns=total_ns,
        tensor_cores=uses_tensor_cores(name) if is_kernel else None,
    )
