"""`tb-tidy record`: programs as they are, in processes of their own, with steps seen from outside."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.support.captured_job import document_of, traces_in
from tests.support.environments import same_imports
from tests.support.recordings import ROOT

pytestmark = [pytest.mark.torch, pytest.mark.slow]

LIMIT_S = 600

HEAD = """
import sys, torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(steps, optimizer=optimizer):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).square().mean().backward()
        optimizer.step()
"""


def recorded(
    folder: Path,
    program: str,
    *options: str,
    arguments: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """`tb-tidy record` of a program with this text, in `folder`."""
    (folder / "train.py").write_text(dedent(program), encoding="utf-8")
    return commanded(folder, *options, "--", sys.executable, "train.py", *arguments, environment=environment)


def commanded(
    folder: Path, *words: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from tb_tidy_plugin.cli.main import script; script()", "record", *words]
    return subprocess.run(
        command, cwd=folder, env={**same_imports(), **(environment or {})}, capture_output=True, text=True,
        timeout=LIMIT_S, check=False, input="typed\n",
    )  # fmt: skip


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Our own lines."""
    return [line for line in done.stderr.splitlines() if line.startswith("tb-tidy: ")]


def events_of(trace: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    return [each for each in events if "dur" in each]


def steps_of(trace: Path) -> list[tuple[float, float]]:
    marks = [
        each for each in events_of(trace)
        if each["name"].startswith("ProfilerStep#") and each["cat"] == "user_annotation"
    ]  # fmt: skip
    return sorted((each["ts"], each["ts"] + each["dur"]) for each in marks)


def count_in_steps(trace: Path, name: str) -> list[int]:
    """Events of this name that begin in each step."""
    starts = [each["ts"] for each in events_of(trace) if each["name"] == name]
    return [sum(begin <= start < end for start in starts) for begin, end in steps_of(trace)]


def test_a_program_is_recorded_as_it_is(tmp_path: Path) -> None:
    """Its steps, its arguments, its input and output, its exit code, its `sys.path`, and another `sitecustomize`."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins\nbuiltins.customized = True\n")
    program = f"""
    import builtins, os, sys
    before = set(sys.modules)
    print("torch" in before, "logging" in before, builtins.customized)
    print(*sys.argv[1:], input(), [path for path in sys.path if "bootstrap" in path])
    {HEAD.replace(chr(10), chr(10) + "    ")}
    train(20)
    sys.exit(7)
    """
    done = recorded(
        tmp_path,
        program,
        arguments=("--lr", "0.5"),
        environment={"PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{ROOT}"},
    )
    assert (done.returncode, done.stdout) == (7, "False False True\n--lr 0.5 typed []\n"), done.stderr
    (trace,) = traces_in(tmp_path / "runs" / "train-1")
    assert said(done) == [
        f"tb-tidy: recorded 5 steps of SGD: {Path('runs', 'train-1')}",
        f"tb-tidy: next: tb-tidy check {Path('runs', 'train-1')}",
    ]
    assert count_in_steps(trace, "aten::linear") == [1] * 5
    assert count_in_steps(trace, "Optimizer.step#SGD.step") == [1] * 5
    document = document_of(trace)
    assert document["steps"]["count"] > 3
    assert "train.py" in {source["file"].rpartition("/")[2] for source in document["sources"]}
    steps = steps_of(trace)
    own = [each["ts"] for each in events_of(trace) if "tb_tidy_plugin/capture/faults.py" in each["name"]]
    inside = [start for start in own for begin, end in steps if begin <= start < end]
    assert own
    assert not inside, "the recorder's own work is in no step"


def test_the_folder_and_the_numbers_can_be_chosen(tmp_path: Path) -> None:
    options = ("-o", "mine", "--wait", "1", "--warmup", "1", "--steps", "2", "--no-stacks")
    done = recorded(tmp_path, f"{HEAD}\ntrain(5)", *options)
    assert done.returncode == 0
    (trace,) = traces_in(tmp_path / "mine")
    assert len(steps_of(trace)) == 2
    assert not [each for each in events_of(trace) if each["cat"] == "python_function"]
    assert not (tmp_path / "runs").exists()


NOT_RECORDED = {
    "torch is not imported": ("print('done')", "the program did not import torch"),
    "no step": ("import torch\ntorch.ones(2).add(1)", "no optimizer made a step in the main thread"),
    "few steps": (
        f"{HEAD}\ntrain(3)",
        "3 steps were seen, and a recording takes 17. Run more steps, or lower `--wait`",
    ),
    "a profiler of its own": (
        f"{HEAD}\nwith torch.profiler.profile() as own:\n    train(20)\nassert own.events()",
        "the program uses a profiler of its own",
    ),
    "a profiler of its own, later": (
        f"{HEAD}\ntrain(7)\nwith torch.profiler.profile() as own:\n    train(20)\nassert len(own.events()) > 50",
        "the program uses a profiler of its own",
    ),
    "python -I": ("import os, sys\nos.execv(sys.executable, [sys.executable, '-I', '-c', ''])", "did not import torch"),
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.proof if case.endswith("later") else []) for case in NOT_RECORDED],
)
def test_the_reason_is_said_where_nothing_is_recorded(case: str, tmp_path: Path) -> None:
    program, reason = NOT_RECORDED[case]
    done = recorded(tmp_path, program)
    assert done.returncode == 0, done.stderr
    (line,) = said(done)
    assert line.startswith(f"tb-tidy: nothing was recorded: {reason}" if "-I" not in case else "tb-tidy: nothing")
    assert reason in line
    assert list((tmp_path / "runs").iterdir()) == []


def test_steps_of_a_gan_are_steps_of_both_optimizers(tmp_path: Path) -> None:
    """The discriminator steps five times for each step of the generator, whose step marks those of the program."""
    program = f"""
    {HEAD.replace(chr(10), chr(10) + "    ")}
    generator = torch.optim.Adam(model.parameters())
    for _ in range(12):
        train(5)
        train(1, generator)
    """
    recorded(tmp_path, program, "--wait", "6", "--warmup", "1", "--steps", "2")
    (trace,) = traces_in(tmp_path / "runs" / "train-1")
    assert count_in_steps(trace, "Optimizer.step#SGD.step") == [5, 5]
    assert count_in_steps(trace, "Optimizer.step#Adam.step") == [1, 1]


def test_programs_that_wrap_and_inherit_optimizers_run_as_before(tmp_path: Path) -> None:
    """A class above another one, a scheduler that wraps `step`, a closure, accumulated gradients."""
    program = f"""
    {HEAD.replace(chr(10), chr(10) + "    ")}
    class Mine(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    mine = Mine(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(mine, 1)
    for _ in range(20):
        for _ in range(2):
            model(torch.ones(2, 4)).square().mean().backward()
        assert mine.step(lambda: 3.0) == 3.0
        scheduler.step()
    print("ended")
    """
    done = recorded(tmp_path, program)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
    (trace,) = traces_in(tmp_path / "runs" / "train-1")
    assert count_in_steps(trace, "Optimizer.step#Mine.step") == [2] * 5, "torch marks that of the class above, too"
    assert count_in_steps(trace, "aten::linear") == [2] * 5


def test_a_step_that_is_compiled_runs_as_before(tmp_path: Path) -> None:
    program = f"""
    {HEAD.replace(chr(10), chr(10) + "    ")}
    model(torch.ones(2, 4)).square().mean().backward()
    before = model.weight.detach().clone()
    torch.compile(lambda: optimizer.step(), backend="eager")()
    expected = before - 0.1 * model.weight.grad  # torch 2.14 rounds the last bit otherwise where it compiles a step
    print("ended", torch.allclose(model.weight, expected, rtol=1e-6), torch.equal(model.weight, before))
    """
    done = recorded(tmp_path, program)
    assert (done.returncode, done.stdout) == (0, "ended True False\n"), done.stderr


def test_a_failure_of_ours_is_not_the_programs(tmp_path: Path) -> None:
    """The folder is a file: torch raises where the profiler is made."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine").chmod(0o700)
    program = f"{HEAD}\nimport shutil\nshutil.rmtree('mine')\nopen('mine', 'w').close()\ntrain(20)\nprint('ended')"
    done = recorded(tmp_path, program, "-o", "mine")
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
    assert said(done)[-1].startswith("tb-tidy: nothing was recorded: ")


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_reach_the_program_which_decides(number: int, code: int, tmp_path: Path) -> None:
    """Once it ends by the signal, and once it has a handler; the first has been recorded by then."""
    handled = f"""
    import signal, sys, time
    if sys.argv[1:]:
        signal.signal({int(number)}, lambda *_: sys.exit(5))
    print("ready", flush=True)
    time.sleep({LIMIT_S})
    """
    (tmp_path / "train.py").write_text(dedent(handled), encoding="utf-8")
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # tests may run in the background
    started = f"{heard}; from tb_tidy_plugin.cli.main import script; script()"
    for arguments, expected in ((), code), (("handled",), 5):
        process = subprocess.Popen(
            [sys.executable, "-c", started, "record", sys.executable, "train.py", *arguments], cwd=tmp_path,
            env=same_imports(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(number)
        _, errors = process.communicate(timeout=LIMIT_S)
        assert process.returncode == expected, errors
        assert "nothing was recorded: the program did not import torch" in errors


def test_each_rank_writes_its_own_recording_and_no_other_process_does(tmp_path: Path) -> None:
    """Two ranks by torchrun, one of them with a loader's worker and a program that trains, too."""
    program = """
    import os, subprocess, sys, torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader

    if __name__ == "__main__":
        child = len(sys.argv) > 1
        if not child:
            dist.init_process_group("gloo")
        model = torch.nn.Linear(4, 4)
        ddp = model if child else torch.nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        starts = not child and dist.get_rank() == 0
        loader = DataLoader(torch.ones(40, 4), batch_size=2, num_workers=1 if starts else 0,
                            multiprocessing_context="spawn" if starts else None)
        for batch in loader:
            optimizer.zero_grad()
            ddp(batch).square().mean().backward()
            optimizer.step()
        if starts:
            subprocess.run([sys.executable, __file__, "child"], check=True)
        if not child:
            dist.destroy_process_group()
    """
    (tmp_path / "train.py").write_text(dedent(program), encoding="utf-8")
    run = (
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--local-addr",
        "127.0.0.1",
        "--nproc-per-node",
        "2",
        "train.py",
    )
    done = commanded(tmp_path, "-o", "mine", "--", *run, environment={"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    traces = traces_in(tmp_path / "mine")
    assert sorted(document_of(trace)["settings"]["process"]["rank"] for trace in traces) == [0, 1]
    assert [len(steps_of(trace)) for trace in traces] == [5, 5]
    assert said(done) == ["tb-tidy: recorded 5 steps of SGD: mine, 2 files", "tb-tidy: next: tb-tidy check mine"]


def test_ranks_of_multiprocessing_are_told_apart(tmp_path: Path) -> None:
    """Their processes end without the functions of `atexit`; here before the steps after the recording are timed."""
    program = """
    import os, sys, torch

    def train(rank):
        os.environ["RANK"] = str(rank)
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(14):
            model(torch.ones(2, 4)).square().mean().backward()
            optimizer.step()

    if __name__ == "__main__":
        torch.multiprocessing.spawn(train, nprocs=2)
    """
    done = recorded(tmp_path, program, "-o", "mine")
    assert done.returncode == 0, done.stderr
    assert [len(steps_of(trace)) for trace in traces_in(tmp_path / "mine")] == [3, 3], "the last one broke off"
    assert said(done)[0].startswith(
        "tb-tidy: recorded 2 of 5 steps, since the program ended or uses a profiler, of SGD:"
    )


def test_a_program_of_an_environment_without_torchtidy(tmp_path: Path) -> None:
    """Nothing finds the package by its name; finders of the program wrap all others, ours as well."""
    hiding = """
    import sys

    class Hiding:
        def __init__(self, finder):
            self.finder = finder

        def find_spec(self, name, path=None, target=None):
            return None if name == "tb_tidy_plugin" else self.finder.find_spec(name, path, target)

    sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]
    """
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(dedent(hiding))
    program = f"""
    import importlib.util
    assert importlib.util.find_spec("tb_tidy_plugin") is None
    {HEAD.replace(chr(10), chr(10) + "    ")}
    train(20)
    """
    (tmp_path / "train.py").write_text(dedent(program), encoding="utf-8")
    launcher = f"import os; os.environ['PYTHONPATH'] = {str(tmp_path / 'site')!r}"
    start = f"{launcher}; from tb_tidy_plugin.cli.main import script; script()"
    done = subprocess.run(
        [sys.executable, "-c", start, "record", sys.executable, "train.py"], cwd=tmp_path, env=same_imports(),
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(traces_in(tmp_path / "runs" / "train-1")) == 1, done.stderr


class TestCommand:
    def test_a_module_and_a_script_need_no_python_before_them(self, tmp_path: Path) -> None:
        (tmp_path / "package").mkdir()
        (tmp_path / "package" / "__init__.py").touch()
        (tmp_path / "package" / "run.py").write_text("import sys\nprint(__name__, *sys.argv[1:])\n")
        for words in (("-m", "package.run", "-x"), ("--", "-m", "package.run", "-x"), ("package/run.py", "-x")):
            assert commanded(tmp_path, *words).stdout == "__main__ -x\n"
        assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == []

    def test_a_program_that_does_not_exist(self, tmp_path: Path) -> None:
        done = commanded(tmp_path, "no-such-program", "-x")
        assert done.returncode == 2
        assert "`no-such-program` cannot be started: No such file or directory." in done.stderr

    @pytest.mark.parametrize("options", [("--steps", "0"), ("--wait", "-1"), ()])
    def test_wrong_words(self, options: tuple[str, ...], tmp_path: Path) -> None:
        assert commanded(tmp_path, *options).returncode == 2

    def test_ranks_that_are_started_outside_need_a_folder(self, tmp_path: Path) -> None:
        done = commanded(tmp_path, "train.py", environment={"SLURM_PROCID": "1"})
        assert done.returncode == 2
        assert "Name it with `-o FOLDER`." in done.stderr
