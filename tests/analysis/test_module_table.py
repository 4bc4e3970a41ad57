"""Parts of a step in modules: of a drawn profile, and of a recorded one against a plain count of its JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.analysis.module_table import module_rows
from tb_tidy_plugin.ledger.account import passes_of
from tb_tidy_plugin.ledger.model import OWNER_PASSES
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.modules import modules_of
from tb_tidy_plugin.report.figures import ModuleRow
from tb_tidy_plugin.rulekit.testing import draw
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.kineto import read_trace

STEP = """
ProfilerStep#1                                          0-1000
  train.py(15): train                                   1-999
    nn.Module: Net_0                                    10-400
      nn.Module: Linear_0                               20-200
        aten::addmm                                     30-180  seq=7
      aten::mul                                         210-390  seq=8
    <built-in method backward of Tensor object at 0x2>  410-800
      MulBackward0                                      420-500  seq=8  fwd=1
      AddmmBackward0                                    510-700  seq=7  fwd=1
      AccumulateGrad                                    710-790  fwd=1
    Optimizer.step#SGD.step                             810-980
      aten::add_                                        830-970
"""


def rows_of(profile: Profile) -> dict[str, ModuleRow]:
    return {row.name: row for row in module_rows(profile, modules_of(profile))}


def times(row: ModuleRow) -> tuple[int, int, int, int | None]:
    """µs of the step, its forward and backward pass, and its optimizer."""
    of_optimizer = row.step_optimizer_ns
    whole = (row.step_ns // 1000, row.step_forward_ns // 1000, row.step_backward_ns // 1000)
    return (*whole, None if of_optimizer is None else of_optimizer // 1000)


def test_a_module_has_its_part_of_each_pass_with_the_modules_inside() -> None:
    """The rest of the step's time is Python between operators."""
    found = rows_of(draw(STEP))
    assert times(found["Linear_0"]) == (180 + 190, 150, 190, None)
    assert times(found["Net_0"]) == (390 + 270, 330, 270, None)


def test_an_update_counts_where_it_runs_inside_a_module() -> None:
    drawn = """
    ProfilerStep#1                  0-1000
      nn.Module: Trainer_0          10-900
        nn.Module: Linear_0         20-100
          aten::addmm               30-90
        Optimizer.step#SGD.step     110-800
          aten::add_                200-700
    """
    found = rows_of(draw(drawn))
    assert found["Trainer_0"].step_optimizer_ns == 500_000
    assert found["Linear_0"].step_optimizer_ns is None


PROGRAM = """
import gc
import torch
import torch.utils.checkpoint
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = torch.nn.Linear(128, 512), torch.nn.Linear(512, 128)

    def forward(self, x):
        return self.narrow(torch.relu(self.wide(x))) + x

class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Inner(), Inner()

    def forward(self, x):
        x = self.first(x)
        return torch.utils.checkpoint.checkpoint(self.second, x, use_reentrant=False).logsumexp(1)

torch.set_num_threads(1)
model = Outer()
optimizer = torch.optim.Adam(model.parameters())
gc.disable()
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2), with_stack=True,
             on_trace_ready=tensorboard_trace_handler("run"), record_shapes=True) as prof:
    for _ in range(4):
        model(torch.randn(64, 128)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        prof.step()
"""


@pytest.mark.torch
def test_the_parts_of_a_recording_are_those_of_a_plain_count(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True, capture_output=True)
    [trace] = find_traces(tmp_path / "run")
    profile = Profile(read_trace(trace.path))
    events = json.loads(Path(str(trace.path)).read_text())["traceEvents"]
    plain = plain_count(events)
    found = rows_of(profile)
    assert set(found) == {"Outer_0", "Inner_0", "Inner_1", *(f"Linear_{at}" for at in range(4))}
    for name, row in found.items():
        # Starts and ends are rounded to whole ns.
        assert row.step_forward_ns == pytest.approx(plain[name, "forward"], abs=200), name
        assert row.step_backward_ns == pytest.approx(plain[name, "backward"], abs=200), name
        assert row.step_backward_ns > 100_000
        assert row.step_optimizer_ns is None
    whole = found["Outer_0"]
    by_pass = passes_of(profile)
    backward_ns = int(by_pass.ns[by_pass.pass_ == OWNER_PASSES.index("backward")].sum())
    assert 0.8 * backward_ns < whole.step_backward_ns < backward_ns


def plain_count(events: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """Time in ns of the steps by module, with the modules inside, and pass: at each instant by the events around it."""
    events = [each for each in events if each["ph"] == "X" and each.get("cat") in {"cpu_op", "python_function"}]
    thread = Counter(each["tid"] for each in events).most_common(1)[0][0]
    mine = sorted((each for each in events if each["tid"] == thread), key=lambda each: (each["ts"], -each["dur"]))
    forward = {}  # the modules around the last forward operator of each sequence number
    found = Counter[tuple[str, str]]()
    pieces = list(_pieces(mine))
    for around, _ in pieces:
        for event in around:
            args = event.get("args", {})
            if "Sequence number" in args and not args.get("Fwd thread id"):
                forward[args["Sequence number"]] = _modules(around[: around.index(event)])
    for around, ns in pieces:
        node = next((at for at in range(len(around) - 1, -1, -1) if _is_node(around[at])), None)
        if node is not None:
            inner = max(at for at in range(len(around)) if around[at]["cat"] == "cpu_op")  # Python inside it is its own
            again = _modules(around[node:inner])  # a checkpoint, computed again by whichever operator asked first
            number = around[node]["args"].get("Sequence number")
            for name in again | {"Outer_0"} if again else forward.get(number, set()):
                found[name, "backward"] += ns
        elif any(each["cat"] == "cpu_op" for each in around):
            for name in _modules(around):
                found[name, "forward"] += ns
    return found


def _pieces(events: list[dict[str, Any]]) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """The events around each instant, outermost first, and how many ns it lasts."""
    edges = [(round(1000 * (each["ts"] + each["dur"] * last)), last, each) for each in events for last in (0, 1)]
    edges.sort(key=lambda edge: (edge[0], -edge[1]))
    around: list[dict[str, Any]] = []
    before = 0
    for time, is_end, event in edges:
        if around and time > before:
            yield list(around), time - before
        before = time
        if is_end:
            around[:] = [each for each in around if each is not event]
        else:
            around.append(event)


def _is_node(event: dict[str, Any]) -> bool:
    return event["cat"] == "cpu_op" and bool(event.get("args", {}).get("Fwd thread id"))


def _modules(events: list[dict[str, Any]]) -> set[str]:
    return {each["name"].removeprefix("nn.Module: ") for each in events if each["name"].startswith("nn.Module: ")}
