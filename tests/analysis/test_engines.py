"""Ranks on engines: the same report, workers that die, and who is there to work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tb_tidy_plugin.analysis.engines import Engine, EngineError, GivenUp, each, engine_of, workers_for
from tb_tidy_plugin.system.allowance import COUNTS_MEMORY, Allowance, ScaledBound, data_bytes, free_bytes, within
from tb_tidy_plugin.system.threads import cores
from tests.support.environments import same_imports
from tests.support.ranks import ENDS_ITS_WORKER, TB_TIDY, configured, run_of, tb_tidy
from tests.support.recordings import ROOT
from tests.support.waiting import until

DASK = """
import sys
import dask.config
from distributed import LocalCluster
dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})  # a busy machine takes long to restart one
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        for _ in sys.stdin:
            cluster.scale(0)
"""


class DaskCluster(NamedTuple):
    """A cluster in a process of its own, which lets go of its workers for a line of text."""

    process: subprocess.Popen[str]
    address: str


@contextmanager
def dask_cluster(folder: Path) -> Iterator[DaskCluster]:
    """One of two workers; it ends with the block."""
    pytest.importorskip("distributed")
    script = folder / "cluster.py"
    script.write_text(DASK, "utf-8")
    environment = same_imports()
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        yield DaskCluster(process, process.stdout.readline().strip().replace("tcp://", "dask://"))
        process.communicate()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six ranks, one of them packed and one of them no trace."""
    folder = run_of(tmp_path_factory.mktemp("runs"), 6)
    (folder / "job" / "host_9.1.pt.trace.json").write_text("no trace", "utf-8")
    return folder


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster that is already there."""
    with dask_cluster(tmp_path_factory.mktemp("dask")) as cluster:
        yield cluster.address


def report(runs: Path, configuration: Path, *options: str) -> dict[str, Any]:
    done = tb_tidy("check", runs, "--config", configuration, "--format", "json", *options)
    assert done.returncode == 2, done.stderr  # one of them is broken
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def here(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report without any worker, also of a rule of the user's own."""
    return report(runs, configured(tmp_path_factory.mktemp("here")), "--jobs", "1")


@pytest.fixture(
    params=[
        "local",
        pytest.param("dask", marks=pytest.mark.slow),
        pytest.param("ray://local", marks=[pytest.mark.slow, pytest.mark.proof]),
    ]
)
def engine(request: pytest.FixtureRequest) -> str:
    """Each place where ranks may be analysed; of the clusters `make test` has Dask's, since Ray starts slowly."""
    if request.param == "ray://local":
        pytest.importorskip("ray")
    address = request.getfixturevalue("dask") if request.param == "dask" else request.param
    return str(address)


@pytest.mark.parametrize("engine", ["local", pytest.param("dask", marks=pytest.mark.slow)], indirect=True)
def test_the_report_is_the_same_from_everywhere(runs: Path, tmp_path: Path, engine: str, here: dict[str, Any]) -> None:
    """Also with a rule of the user's own, which no worker could import; of Ray's workers below."""
    assert [profile["rank"] for profile in here["runs"][0]["profiles"]] == [0, 1, 2, 3, 4, 5]
    assert all("marked" in {each["rule"] for each in p["findings"]} for p in here["runs"][0]["profiles"])
    assert here["runs"][0]["outcomes"]
    assert [problem["path"].rpartition("/")[2] for problem in here["problems"]] == ["host_9.1.pt.trace.json"]
    assert report(runs, configured(tmp_path), "--engine", engine, "--jobs", "2") == here


def test_no_worker_imports_from_the_current_folder(tmp_path: Path) -> None:
    """As it would be where somebody looks at a download from within."""
    run, marker, start = run_of(tmp_path, 2) / "job", tmp_path / "ran", tmp_path / "start" / "tb-tidy.py"
    for name in ("loky", "multiprocessing", "pickle", "queue", "runpy", "signal"):
        (run / f"{name}.py").write_text(f"open({str(marker)!r}, 'w').close()\nraise ImportError('not the real one')\n")
    start.parent.mkdir()
    start.write_text("from tb_tidy_plugin.cli.main import main\nif __name__ == '__main__':\n    main()\n")
    command = [sys.executable, str(start), "check", ".", "--jobs", "2", "--no-cache", "--format", "json"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(command, cwd=run, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert not marker.exists()
    if sys.version_info >= (3, 11):
        assert [profile["rank"] for profile in json.loads(done.stdout)["runs"][0]["profiles"]] == [0, 1]
    else:
        assert "Workers of Python 3.10 would import `loky.py`" in done.stderr


def test_a_worker_that_dies_costs_its_trace_alone(
    runs: Path, tmp_path: Path, engine: str, here: dict[str, Any]
) -> None:
    found = report(runs, configured(tmp_path, ENDS_ITS_WORKER), "--engine", engine, "--jobs", "3")
    expected = [profile for profile in here["runs"][0]["profiles"] if profile["rank"] != 2]
    assert found["runs"][0]["profiles"] == expected
    [problem] = [each for each in found["problems"] if "host_9" not in each["path"]]
    assert "host_2" in problem["path"]
    assert problem["error"].startswith("The worker that analysed this trace ended, most likely because memory ran out")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit less")
@pytest.mark.parametrize("jobs", ["1", "3"])
def test_a_trace_that_takes_more_than_it_may_costs_no_other(runs: Path, tmp_path: Path, jobs: str) -> None:
    act = "if profile.metadata.rank == 2:\n            bytes(10**10)"
    limit = ("--max-memory-gb", "0.3")
    found = report(runs, configured(tmp_path, act), *limit, "--jobs", jobs, "--select", "MY7")
    assert [profile["rank"] for profile in found["runs"][0]["profiles"]] == [0, 1, 3, 4, 5]
    [problem] = [each for each in found["problems"] if "host_9" not in each["path"]]
    assert "host_2" in problem["path"]
    assert problem["error"] == "The analysis needs more memory than 300 MB, the limit `max-memory-gb`."


@pytest.mark.slow
def test_a_relative_path_is_that_of_this_process(runs: Path, tmp_path: Path, dask: str) -> None:
    done = tb_tidy("check", "job", "--format", "json", "--isolated", "--engine", dask, cwd=runs)
    profiles = json.loads(done.stdout)["runs"][0]["profiles"]
    assert [profile["path"] for profile in profiles][:1] == ["job/host_0.10.pt.trace.json"]


@contextmanager
def at_work(runs: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A check in a session of its own, whose two processes are busy for a minute; at the end they have to be gone."""
    waits = f"(Path({str(folder)!r}) / f'pid{{os.getpid()}}').touch(); time.sleep(60)"
    check = [*TB_TIDY, "check", str(runs), "--config", str(configured(folder / "c", waits)), "--jobs", "2"]
    command = ["env", "--default-signal=INT", *check]  # a job in the background ignores it, and so would its children
    environment = same_imports()
    with subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as main:
        until(lambda: len(list(folder.glob("pid*"))) == 2)
        pids = [int(path.name.removeprefix("pid")) for path in folder.glob("pid*")]
        assert main.pid not in pids
        yield main
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_ctrl_c_ends_the_workers(runs: Path, tmp_path: Path) -> None:
    with at_work(runs, tmp_path) as main:
        os.killpg(main.pid, signal.SIGINT)  # as a terminal does: to all of them
        _, said = main.communicate(timeout=240)
        assert (main.returncode, said.decode().strip()) == (130, "Interrupted.")


def test_workers_end_after_the_command_was_killed(runs: Path, tmp_path: Path) -> None:
    with at_work(runs, tmp_path) as main:
        main.kill()


def square(number: int) -> int:
    return number * number


def crash(dies: tuple[int, ...], number: int) -> int:
    if number in dies:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return number * number


def test_several_that_die_are_told_apart_from_their_neighbours() -> None:
    found = dict(each(Engine(jobs=3), partial(crash, (4, 5, 11)), range(12)))
    assert {number for number, answer in found.items() if isinstance(answer, GivenUp)} == {4, 5, 11}
    assert all(found[number] == number * number for number in set(range(12)) - {4, 5, 11})


def test_no_thread_outlives_the_processes_that_it_feeds() -> None:
    """One would complain about loky's semaphores, now and then, while the command ends."""
    assert dict(each(Engine(jobs=2), square, range(4))) == {number: number**2 for number in range(4)}
    assert "QueueFeederThread" not in {thread.name for thread in threading.enumerate()}


def test_what_is_wrong_with_the_work_itself_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(each(Engine(jobs=2), partial(divmod, 1), range(3)))


def _cores_there(_: int) -> int:
    return cores()


def test_workers_share_the_cores() -> None:
    answers = dict(each(Engine(jobs=2), _cores_there, [0, 1, 2]))
    assert set(answers.values()) == {max(1, cores() // 2)}


def _memory_there(_: int) -> int:
    """The limit of this process's memory while it works, beyond what it has."""
    import resource

    usual = ScaledBound(1e15)
    with within(Allowance(usual, usual, usual)):
        return resource.getrlimit(resource.RLIMIT_DATA)[0] - data_bytes()


@pytest.mark.skipif(not COUNTS_MEMORY, reason="memory is counted on Linux only")
def test_workers_share_the_free_memory() -> None:
    """All of them together take no more than is free, whatever is in their traces."""
    before = free_bytes()
    answers = dict(each(Engine(jobs=2), _memory_there, [0, 1, 2, 3]))
    assert all(isinstance(share, int) and before / 8 < share < 0.6 * before for share in answers.values())


def test_no_more_workers_than_there_is_memory_for(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    8000 kB\n", "ascii")
    (tmp_path / "memory.max").write_text("max\n", "ascii")
    (tmp_path / "memory.current").write_text("5\n", "ascii")
    assert free_bytes(tmp_path, tmp_path) == 8000 << 10
    (tmp_path / "memory.max").write_text("1005\n", "ascii")
    assert free_bytes(tmp_path, tmp_path) == 1000
    (tmp_path / "memory.stat").write_text("anon 3\ninactive_file 20\nactive_file 300\nshmem 7\n", "ascii")
    assert free_bytes(tmp_path, tmp_path) == 1320
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("905\n", "ascii")
    (tmp_path / "memory" / "memory.usage_in_bytes").write_text("5\n", "ascii")
    assert free_bytes(tmp_path, tmp_path) == 900
    assert free_bytes(tmp_path / "none", tmp_path / "none") == 0
    assert workers_for(1 << 60, 8) == 1
    assert workers_for(1, 8) == 8


def test_engines_by_name() -> None:
    assert engine_of("local", 3) == Engine("local", "", 3)
    assert engine_of("dask://host:8786") == Engine("dask", "host:8786")
    assert engine_of("ray://local") == Engine("ray", "local")


@pytest.mark.parametrize("name", ["", "dask", "dask://", "local://x", "spark://host:1", "host:1"])
def test_other_engines_are_refused(name: str) -> None:
    with pytest.raises(EngineError, match="does not exist"):
        engine_of(name)


def test_a_package_that_is_missing_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_tidy_plugin.analysis.engines.find_spec", lambda name: None)
    with pytest.raises(EngineError) as raised:
        engine_of("ray://host:10001")
    assert raised.value.error == "`ray://host:10001` needs the package ray, which is not installed."
    assert raised.value.advice == "`pip install 'tb-tidy-plugin[ray]'`."


def begin_and_wait(folder: Path, number: int) -> int:
    (folder / "begun").touch()
    time.sleep(300)
    return number


@pytest.mark.slow
def test_a_cluster_that_loses_its_workers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that waits for a worker would wait for ever."""
    monkeypatch.setattr("tb_tidy_plugin.analysis.engines.WITHOUT_WORKERS_S", 1.0)
    with dask_cluster(tmp_path) as cluster:

        def lose_workers() -> None:
            until((tmp_path / "begun").exists)
            assert cluster.process.stdin is not None
            print("lose workers", file=cluster.process.stdin, flush=True)

        losing = threading.Thread(target=lose_workers, daemon=True)
        losing.start()
        with pytest.raises(EngineError, match="has had no workers for 1 s"):
            list(each(engine_of(cluster.address), partial(begin_and_wait, tmp_path), range(3)))
        losing.join()


def test_a_host_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("tb_tidy_plugin.analysis.engines.CONNECT_S", 1.0)
    with pytest.raises(EngineError, match=r"`dask://127.0.0.1:1` cannot be reached"):
        list(each(engine_of("dask://127.0.0.1:1"), square, range(3)))
