"""Work ends when it has taken what it may: by the system, or by an exception where its process goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tb_tidy_plugin.allowance import ScaledBound, limit_of
from tests.support.environments import same_imports

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems limit less")

START = """
import os, resource, signal, sys, threading, time
from tb_tidy_plugin import allowance
from tb_tidy_plugin.allowance import Allowance, ScaledBound, LimitReachedError, enforce, has_read, within

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
        allowance.SIGNALS, allowance.COUNTS_MEMORY, allowance.LOOK_S = {{}}, False, 0.01
        enforce()
        with work({bound}):
            {does}
    """)
    assert (ended.returncode, "line" in ended.stderr) == (code, True)


@pytest.mark.parametrize("code", [0, 1, -signal.SIGKILL, -signal.SIGSEGV, 142])
def test_other_ends_are_no_limit(code: int) -> None:
    assert limit_of(code) is None
