"""Work ends when it has taken what it may: by the system, or by an exception where its process goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tb_tidy_plugin.system.allowance import ScaledBound, limit_of
from tb_tidy_plugin.system.threads import cores
from tests.support.environments import same_imports

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems limit less")

START = """
import os, resource, signal, sys, threading, time
from tb_tidy_plugin.system import allowance
from tb_tidy_plugin.system.allowance import Allowance, ScaledBound, LimitReachedError, enforce, has_read, within

def work(processor_s=ScaledBound(60), wall_s=ScaledBound(60), memory_bytes=ScaledBound(10**9)):
    return within(Allowance(processor_s, wall_s, memory_bytes))

def spin():
    while True:
        pass

def limits():
    return [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_CPU, resource.RLIMIT_DATA)]
"""


def done(code: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What becomes of a process that runs `code`."""
    environment = same_imports()
    return subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        cwd=folder,
        check=False,
    )


def said(code: str) -> str:
    ended = done(code)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_a_bound_grows_with_the_text() -> None:
    assert (ScaledBound(60, 0.5).of(0), ScaledBound(60, 0.5).of(100)) == (60, 110)


@pytest.mark.parametrize("where", ["spin()", "threading.Thread(target=spin).start(); time.sleep(60)"])
def test_a_process_ends_that_takes_too_much_processor_time_in_any_thread_and_says_where(
    tmp_path: Path, where: str
) -> None:
    ended = done(f"enforce()\nwith work(processor_s=ScaledBound(1)):\n    {where}", tmp_path)
    assert limit_of(ended.returncode) == "processor"
    assert "in spin" in ended.stderr
    assert not list(tmp_path.iterdir()), "its memory is not dumped"


def test_a_process_ends_that_waits_too_long() -> None:
    ended = done("enforce()\nwith work(wall_s=ScaledBound(0.2)):\n    time.sleep(60)")
    assert limit_of(ended.returncode) == "wall"
    assert "line" in ended.stderr


def test_memory_beyond_the_limit_is_refused_and_as_before_once_the_work_is_over() -> None:
    code = """
        enforce()
        try:
            with work(memory_bytes=ScaledBound(10**7)):
                hoard = [bytes(10**6) for _ in range(1000)]
        except MemoryError:
            print("refused", len([bytes(10**6) for _ in range(300)]))
    """
    assert said(code) == "refused 300"


def test_who_reads_more_may_take_more() -> None:
    code = """
        enforce()
        with work(ScaledBound(60, 1e-6), ScaledBound(60, 1), ScaledBound(10**7, 100)):
            before = limits()
            threading.Thread(target=has_read, args=(5 * 10**6,)).start()
            while limits() == before:
                time.sleep(0.01)
            left_s, _ = signal.getitimer(signal.ITIMER_REAL)
            print([after - known for after, known in zip(limits(), before)], left_s > 10**6)
    """
    assert said(code) == "[5, 500000000] True"


def test_limits_that_are_lower_already_stay_and_all_are_as_before_afterwards() -> None:
    code = """
        resource.setrlimit(resource.RLIMIT_CPU, (30, resource.RLIM_INFINITY))
        before = limits()
        enforce()
        with work():
            inside = limits()
        print(before == limits(), inside[0], 0 < inside[1] < 2 * 10**9, signal.getitimer(signal.ITIMER_REAL))
    """
    assert said(code) == "True 30 True (0.0, 0.0)"


@pytest.mark.parametrize("huge", ["1e10", "1e300", "float('inf')"])
def test_a_limit_beyond_all_others_is_none(huge: str) -> None:
    """It may come from a command line; the system takes numbers up to int64 only."""
    code = f"""
        enforce(raising=True)
        with work(*[ScaledBound({huge})] * 3):
            print("works")
    """
    assert said(code) == "works"


def test_work_inside_of_work_is_a_part_of_it() -> None:
    code = """
        enforce()
        with work(processor_s=ScaledBound(40)):
            outer = limits()
            with work(processor_s=ScaledBound(4000)):
                print(limits() == outer)
            print(limits() == outer)
    """
    assert said(code) == "True\nTrue"


def test_a_process_that_does_not_enforce_limits_is_left_alone() -> None:
    code = """
        before = limits(), signal.getsignal(signal.SIGXCPU), signal.getsignal(signal.SIGALRM)
        with work(ScaledBound(0), ScaledBound(0.001), ScaledBound(1)):
            time.sleep(0.1)
            has_read(10**9)
            print(before == (limits(), signal.getsignal(signal.SIGXCPU), signal.getsignal(signal.SIGALRM)))
    """
    assert said(code) == "True"


@pytest.mark.parametrize(
    ("bound", "does", "limit"),
    [("processor_s=ScaledBound(1)", "spin()", "processor"), ("wall_s=ScaledBound(0.2)", "time.sleep(60)", "wall")],
)
def test_a_process_that_goes_on_has_an_error_that_nobody_passes_over(bound: str, does: str, limit: str) -> None:
    code = f"""
        enforce(raising=True)
        try:
            with work({bound}):
                try:
                    {does}
                except Exception:
                    pass
        except LimitReachedError as reached:
            print(reached.limit)
        os.kill(os.getpid(), signal.SIGXCPU)
        os.kill(os.getpid(), signal.SIGALRM)
        print("goes on")
    """
    assert said(code) == f"{limit}\ngoes on"


@pytest.mark.parametrize(
    ("bound", "does", "code"),
    [("processor_s=ScaledBound(0.2)", "spin()", 152), ("wall_s=ScaledBound(0.2)", "time.sleep(60)", 142)],
)
def test_where_there_are_no_such_signals_a_thread_ends_the_process(bound: str, does: str, code: int) -> None:
    ended = done(f"""
        allowance.SIGNALS, allowance.COUNTS_MEMORY = {{}}, False
        enforce()
        with work({bound}):
            {does}
    """)
    assert (ended.returncode, "line" in ended.stderr) == (code, True)


BESIDE = {
    "a side thread": "with meanwhile(spin): pass",
    "a side thread, and a third one": """
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        with meanwhile(spin):
            pass""",
    "a side thread beside a lock that it holds": """
        lock = threading.Lock()
        def hold():
            with lock:
                began.set()
                spin()
        with meanwhile(hold):
            began.wait()
            with lock:
                pass""",
    "several threads": "on_all_cores(lambda _: spin(), range(20))",
    "a thread that reads": """
        def blocks():
            yield spin()
        list(ahead(blocks()))""",
}


@pytest.mark.skipif(cores() < 2, reason="nothing is done ahead on one core")
@pytest.mark.parametrize("where", BESIDE)
@pytest.mark.parametrize(
    ("bound", "limit", "has_signals"),
    [
        ("processor_s=ScaledBound(0.5)", "processor", True),
        ("wall_s=ScaledBound(0.5)", "wall", True),
        ("processor_s=ScaledBound(0.5)", "processor", False),
        ("wall_s=ScaledBound(0.5)", "wall", False),
    ],
)
def test_a_limit_ends_side_threads_too_in_a_process_that_goes_on(
    where: str, bound: str, limit: str, has_signals: bool
) -> None:
    """It was told only when the thread ended by itself, and the next, innocent work was charged for the rest."""
    code = f"""
from tb_tidy_plugin.system.threads import meanwhile, on_all_cores
from tb_tidy_plugin.trace.kineto import ahead

began = threading.Event()

def does():
{textwrap.indent(textwrap.dedent(BESIDE[where]).strip(), "    ")}

if not {has_signals}:
    allowance.SIGNALS, allowance.COUNTS_MEMORY = {{}}, False
enforce(raising=True)
wall_s, processor_s = time.monotonic(), time.process_time()
try:
    with work({bound}):
        does()
except LimitReachedError as reached:
    said = reached.limit
took_s = {{"wall": time.monotonic() - wall_s, "processor": time.process_time() - processor_s}}[{limit!r}]
before_s = time.process_time()
time.sleep(0.5)
idle = time.process_time() - before_s < 0.1
with work({bound.replace("0.5", "0.3")}):
    time.sleep(0.1)
print(said, idle, took_s)
"""
    ended = subprocess.run(
        [sys.executable, "-c", START + code],
        capture_output=True,
        text=True,
        timeout=100,
        env=same_imports(),
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    said_limit, idle, took_s = ended.stdout.split()
    assert (said_limit, idle) == (limit, "True")
    assert float(took_s) < (1.5 if limit == "processor" else 10)  # a busy machine


def test_nothing_is_raised_once_the_work_is_over() -> None:
    """Not even where the limit is reached while it ends: 300 works that end about when they reach it."""
    code = """
        from tb_tidy_plugin.system.threads import meanwhile
        allowance._LOOK_S = 0.001
        enforce(raising=True)
        ended = 0
        for number in range(300):
            until_s = time.monotonic() + 0.008 + number % 10 / 2000
            try:
                with work(wall_s=ScaledBound(0.01)):
                    with meanwhile(lambda: [None for _ in iter(lambda: time.monotonic() < until_s, False)]):
                        while time.monotonic() < until_s:
                            pass
            except LimitReachedError:
                pass
            for _ in range(1000):
                ended += 1
        print(ended)
    """
    assert said(code) == "300000"


@pytest.mark.parametrize("code", [0, 1, -signal.SIGKILL, -signal.SIGSEGV, 142])
def test_other_ends_are_no_limit(code: int) -> None:
    assert limit_of(code) is None
