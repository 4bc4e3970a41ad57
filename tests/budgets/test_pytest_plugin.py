"""The fixture `tidy` in a test run of its own, whose process imports torch once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tb_tidy_plugin.budgets.baselines import StepBaseline, StepBaselines, machine
from tb_tidy_plugin.system.decoders import decode

OPTIONS = ("-p", "no:torchtidy", "-p", "tb_tidy_plugin.budgets.pytest_plugin", "-p", "no:cacheprovider")

TESTS = """
import pytest
import torch

model = torch.nn.Linear(4, 4)
batches = [torch.ones(2, 4), torch.zeros(2, 4)]
runs = []


def train_step(x):
    loss = model(x).square().mean()
    loss.backward()
    return loss.item()


def recorded(tidy):
    with tidy.profile(warmup=0, recorded=2, timed=2) as run:
        for batch in run.steps(batches):
            train_step(batch)
    return run


@pytest.fixture
def run(tidy):
    runs or runs.append(recorded(tidy))
    return runs[0]


def test_kept(run):
    run.assert_budget(reads=1, allocations=">0", graph_breaks=0, collectives="==0", findings=["cat-in-loop"])


def test_broken(run):
    run.assert_budget(reads=0, kernels=10)


def test_not_checked(run):
    run.assert_budget(findings=["kernels-far-from-limit"])


@pytest.mark.parametrize("budget", [
    {}, {"reads": -1}, {"reads": "few"}, {"findings": "cat-in-loop"}, {"findings": ["no-rule"]}, {"step_ratio": 0},
])
def test_wrong(run, budget):
    with pytest.raises(ValueError) as raised:
        run.assert_budget(**budget)
    print("said:", raised.value)


def test_few_steps(tidy):
    with tidy.profile() as run:
        with pytest.raises(TypeError) as raised:
            run.steps(5)
        print("said:", raised.value)
        run.step()
    run.assert_budget(reads=0)


@pytest.mark.parametrize("before", ["none", "fast", "slow", "damaged"])
def test_ratio(tidy, before):
    recorded(tidy).assert_budget(step_ratio=1.5)
"""

PROGRAM = """
import sys, pytest
options = sys.argv[1:]
pytest.main([*options, "-rA"])
pytest.main([*options, "-rA", "-k", "none", "--tidy-baseline-update"])
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output of the tests above: all of them, and then the update of a baseline."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("tests")
    (folder / "test_step.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]")
    for before, step_ns in (("fast", 1), ("slow", 10**15), ("damaged", 1)):
        store = StepBaselines(folder / ".torchtidy", f"test_step.py::test_ratio[{before}]", update=True)
        store.write(1, "", step_ns, 2)
        if before == "damaged":
            store.written[0].write_text("[]")
    return _run(folder, "-c", PROGRAM, *OPTIONS)


def _run(folder: Path, *arguments: str, first: Path | None = None) -> str:
    paths = [str(path) for path in (first, Path(__file__).parents[2]) if path is not None]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "400"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False).stdout


def _tests(said: str, outcome: str) -> list[str]:
    return re.findall(rf"^{outcome} test_step\.py::(\S+)", said, re.MULTILINE)


@pytest.mark.torch
def test_a_test_fails_where_a_budget_is_not_kept_and_is_skipped_without_baseline(said: str) -> None:
    wrong = [f"test_wrong[budget{number}]" for number in range(6)]
    assert _tests(said, "PASSED") == ["test_kept", *wrong, "test_ratio[slow]", "test_ratio[none]"]
    assert _tests(said, "FAILED") == [
        "test_broken", "test_not_checked", "test_few_steps", "test_ratio[fast]", "test_ratio[damaged]",
    ]  # fmt: skip
    reason = f"no baseline of this test is stored for {machine('')}; run pytest --tidy-baseline-update"
    assert re.search(rf"^SKIPPED \[1\] test_step\.py:\d+: {re.escape(reason)}$", said, re.MULTILINE)


@pytest.mark.torch
def test_a_failure_names_the_figure_and_the_lines(said: str) -> None:
    line = TESTS.splitlines().index("    return loss.item()") + 1
    assert "the step does not keep its budget" in said
    assert "reads: 1 per step; at most 0" in said
    assert f"  1: aten::item at test_step.py:{line} in train_step: return loss.item()" in said
    assert "kernels: cannot be counted, the recording contains no device work" in said
    assert re.search(r"Recording: .*\.pt\.trace\.json", said)
    assert "kernels-far-from-limit was not checked: " in said
    assert re.search(r"step_ratio: a step takes .* times the baseline of 1 ns; at most 1.5 times", said)


@pytest.mark.torch
@pytest.mark.parametrize(
    "error",
    [
        "assert_budget() needs a budget, such as syncs=0",
        'reads=-1 must be a number, 0 or greater, or a comparison such as "<=400"',
        "reads='few' must be a number, 0 or greater, or a comparison such as \"<=400\"",
        "findings='cat-in-loop' must be a number or a list of rules",
        "findings names no-rule, which `tb-tidy rules` does not list",
        "step_ratio=0 must be a number greater than 0",
        "`steps` takes batches or a loader, not 5; pass a number to `tidy.profile(recorded=3)`",
        "The test marked 1 step, but the recording needs 7. Iterate over `run.steps()`, or call `run.step()`",
        "cannot be used: Expected `object`, got `array`. Store it again with --tidy-baseline-update.",
    ],
)
def test_what_cannot_be_checked_is_an_error(said: str, error: str) -> None:
    assert error in said


@pytest.mark.torch
def test_the_summary_names_the_stored_baseline(said: str) -> None:
    [path] = re.findall(r"^torchtidy: baseline stored in (.*)$", said, re.MULTILINE)
    assert decode(Path(path).read_bytes(), StepBaseline).test == "test_step.py::test_ratio[none]"


def test_the_plugin_imports_nothing_but_itself_at_the_start() -> None:
    program = """
import sys, tb_tidy_plugin.budgets.pytest_plugin
print(sorted(name for name in sys.modules if name.startswith("tb_tidy_plugin")))
print([name for name in ("numpy", "msgspec", "torch", "tensorboard") if name in sys.modules])
"""
    parts = [
        "tb_tidy_plugin", "tb_tidy_plugin.budgets", "tb_tidy_plugin.budgets.pytest_plugin", "tb_tidy_plugin.words",
        "tb_tidy_plugin.words.errors",
    ]  # fmt: skip
    assert _run(Path.cwd(), "-c", program) == f"{parts}\n[]\n"


def test_a_broken_install_fails_only_the_tests_that_use_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_fine(): pass\ndef test_step(tidy): pass")
    (tmp_path / "msgspec.py").write_text("raise ImportError('no msgspec')")
    said = _run(tmp_path, "-m", "pytest", *OPTIONS, first=tmp_path)
    assert "1 passed, 1 error" in said
    assert "The fixture `tidy` cannot be loaded: no msgspec" in said


def test_baselines_of_tests_profiles_and_devices_lie_apart(tmp_path: Path) -> None:
    first = StepBaselines(tmp_path, "tests/test_a.py::test_step[1]", update=True)
    second = StepBaselines(tmp_path, "tests/test_a.py::test_step(1)", update=True)
    first.write(1, "", 100, 5)
    first.write(2, "", 200, 5)
    first.write(1, "A100", 300, 5)
    second.write(1, "", 400, 5)
    found = [first.read(1, ""), first.read(2, ""), first.read(1, "A100"), second.read(1, "")]
    assert [each and each.step_ns for each in found] == [100, 200, 300, 400]
    assert len({*first.written, *second.written}) == 4
    assert second.read(2, "") is None
