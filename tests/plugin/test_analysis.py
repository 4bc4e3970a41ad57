"""An analysis as TensorBoard's process sees it, whatever becomes of the worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tb_tidy_plugin.plugin.analysis import STOPPED, WORKER, AnalysisSettings, FileAnalysis, remembered
from tb_tidy_plugin.plugin.analysis_worker import AnalysisProgress, AnalysisResult, Failure, FirstFindings
from tb_tidy_plugin.trace.cache import Cache
from tb_tidy_plugin.trace.files import TraceFile
from tests.support.environments import same_imports
from tests.support.logdirs import trace
from tests.support.user_rule import write_rule
from tests.support.waiting import until
from tests.support.workers import WITH_MADE_UP_RULE, script
from tests.support.written import event, kineto_text, write


def outcome(path: Path, command: tuple[str, ...]) -> AnalysisResult | Failure:
    return FileAnalysis(TraceFile("run", "worker", "", path), command).outcome(lambda _: None)


def failure(path: Path, code: str) -> Failure:
    found = outcome(path, script(code))
    assert isinstance(found, Failure)
    return found


def test_the_result_of_the_real_worker(tmp_path: Path) -> None:
    seen: list[AnalysisProgress | FirstFindings] = []
    file = TraceFile("run", "worker", "", trace(tmp_path / "worker.pt.trace.json"))
    found = FileAnalysis(file, WORKER).outcome(seen.append)
    assert isinstance(found, AnalysisResult)
    assert found.report.worker == "worker"
    progress = [each for each in seen if isinstance(each, AnalysisProgress)]
    assert list(dict.fromkeys(each.state for each in progress)) == ["reading", "analysing"]
    assert progress[-1].stage == "Adding up operators"


def test_a_module_of_the_users_does_not_stand_in_for_pythons_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = trace(tmp_path / "runs" / "worker.pt.trace.json")
    (tmp_path / "subprocess.py").write_text("raise SystemExit('the wrong module')")
    (tmp_path / "msgspec.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    assert isinstance(outcome(path, WORKER), AnalysisResult)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("os.kill(os.getpid(), 9)", "memory ran out"),
        ("os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("os.abort()", "SIGABRT"),
        ("raise RuntimeError('secret detail')", "internal error"),
        ("sys.exit(0)", "internal error"),
        ("print('this is not a message', flush=True); time.sleep(600)", "memory ran out"),
        ('print(\'{"type": "unknown"}\', flush=True); time.sleep(600)', "memory ran out"),
        ("os.close(0); os._exit(3)", "internal error"),
    ],
)
def test_a_worker_that_dies_is_a_sentence_with_advice(tmp_path: Path, code: str, words: str) -> None:
    found = failure(tmp_path / "w.pt.trace.json", code)
    assert words in found.error
    assert "try again" in found.advice
    assert "secret detail" not in found.error + found.advice


def test_a_worker_that_is_killed_gets_another_try(tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    *start, code = WITH_MADE_UP_RULE
    dying = (
        f"import os, pathlib; p = pathlib.Path({str(killed)!r}); p.exists() or [p.touch(), os.kill(os.getpid(), 9)]; "
    )
    seen: list[AnalysisProgress | FirstFindings] = []
    file = TraceFile("run", "worker", "", trace(tmp_path / "worker.pt.trace.json"))
    found = FileAnalysis(file, (*start, dying + code)).outcome(seen.append)
    assert isinstance(found, AnalysisResult)
    assert isinstance(seen[0], AnalysisProgress)
    assert seen[0].stage == "Starting again, since the first try was killed"


WORK = "        for row in"
SPINS = "        while True:\n            pass\n"
SLEEPS = "        import time\n        time.sleep(600)\n"
ALLOCATES = "        hoard = [bytes(10**6) for _ in range(10**6)]\n"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit less")
@pytest.mark.parametrize(
    ("does", "key", "most", "error"),
    [
        (SPINS, "max-processor-s", "2", "The analysis took more processor time than 2 s"),
        (SLEEPS, "max-wall-s", "6", "The analysis took longer than 6 s"),
        (ALLOCATES, "max-memory-gb", "0.2", "The analysis needs more memory than 200 MB"),
    ],
)
def test_a_worker_that_takes_more_than_it_may_ends_and_what_raises_the_limit_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, does: str, key: str, most: str, error: str
) -> None:
    tries = tmp_path / "tries"
    write_rule(tmp_path, "r.py", (WORK, f"        open({str(tries)!r}, 'a').write('x')\n{does}{WORK}"))
    configuration = tmp_path / "tb-tidy.toml"
    configuration.write_text(f'rules = ["r.py"]\nselect = ["TT999"]\n[limits]\n{key} = {most}\n')
    file = TraceFile("run", "worker", "", trace(tmp_path / "worker.pt.trace.json"))
    found = FileAnalysis(file, WORKER, AnalysisSettings(configuration)).outcome(lambda _: None)
    assert isinstance(found, Failure)
    assert found.error == f"{error}, the limit `{key}`."
    assert f"`--{key}`, or `[limits]` in the configuration" in found.advice
    assert tries.read_text() == "x", "another try would end the same way"
    assert key == "max-memory-gb" or "r.py" in caplog.text, "the log says where it was"


def test_a_worker_that_fails_by_itself_would_fail_again(tmp_path: Path) -> None:
    count = tmp_path / "count"
    failure(tmp_path / "w.pt.trace.json", f"open({str(count)!r}, 'a').write('x'); raise RuntimeError")
    assert count.read_text() == "x"


def test_what_a_dying_worker_says_is_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    failure(tmp_path / "w.pt.trace.json", "print('x' * 100_000, file=sys.stderr); raise RuntimeError('the detail')")
    assert "RuntimeError: the detail" in caplog.text
    assert len(caplog.text) < 10_000


def test_a_worker_that_cannot_be_started(tmp_path: Path) -> None:
    found = outcome(tmp_path / "w.pt.trace.json", (str(tmp_path / "no-such-program"),))
    assert isinstance(found, Failure)
    assert found.error == "The analysis could not be started: No such file or directory."


def test_stopped_while_it_runs(tmp_path: Path) -> None:
    running = tmp_path / "running"
    code = f"open({str(running)!r}, 'w').close(); time.sleep(600)"
    analysis = FileAnalysis(TraceFile("", "", "", tmp_path), script(code))
    outcomes: list[AnalysisResult | Failure] = []
    thread = threading.Thread(target=lambda: outcomes.append(analysis.outcome(lambda _: None)))
    thread.start()
    until(running.exists)
    analysis.stop()
    thread.join(30)
    assert outcomes == [STOPPED]


def test_stopped_before_it_runs_it_does_not_begin(tmp_path: Path) -> None:
    analysis = FileAnalysis(TraceFile("", "", "", tmp_path), script(f"open({str(tmp_path / 'began')!r}, 'w')"))
    analysis.stop()
    assert analysis.outcome(lambda _: None) == STOPPED
    assert not (tmp_path / "began").exists()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_the_worker_inherits_no_socket_of_its_parent(tmp_path: Path) -> None:
    listed = tmp_path / "listed"
    left_open = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(left_open, True)
    try:
        failure(tmp_path, f"import json; json.dump(os.listdir('/proc/self/fd'), open({str(listed)!r}, 'w'))")
    finally:
        os.close(left_open)
    others = [number for number in json.loads(listed.read_text()) if int(number) > 2]
    assert len(others) == 1  # the listing itself


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_killed_parent_leaves_no_worker_behind(tmp_path: Path) -> None:
    endless = tmp_path / "w.pt.trace.json"
    os.mkfifo(endless)  # nobody ever writes into it
    code = (
        "from pathlib import Path; from tb_tidy_plugin.plugin.analysis import FileAnalysis, WORKER; "
        "from tb_tidy_plugin.trace.files import TraceFile; "
        f"FileAnalysis(TraceFile('', '', '', Path({str(endless)!r})), WORKER).outcome(print)"
    )
    environment = same_imports()
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as parent:
        [worker] = until(lambda: processes_below(parent.pid))
        parent.kill()
    until(lambda: not is_alive(worker))


def processes_below(parent: int) -> list[int]:
    folders = Path("/proc").glob("[0-9]*")
    return [int(folder.name) for folder in folders if stat_of(int(folder.name))[1:2] == [str(parent)]]


def is_alive(process: int) -> bool:
    return stat_of(process)[:1] not in ([], ["Z"])


def stat_of(process: int) -> list[str]:
    """State, parent and so on, empty where there is no such process."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def test_the_named_device_reaches_the_worker_and_is_part_of_what_is_stored(tmp_path: Path) -> None:
    file = TraceFile("run", "worker", "", unnamed_device(tmp_path))
    cache = Cache(tmp_path / "cache")
    for name in ("", "NVIDIA A30", "NVIDIA L4", "NVIDIA A30"):
        found = remembered(FileAnalysis(file, WORKER, AnalysisSettings(None, (), cache, name)), lambda _: None)
        assert isinstance(found, AnalysisResult)
        assert [device.name for device in found.report.devices] == [name]
    unknown = FileAnalysis(file, WORKER, AnalysisSettings(None, (), cache, "NVIDIA A3O")).outcome(lambda _: None)
    assert isinstance(unknown, Failure)
    assert unknown.error == "`--torchtidy_device` names a device without known rates: `NVIDIA A3O`."
    assert "`NVIDIA A30`" in unknown.advice


def unnamed_device(folder: Path) -> Path:
    launch = event("cudaLaunchKernel", 1, 1, cat="cuda_runtime", args={"correlation": 1})
    kernel = event("k", 5, 4, cat="kernel", pid=0, tid=7, args={"device": 0, "correlation": 1})
    return write(folder / "w.pt.trace.json", kineto_text([event("aten::mm", 0, 3), launch, kernel]))
