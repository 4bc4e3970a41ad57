"""Modules of real traces against plain counts of their JSON, and of fresh ones against hooks and torch's own table."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.modules import ModuleTree, modules_of
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared

MODULE = "nn.Module: "
INFERENCE = ("b200_eager", "mi300_sglang_prefill_decode", "mi300_vllm_graph_decode")
TRAINING = "mi300_ddp8_resnet_checkpoint"


@dataclass(frozen=True)
class Span:
    """One event, times in ns."""

    name: str
    thread: str
    start: int
    end: int
    args: dict[str, Any]

    def holds(self, other: Span) -> bool:
        return self.thread == other.thread and self.start <= other.start < self.end


@dataclass(frozen=True)
class Recording:
    tree: ModuleTree
    spans: dict[str, list[Span]]

    @cached_property
    def frames(self) -> list[Span]:
        return [span for span in self.spans["python_function"] if span.name.startswith(MODULE)]


@lru_cache(maxsize=2)
def recording(path: Path) -> Recording:
    data = json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    spans = defaultdict(list)
    for entry in data["traceEvents"]:
        if entry["ph"] == "X":
            start = round(entry["ts"] * 1000)
            times = (start, start + round(entry.get("dur", 0) * 1000))
            spans[entry.get("cat")].append(
                Span(entry["name"], f"{entry['pid']}/{entry['tid']}", *times, entry.get("args", {}))
            )
    return Recording(modules_of(Profile(read_trace(path))), spans)


def shared_recording(folder: str) -> Recording:
    (path,) = shared(f"traces/{folder}").glob("*.gz")
    return recording(path)


def covered(spans: list[Span]) -> int:
    """Time with at least one span open, by a sweep over sorted ends."""
    total = depth = last = 0
    for time, change in sorted(edge for span in spans for edge in ((span.start, 1), (span.end, -1))):
        total += time - last if depth else 0
        depth += change
        last = time
    return total


def paths_of(tree: ModuleTree) -> list[str]:
    paths: list[str] = []
    for module in tree.modules:
        paths.append((paths[module.parent] + "/" if module.parent != ABSENT else "") + module.name)
    return paths


def path_by_ids(frame: Span, by_id: dict[int, Span]) -> str:
    """The modules around a frame, by the profiler's own ids of Python frames."""
    names, at = [], frame
    while True:
        if at.name.startswith(MODULE):
            names.append(at.name.removeprefix(MODULE))
        parent = at.args.get("Python parent id")
        if parent not in by_id:
            return "/".join(reversed(names))
        at = by_id[parent]


@pytest.mark.parametrize("folder", [*INFERENCE, TRAINING])
def test_the_hierarchy_is_that_of_the_frames_own_ids(folder: str) -> None:
    found = shared_recording(folder)
    by_id = {span.args["Python id"]: span for span in found.spans["python_function"] if "Python id" in span.args}
    main_thread = found.frames[0].thread
    calls: Counter[str] = Counter()
    time: Counter[str] = Counter()
    repeated: Counter[str] = Counter()
    for frame in found.frames:
        if frame.thread == main_thread:
            calls[path_by_ids(frame, by_id)] += 1
            time[path_by_ids(frame, by_id)] += frame.end - frame.start
        else:
            repeated[frame.name.removeprefix(MODULE)] += 1
    ours, our_time, our_repeated = Counter[str](), Counter[str](), Counter[str]()
    for path, module in zip(paths_of(found.tree), found.tree.modules, strict=True):
        ours[path] += module.calls
        our_time[path] += module.forward.host_ns
        our_repeated[module.name] += module.repeated_calls
    assert ours == calls
    assert our_time == time
    assert +our_repeated == repeated
    assert (len(repeated) > 0) == (folder == TRAINING)


@pytest.mark.parametrize("folder", [*INFERENCE, TRAINING])
def test_own_times_add_up_to_the_root_modules_frames(folder: str) -> None:
    found = shared_recording(folder)
    main_thread = found.frames[0].thread
    own = sum(module.forward_self.host_ns for module in found.tree.modules)
    roots = sum(module.forward.host_ns for module in found.tree.modules if module.parent == ABSENT)
    assert own == roots == covered([frame for frame in found.frames if frame.thread == main_thread])


@pytest.mark.parametrize("folder", [*INFERENCE, TRAINING])
def test_device_time_is_that_of_what_was_launched_inside(folder: str) -> None:
    found = shared_recording(folder)
    launches = {span.args.get("correlation"): span for span in found.spans["cuda_runtime"] + found.spans["cuda_driver"]}
    main_thread = found.frames[0].thread
    frames = sorted((frame for frame in found.frames if frame.thread == main_thread), key=lambda frame: frame.start)
    expected: Counter[str] = Counter()
    for category in ("kernel", "gpu_memcpy", "gpu_memset"):
        for work in found.spans[category]:
            launch = launches.get(work.args.get("correlation"))
            inner = [frame for frame in frames if launch is not None and frame.holds(launch)]
            if inner:
                expected[inner[-1].name.removeprefix(MODULE)] += work.end - work.start
    ours: Counter[str] = Counter()
    for module in found.tree.modules:
        ours[module.name] += module.forward_self.device_ns or 0
    assert +ours == +expected
    assert sum(expected.values()) > 0


def test_backward_time_of_a_real_training_step() -> None:
    """Every operator of the backward pass whose forward operator ran inside a module, by sequence number and time."""
    found = shared_recording(TRAINING)
    operators = found.spans["cpu_op"]
    numbered = [span for span in operators if "Sequence number" in span.args]
    inside = {
        span.args["Sequence number"]
        for span in numbered
        if span.args.get("Fwd thread id") == 0 and any(frame.holds(span) for frame in found.frames)
    }
    backward = [
        span for span in numbered if span.args.get("Fwd thread id") != 0 and span.args["Sequence number"] in inside
    ]
    roots = [module for module in found.tree.modules if module.parent == ABSENT]
    assert sum(module.backward.host_ns for module in roots) == covered(backward)
    nodes = [span for span in operators if span.name.startswith("autograd::engine::evaluate_function")]
    outside = found.tree.backward_outside
    assert sum(module.backward.host_ns for module in roots) + outside.host_ns == covered(nodes)
    launches = {span.args.get("correlation"): span for span in found.spans["cuda_runtime"]}
    device_ns = sum(
        work.end - work.start
        for category in ("kernel", "gpu_memcpy", "gpu_memset")
        for work in found.spans[category]
        if (launch := launches.get(work.args["correlation"])) and any(node.holds(launch) for node in nodes)
    )
    assert sum(module.backward.device_ns or 0 for module in roots) + (outside.device_ns or 0) == device_ns


# Fresh recordings


def truth_of(folder: Path, program: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "truth.json").read_text())[program]
    return found


def model(folder: Path, program: str) -> Recording:
    return recording(folder / f"{program}.pt.trace.json")


PROGRAMS = pytest.mark.parametrize("program", ["plain", "reentrant", "not_reentrant", "penalty"])


@pytest.mark.torch
@PROGRAMS
def test_calls_are_those_that_hooks_saw(small_models: Path, program: str) -> None:
    truth, tree = truth_of(small_models, program), model(small_models, program).tree
    assert {path: module.calls for path, module in zip(paths_of(tree), tree.modules, strict=True)} == truth["calls"]
    repeated: Counter[str] = Counter()
    for module in tree.modules:
        repeated[module.name] += module.repeated_calls
    assert +repeated == truth["repeated"]
    assert bool(truth["repeated"]) == program.endswith("reentrant")
    shared_norm = [module for module in tree.modules if module.places == 2]
    assert [module.name for module in shared_norm] == ["LayerNorm_0", "LayerNorm_0"]


@pytest.mark.torch
@pytest.mark.parametrize("program", ["plain", "penalty"])
def test_time_and_memory_are_those_of_key_averages(small_models: Path, program: str) -> None:
    truth, tree = truth_of(small_models, program)["modules"], model(small_models, program).tree
    ours: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for module in tree.modules:
        figures = (module.calls, module.forward.host_ns, module.forward.host_net_bytes or 0)
        ours[module.name] = [sum(pair) for pair in zip(ours[module.name], figures, strict=True)]
    assert ours == {name: [count, round(time_us * 1000), size] for name, (count, time_us, size) in truth.items()}


@pytest.mark.torch
@PROGRAMS
def test_backward_passes_add_up_to_the_engines_calls(small_models: Path, program: str) -> None:
    found = model(small_models, program)
    nodes = [span for span in found.spans["cpu_op"] if span.name.startswith("autograd::engine::evaluate_function")]
    own = sum(module.backward_self.host_ns for module in found.tree.modules)
    assert own + found.tree.backward_outside.host_ns == covered(nodes)
    accumulated = [span for span in nodes if "AccumulateGrad" in span.name]
    assert found.tree.backward_outside.host_ns >= covered(accumulated)
    assert all(module.backward.host_ns > 0 for module in found.tree.modules)


@pytest.mark.torch
@PROGRAMS
def test_a_linear_layer_allocates_its_output(small_models: Path, program: str) -> None:
    tree = model(small_models, program).tree
    (layer,) = (module for module in tree.modules if module.name == "Linear_0")
    assert layer.forward.host_allocated_bytes == 2 * 8 * 64 * 4, "calls × batch × width × float"
    assert (layer.forward.device_ns, layer.forward.device_allocated_bytes) == (None, 0)
