"""Owners of entries: the pass, the line and the operator that the time belongs to."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import numpy as np
import pytest

from tb_tidy_plugin.analysis.assemble import Analysis, read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.ledger.account import account_of, passes_of
from tb_tidy_plugin.ledger.model import OWNER_PASSES, Entry, Owner
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.words.causes import Cause, Kind
from tests.ledger.traces import OTHER, Made, check
from tests.support.recordings import shared, shared_names


def step(length: float = 10_000) -> Made:
    """One step on a processor, whose loop began before the recording, in which `forward` runs twice."""
    made = Made().mark("ProfilerStep#1", 0, length)
    made.keys, made.device = {}, {}
    return made.frame("train.py(62): train", 0, length)


def entry_of(made: Made, kind: Kind) -> Entry:
    return next(each for each in made.account().ledger.entries if each.kind is kind)


def product(made: Made, start: float, end: float, rows: int = 64, **args: object) -> Made:
    dims: dict[str, object] = {"Input Dims": [[rows, 64], [64, 64]], "Input type": ["float", "float"]}
    return made.operator("aten::mm", start, end, **dims, **args)  # type: ignore[arg-type]


class TestPlace:
    def test_work_of_the_backward_pass_belongs_to_its_forward_operator(self) -> None:
        made = step().frame("model.py(10): forward", 100, 1_100)
        product(made, 200, 1_000, **{"Sequence number": 5, "Fwd thread id": 0})
        made.frame("torch/_tensor.py(500): backward", 2_000, 9_000)
        made.operator(
            "autograd::engine::evaluate_function: MmBackward0",
            2_100,
            8_900,
            **{"Sequence number": 5, "Fwd thread id": 1},
        )
        product(made, 2_200, 8_800)
        owner = entry_of(made, Kind.MATRIX).owner
        assert (owner.pass_, owner.file, owner.function) == ("backward", "model.py", "forward")
        assert (owner.operator, owner.shapes, owner.dtype, owner.calls) == ("aten::mm", "64×64, 64×64", "float32", 1)
        assert owner.ns == 6_600_000

    def test_all_forward_operators_at_once_are_those_of_each(self) -> None:
        made = step()
        for at, number in enumerate((5, 6, 6, 8)):  # the last one of a number counts
            product(made, 100 + 200 * at, 200 + 200 * at, **{"Sequence number": number, "Fwd thread id": 0})
        for at, number in enumerate((8, 6, 5, 7)):  # 7 has no forward operator
            linked: dict[str, object] = {"Sequence number": number, "Fwd thread id": 1}
            made.operator("MmBackward0", 5_000 + 200 * at, 5_100 + 200 * at, OTHER, **linked)
        profile = made.profile()
        rows = np.flatnonzero(profile.table.forward_thread > 0)
        found = [profile.forward_of(row) for row in rows.tolist()]
        assert profile.forwards_of(rows).tolist() == [ABSENT if row is None else row for row in found]
        assert [None if row is None else profile.start_ns(row) // 1_000 for row in found] == [700, 500, 100, None]

    def test_an_accumulated_gradient_has_no_place(self) -> None:
        made = step().frame("torch/_tensor.py(500): backward", 2_000, 9_000)
        made.operator("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 2_100, 8_900)
        made.operator("aten::add_", 2_200, 8_800)
        owner = entry_of(made, Kind.POINTWISE).owner
        assert (owner.pass_, owner.file, owner.line, owner.function) == ("backward", None, None, None)
        assert owner.name == "backward · aten::add_ · 1 call"

    def test_a_function_that_ran_before_the_recording_has_no_line(self) -> None:
        owner = entry_of(product(step(), 200, 9_000), Kind.MATRIX).owner
        assert (owner.file, owner.line, owner.function) == ("train.py", None, "train")
        assert owner.own is not None
        assert owner.own.line is None
        assert owner.name == "train in train.py · aten::mm 64×64, 64×64 f32 · 1 call"

    def test_a_function_without_a_line_leads_to_the_library_that_it_called(self) -> None:
        made = step().frame("/x/site-packages/library/model.py(9): forward", 100, 5_000)
        product(made, 200, 3_000)
        product(made, 3_100, 4_500)
        made.frame("/x/site-packages/library/heads.py(7): forward", 5_100, 9_000)
        product(made, 5_200, 8_000)
        first, second = entry_of(made, Kind.MATRIX).owners
        assert first.place == "train in train.py → forward in library/model.py"
        assert (first.file, first.function, first.line) == ("train.py", "train", None)
        assert first.library is not None
        assert (first.library.function, first.ns, first.calls) == ("forward", 4_200_000, 2)
        assert second.place == "train in train.py → forward in library/heads.py"

    def test_names_of_any_length_stay_short(self) -> None:
        long = "x" * 100_000
        made = step().frame(f"{long}.py(3): {long}", 100, 9_900)
        made.operator("aten::mm", 200, 9_000, **{"Input Dims": [[64, 64]], "Input type": [long]})  # type: ignore[arg-type]
        for entry in made.account().ledger.entries:
            assert all(len(owner.name) < 1_000 for owner in entry.owners)

    def test_work_of_an_optimizer_is_of_its_pass(self) -> None:
        made = step().mark("Optimizer.step#Adam.step", 100, 9_000)
        assert entry_of(product(made, 200, 8_000), Kind.MATRIX).owner.pass_ == "optimizer"


CLOSURE = "train.py(70): closure"


class TestClosure:
    """An optimizer whose `step` computes the loss again, as LBFGS does, and Lightning with each optimizer."""

    def passes_of(self, made: Made) -> dict[str, int]:
        """Time in ms of each pass."""
        account = made.account()
        check(account)
        passes = passes_of(account.limits.profile)
        return {
            name: round(int(passes.ns[passes.pass_ == number].sum()) / 1e6)
            for number, name in enumerate(OWNER_PASSES)
            if (passes.pass_ == number).any()
        }

    def drawn(self, step_frame: str) -> Made:
        made = step(20_000).mark("Optimizer.step#LBFGS.step", 1_000, 20_000)
        made.frame(step_frame, 1_000, 20_000).frame(CLOSURE, 2_000, 12_050)
        made.frame("nn.Module: Linear_0", 2_000, 5_000)
        product(made, 2_000, 5_000, **{"Sequence number": 5, "Fwd thread id": 0})
        made.operator("aten::mean", 5_001, 7_000)
        made.frame("torch/_tensor.py(500): backward", 7_000, 12_000)
        made.operator("MmBackward0", 7_001, 12_000, **{"Sequence number": 5, "Fwd thread id": 1})
        made.operator("aten::add_", 12_100, 20_000)
        return made

    @pytest.mark.parametrize("frame", ["torch/optim/lbfgs.py(300): step", "mine.py(5): step"])
    def test_the_model_inside_a_step_is_its_own_pass(self, frame: str) -> None:
        assert self.passes_of(self.drawn(frame)) == {"forward": 5, "backward": 5, "optimizer": 9, "other": 1}

    def test_without_stacks_operators_with_a_gradient_are_not_the_optimizers(self) -> None:
        made = self.drawn("")
        made.events = [each for each in made.events if each["cat"] != "python_function"]
        assert self.passes_of(made) == {"forward": 3, "backward": 5, "optimizer": 10, "other": 2}

    def test_an_update_in_a_hook_of_the_backward_pass_is_the_optimizers(self) -> None:
        made = step(10_000).frame("torch/_tensor.py(500): backward", 100, 9_900)
        made.operator("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 1_000, 9_000)
        made.frame("train.py(30): hook", 2_000, 8_500).mark("Optimizer.step#SGD.step", 3_000, 8_000)
        made.operator("aten::add_", 3_000, 8_000)
        assert self.passes_of(made) == {"backward": 3, "optimizer": 5, "other": 2}

    def test_an_optimizer_of_the_users_own_is_no_closure(self) -> None:
        made = step(10_000).mark("Optimizer.step#Mine.step", 0, 10_000).frame("mine.py(5): step", 0, 10_000)
        made.frame("mine.py(20): update", 0, 10_000).operator("aten::add_", 0, 10_000)
        assert self.passes_of(made) == {"optimizer": 10}


class TestWhat:
    def test_calls_with_other_shapes_are_owners_of_their_own(self) -> None:
        made = step()
        for at, rows in enumerate((8, 8, 16)):
            product(made, 100 + 1_000 * at, 1_000 + 1_000 * at, rows)
        owners = entry_of(made, Kind.MATRIX).owners
        assert [(each.shapes, each.calls, each.ns) for each in owners] == [
            ("8×64, 64×64", 2, 1_800_000), ("16×64, 64×64", 1, 900_000),
        ]  # fmt: skip
        assert [each.share for each in owners] == pytest.approx([2 / 3, 1 / 3])

    def test_too_many_shapes_are_one_owner(self) -> None:
        made = step(40_000)
        for at in range(30):
            product(made, 100 + 1_000 * at, 1_000 + 1_000 * at, 8 + at)
        [owner] = entry_of(made, Kind.MATRIX).owners
        assert (owner.operator, owner.shapes, owner.dtype, owner.calls) == ("aten::mm", "", "float32", 30)

    def test_owners_end_where_most_is_named(self) -> None:
        made = step().frame("model.py(10): forward", 50, 8_050)
        product(made, 100, 8_000)
        product(made, 8_100, 8_600, 16)
        entry = entry_of(made, Kind.MATRIX)
        assert [each.function for each in entry.owners] == ["forward"]
        assert entry.owner == entry.owners[0]

    def test_time_of_python_belongs_to_its_functions_and_says_how_often_they_ran(self) -> None:
        made = step()
        for at in range(4):
            made.frame(f"nn.Module: Linear_{at}", 100 + 2_000 * at, 2_000 + 2_000 * at)
        made.operator("aten::empty", 9_900, 9_901)
        entry = entry_of(made, Kind.PYTHON)
        assert (entry.owner.function, entry.owner.calls, entry.owner.ns) == ("nn.Module: Linear", 4, 7_600_000)


BODY = """
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with {context} as prof:
    for _ in range(6):
        x = torch.randn(512, 256)
        y = model(x)
        loss = y.logsumexp(1).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        prof.step()
"""
PLACES = {
    "module": BODY,
    "function": f"def main():\n{indent(BODY, '    ')}\nmain()\n",
    "class": f"class Trainer:\n    def fit(self):\n{indent(BODY, '        ')}\nTrainer().fit()\n",
}
CONTEXTS = {
    "plain": (
        "from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler",
        """profile(
    activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=3), with_stack=True,
    on_trace_ready=tensorboard_trace_handler("run"), record_shapes=True)""",
    ),
    "captured": (
        "from tb_tidy_plugin.capture import tidy_profile",
        "tidy_profile('run', wait=1, warmup=1, active=3)",
    ),
}


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("place", PLACES)
def test_no_owner_is_the_line_of_step_or_backward(place: str, context: str, tmp_path: Path) -> None:
    imports, call = CONTEXTS[context]
    program = tmp_path / "program.py"
    program.write_text(f"import torch\n{imports}\n{PLACES[place].replace('{context}', call)}")
    subprocess.run([sys.executable, program.name], cwd=tmp_path, check=True, capture_output=True)
    [trace] = find_traces(tmp_path / "run")
    entries = read_file(trace, Job(source_roots=(tmp_path,))).report.ledger.entries
    source = program.read_text().splitlines()
    owners = [owner for entry in entries[:4] for owner in entry.owners]
    lines = {source[owner.line - 1].strip() for owner in owners if owner.file == "program.py" and owner.line}
    assert "y = model(x)" in lines
    assert lines.isdisjoint({"prof.step()", "loss.backward()"})
    assert all(owner.own is None or owner.own.line in {None, *_definitions(source)} for owner in owners)


def _definitions(source: list[str]) -> Iterator[int]:
    return (number for number, line in enumerate(source, 1) if line.lstrip().startswith("def "))


@pytest.mark.parametrize("name", shared_names("lines"))
def test_the_first_owners_of_known_programs_are_the_true_lines(name: str) -> None:
    folder = shared(f"lines/{name}")
    [trace] = find_traces(folder)
    analysis = read_file(trace, Job(source_roots=(folder,)))
    entries, calls = analysis.report.ledger.entries, account_of(analysis.profile).owned
    truth = {(each["op"], each["start_ns"]): each for each in json.loads((folder / "truth.json").read_text())}
    judged = 0
    for entry, owned in list(zip(entries, calls, strict=True))[:3]:
        if entry.kind is Kind.PYTHON or entry.cause is Cause.DATA_LOADING or entry.owner.file is None:
            continue
        assert entry.owner.line is not None, entry.owner
        rows = [row for each in owned if each.calls for row in each.calls.row.tolist() if row != ABSENT]
        true = [_true_lines(analysis, truth, row) for row in rows if _is_of(analysis, entry.owner, row)]
        assert true
        assert all(entry.owner.line in lines for lines in true), (entry.owner, true)
        judged += 1
    assert judged


def _is_of(analysis: Analysis, owner: Owner, row: int) -> bool:
    place = analysis.aligner.place_of(row)
    return place is not None and (place.file, place.line) == (owner.file, owner.line)


def _true_lines(analysis: Analysis, truth: dict[tuple[str, int], dict[str, int]], row: int) -> range:
    """The lines of the operator of the truth that is nearest around an event, or is the event."""
    profile = analysis.profile
    for at in (row, *profile.ancestors(row)):
        name = profile.table.names[profile.table.name[at]]
        known = truth.get((name, profile.start_ns(at) + profile.table.origin_ns))
        if known:
            return range(known["line"], known["end_line"] + 1)
    return range(0)
