"""The merged calls: their sums against the ledger and against counts of the events by hand, however few are listed."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.flame import MOST_FLAME_NODES, flame_of
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.flame import Flame
from tb_tidy_plugin.rulekit.testing import A100, draw
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.files import find_traces
from tests.support.recordings import ROOT, SHARED

NAMES = ("h100_vit_pipeline", "t4_toy_kernels", "cpu_gloo_rank34", "mi210_gpu_only")
PATHS = [
    *(
        SHARED / "traces" / name
        for name in ("h100_vit_pipeline", "t4_toy_kernels", "cpu_gloo_rank34", "mi210_gpu_only")
    ),
    ROOT / "sample_runs" / "image_classifier_untidy",
]

STEPS = """
ProfilerStep#1                     0-999
  train.py(12): step               10-990
    nn.Module: Net_0               100-400
      torch/nn/linear.py(9): forward  101-399
        aten::linear               102-398
          aten::addmm              112-388  kernel=gemm@200-600
    aten::relu                     500-600  kernel=relu@650-700
ProfilerStep#2                     1000-2000
  train.py(12): step               1010-1990
    nn.Module: Net_0               1100-1400
      torch/nn/linear.py(9): forward  1101-1399
        aten::linear               1102-1398
          aten::addmm              1112-1388  kernel=gemm@1200-1600
"""


def path_of(flame: Flame, node: int) -> tuple[str, ...]:
    """Kinds and names from below the root to a node."""
    found = []
    while node > 0:
        frame = flame.frames[flame.frame[node]]
        found.append(f"{frame.kind} {frame.name}")
        node = flame.parent[node]
    return tuple(reversed(found))


def by_path(flame: Flame, amounts: list[int]) -> dict[tuple[str, ...], int]:
    return {path_of(flame, node): amount for node, amount in enumerate(amounts) if amount}


def by_entry(flame: Flame) -> dict[str, int]:
    found: Counter[str] = Counter()
    for node, amount in enumerate(flame.account_ns):
        entry = flame.frames[flame.frame[node]].entry
        if amount:
            assert entry is not None, "time of the account belongs to an entry"
            found[flame.entries[entry].id] += amount
    return dict(found)


def busy_by_thread(profile: Profile, start_ns: int, end_ns: int) -> int:
    """Time in which any operator, frame or runtime call is open, thread by thread, one boundary after the other."""
    table = profile.table
    wanted = {Category.OPERATOR, Category.PYTHON, Category.RUNTIME}
    edges: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for row in range(len(table)):
        if profile.category(row) in wanted:
            start, end = max(profile.start_ns(row), start_ns), min(profile.end_ns(row), end_ns)
            if end > start:
                edges[int(table.thread[row])] += [(start, 1), (end, -1)]
    total = 0
    for thread in edges.values():
        since = depth = 0
        for time, change in sorted(thread):
            total += (time - since) if depth > 0 else 0
            since, depth = time, depth + change
    return total


def test_paths_are_modules_functions_operators_and_kernels() -> None:
    flame = flame_of(draw(STEPS, A100))
    step, net = "function step", "module Net_0"
    times = by_path(flame, flame.account_ns)
    addmm = (step, net, "operator aten::linear", "operator aten::addmm")
    assert times[(*addmm, "kernel gemm")] == 800_000, "both steps are one path, frames inside PyTorch are left out"
    assert times[step, "operator aten::relu", "kernel relu"] == 50_000
    assert flame.steps == 2
    host = by_path(flame, flame.host_ns)
    assert host[step,] == (2 * 980 - 300 - 100 - 300) * 1000
    assert host[step, net, "operator aten::linear"] == 2 * 20_000
    function = next(frame for frame in flame.frames if frame.kind == "function")
    assert (function.name, function.file, function.line) == ("step", "train.py", 12)


def test_allocations_of_devices_are_where_they_were_made() -> None:
    path = SHARED / "traces" / "h100_vit_pipeline"
    if not path.is_dir():
        pytest.skip(f"{path.name} is not here")
    (file,) = find_traces(path)
    profile = read_file(file, Job()).profile
    window = account_of(profile).ledger.window
    made = [
        event["Bytes"]
        for row in np.flatnonzero(profile.table.category == Category.MEMORY).tolist()
        if window.start_ns <= profile.start_ns(row) < window.end_ns
        for event in [json.loads(profile.table.args.text(row))]
        if event["Device Type"] != 0 and event["Bytes"] > 0
    ]
    assert made
    assert sum(flame_of(profile).bytes) == sum(made)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_sums_are_those_of_the_account_and_of_the_threads(path: Path) -> None:
    if not path.is_dir():
        pytest.skip(f"{path.name} is not here")
    profile = read_file(find_traces(path)[0], Job()).profile
    ledger = account_of(profile).ledger
    whole = flame_of(profile, most=1 << 30)
    assert by_entry(whole) == {entry.id: entry.ns_total for entry in ledger.entries}
    assert sum(whole.account_ns) == ledger.window.end_ns - ledger.window.start_ns
    assert sum(whole.host_ns) == busy_by_thread(profile, ledger.window.start_ns, ledger.window.end_ns)
    assert min(whole.host_ns) >= 0
    for most in (1, 40):
        few = flame_of(profile, most=most)
        kept = [node for node in range(len(few.parent)) if few.frames[few.frame[node]].kind != "others"]
        assert len(kept) <= most
        assert by_entry(few) == by_entry(whole)
        assert (sum(few.host_ns), sum(few.bytes)) == (sum(whole.host_ns), sum(whole.bytes))
        assert all(parent < node for node, parent in enumerate(few.parent)), "parents stand before their children"


def test_findings_lead_to_the_nodes_of_their_events() -> None:
    (file, *_) = find_traces(ROOT / "sample_runs" / "image_classifier_untidy")
    analysis = read_file(file, Job())
    flame = flame_of(analysis.profile, tuple(analysis.traced.values()))
    assert set(flame.findings) == set(analysis.traced)
    for name, traced in analysis.traced.items():
        nodes = flame.findings[name]
        assert nodes
        assert len(set(nodes)) == len(nodes)
        first = path_of(flame, nodes[0])
        operators = {analysis.profile.name(row) for row in traced.rows.tolist()}
        said = {part.partition(" ")[2] for part in first}
        assert said & operators or not any(name.startswith("aten::") for name in operators), name


def test_a_profile_without_events_of_the_host_has_its_kernels_at_the_root() -> None:
    flame = flame_of(draw("aten::mm 0-10 kernel=gemm@20-50"), most=MOST_FLAME_NODES)
    assert by_path(flame, flame.account_ns)["operator aten::mm", "kernel gemm"] == 30_000
