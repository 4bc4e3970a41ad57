"""Operators against the installed torch itself: its `key_averages`, its counts of FLOPs, its operators' arguments."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.analysis.operator_tables import By, operator_table
from tb_tidy_plugin.profile.events.inputs import Inputs, signatures_of
from tb_tidy_plugin.profile.events.nesting import HOST_CALLS, nest
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.flops import FORMULAS, estimate, estimates_of
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import ROOT

pytestmark = pytest.mark.torch

RECORDER = Path(__file__).with_name("live_key_averages.py")
PROGRAMS = (
    "train_a_cnn", "train_a_transformer", "loop_over_an_lstm", "load_with_threads", "infer",
    "repeat_in_the_backward_pass", "reduce_between_processes", "multiply_and_add", "convolve_both_ways",
)  # fmt: skip

Key = tuple[str, str, bool]
Figures = tuple[int, int, int]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fresh traces with torch's own tables of them."""
    if importlib.util.find_spec("torch") is None and not os.environ.get("CI"):
        pytest.skip("torch is not installed")
    path = tmp_path_factory.mktemp("key_averages")
    done = subprocess.run(
        [sys.executable, str(RECORDER), str(path)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return path


@lru_cache(maxsize=4)
def profile_of(folder: Path, program: str) -> Profile:
    return Profile(read_trace(folder / f"{program}.pt.trace.json"))


@lru_cache(maxsize=1)
def said(folder: Path) -> dict[str, Any]:
    live: dict[str, Any] = json.loads((folder / "live.json").read_text())
    return live


def torchs(folder: Path, program: str, by: str) -> dict[Key, Figures]:
    """Rows of `key_averages`; `[memory]` stands for allocations outside all calls."""
    return {
        (row["name"], str(row["shapes"]), row["annotation"]): (
            row["calls"],
            row["host_total_ns"],
            row["host_self_ns"],
        )
        for row in said(folder)[program][f"by_{by}"]
        if row["name"] != "[memory]"
    }


@pytest.mark.parametrize("by", ["name", "shape"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_calls_and_times_are_torchs_to_the_nanosecond(folder: Path, program: str, by: By) -> None:
    table = operator_table(profile_of(folder, program), by)
    ours = {
        (
            row.name,
            str([list(shape) for shape in row.shapes]) if row.shapes is not None else "None",
            row.kind == "annotation",
        ): (row.totals.calls, row.totals.host_total_ns, row.totals.host_self_ns)
        for row in table.rows
    }
    theirs = torchs(folder, program, by)
    if program == "reduce_between_processes":
        # Told apart by torch alone, since the trace does not say it: an operation that ends on another thread has no
        # self time there; and annotations' shapes are not in the trace.
        name = "gloo:all_reduce"
        ((key, (calls, total_ns, self_ns)),) = [item for item in theirs.items() if item[0][0] == name]
        assert self_ns == 0
        del theirs[key]
        assert ours.pop((name, "None" if by == "name" else "[]", True)) == (calls, total_ns, total_ns)
    assert ours == theirs
    assert len(ours) >= 6


@pytest.mark.parametrize("program", PROGRAMS)
def test_with_stacks_torch_counts_python_frames_as_calls(folder: Path, program: str) -> None:
    profile = profile_of(folder, f"{program}_with_stacks")
    nested = nest(profile.table, profile.plain_groups, (*HOST_CALLS, Category.PYTHON))
    signatures = signatures_of(profile.table, nested.rows, profile.distinct_inputs)
    ours: defaultdict[Key, list[int]] = defaultdict(lambda: [0, 0, 0])
    python = set()
    for at, row in enumerate(nested.rows.tolist()):
        shapes = signatures.shapes[signatures.shape_number[signatures.number[at]]]
        category = profile.category(row)
        key = (profile.plain_name(row), str([list(shape) for shape in shapes]), category is Category.ANNOTATION)
        for figure, value in enumerate((1, profile.duration_ns(row), int(nested.self_ns[at]))):
            ours[key][figure] += value
        if category is Category.PYTHON:
            python.add(key)
    theirs = torchs(folder, f"{program}_with_stacks", "shape")
    names_of_async = {key[0] for key in theirs if key[0] == "gloo:all_reduce"}
    compared = {key for key in theirs if key[0] not in names_of_async}
    assert {key for key in ours if key[0] not in names_of_async} == compared
    differing = {key for key in compared if tuple(ours[key]) != theirs[key]}
    # The frames that open and close an annotation overlap it in part: torch takes the overlap off the frame around
    # twice, so that its self time may be negative.
    assert differing <= python
    assert len(differing) <= 6
    for key in differing:
        assert tuple(ours[key][:2]) == theirs[key][:2]
        assert ours[key][2] >= max(theirs[key][2], 0)


@pytest.mark.parametrize("program", PROGRAMS)
def test_flops_that_the_profiler_counts(folder: Path, program: str) -> None:
    """`with_flops=True` counts mm, addmm, bmm, baddbmm, conv2d, add and mul."""
    profile = profile_of(folder, program)
    theirs: Counter[tuple[str, str]] = Counter()
    for name, shapes, flops in said(folder)[program]["flops"]:
        theirs[name, str(shapes)] += flops
    ours = estimated(profile, by_shape=True)
    for key, flops in theirs.items():
        if key[0] in {"aten::add", "aten::mul"} and ours[key] != flops:
            # The first input is broadcast: torch counts its elements, we count those of the result.
            assert ours[key] > flops, key
        else:
            assert ours[key] == flops, key
    if program == "multiply_and_add":
        assert {name for name, _ in theirs} == {
            "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mul", "aten::add", "aten::conv2d",
        }  # fmt: skip


def estimated(profile: Profile, by_shape: bool) -> Counter[tuple[str, str]]:
    """Sum of estimated FLOPs by name and shapes."""
    flops, signatures = estimates_of(profile).flops.tolist(), profile.signatures
    sums: Counter[tuple[str, str]] = Counter()
    for at, row in enumerate(profile.nested.rows.tolist()):
        shapes = signatures.shapes[signatures.shape_number[signatures.number[at]]]
        key = str([list(shape) for shape in shapes]) if by_shape else ""
        sums[profile.name(row), key] += max(flops[at], 0)
    return sums


def test_flops_that_torchs_counter_counts(folder: Path) -> None:
    """`torch.utils.flop_counter` counts transposed convolutions and gradients too."""
    theirs = json.loads((folder / "flops.json").read_text())["convolve_both_ways"]
    ours = estimated(profile_of(folder, "convolve_both_ways"), by_shape=False)  # which ran twice
    assert set(theirs) == {"aten.convolution", "aten.convolution_backward", "aten.addmm", "aten.bmm"}
    for name, flops in theirs.items():
        assert ours[name.replace(".", "::"), ""] == 2 * flops, name


ATTENTION_FORWARD = [
    name for name in FORMULAS if "_attention" in name and "backward" not in name and not name.endswith("_forward")
]
ATTENTION_BACKWARD = [name for name in FORMULAS if name.endswith("attention_backward") and "scaled_dot" in name]


@pytest.mark.parametrize("name", [*ATTENTION_FORWARD, *ATTENTION_BACKWARD])
def test_flops_of_attention_without_a_mask(folder: Path, name: str) -> None:
    told = json.loads((folder / "flops.json").read_text())
    attention, arguments = told["attention"], told["arguments"][name]
    tensors = {
        "query": attention["query"], "key": attention["key"], "value": attention["key"],
        "grad_out": attention["query"], "grad_out_": attention["query"],
    }  # fmt: skip
    inputs = Inputs(
        dims=tuple(tuple(tensors.get(argument, ())) for argument in arguments),
        dtypes=tuple("float" if argument in tensors else "" for argument in arguments),
        concrete=tuple("False" if argument == "is_causal" else "" for argument in arguments),
    )
    found = estimate(name, inputs)
    assert found is not None
    assert found.flops == attention["backward" if "backward" in name else "forward"]


def test_formulas_know_where_operators_have_what(folder: Path) -> None:
    """A wrong position would go unnoticed where nobody records that operator: inputs made by name must be estimated."""
    arguments = json.loads((folder / "flops.json").read_text())["arguments"]
    for name in FORMULAS:
        if name in arguments and any(part in name for part in ("conv", "attention", "norm")):
            found = estimate(name, made_up(arguments[name]))
            assert found is not None, name
            assert found.bytes is not None or found.flops is not None, name
            if "conv" in name and "trans" not in name and "backward" not in name:
                assert found.flops == 2 * (2 * 3 * 3) * (4 * 4 * 3 * 3), name  # images × places × weights
    ours = {name for name in FORMULAS if "::" not in name}  # the others are of servers, which torch does not know
    unknown = {name for name in ours if name not in arguments and not any(part in name for part in OVERLOADED)}
    assert not unknown


OVERLOADED = (
    "add", "sub", "rsub", "mul", "div", "pow", "remainder", "fmod", "fill_", "conv_transpose2d", "conv_transpose3d",
)  # fmt: skip
"""Operators without an overload of no name (only `aten::add.Tensor` and the like)."""


def made_up(arguments: list[str]) -> Inputs:
    """One image or sequence of 4 heads for whatever an operator calls its tensors; all else is left out."""
    tensors = dict.fromkeys(
        ("input", "self", "grad_output", "grad_out", "grad_out_", "query", "key", "value"), "2x4x5x5"
    )
    tensors |= {"weight": "4x4x3x3", "grad_out": "2x4x5x5"}
    scalars = {
        "stride": "[2, 2]", "padding": "[1, 1]", "dilation": "[1, 1]", "transposed": "False", "is_causal": "True",
        "output_mask": "[True, True, True]", "training": "True", "use_input_stats": "True", "custom_mask_type": "1",
    }  # fmt: skip
    return Inputs(
        dims=tuple(tuple(map(int, filter(None, tensors.get(argument, "").split("x")))) for argument in arguments),
        dtypes=tuple("float" if argument in tensors else "" for argument in arguments),
        concrete=tuple(scalars.get(argument, "") for argument in arguments),
    )
