"""Rules of the whole test run."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Collection, Generator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.support import missing
from tests.support.gloo_ranks import recorded
from tests.support.recordings import COUNTED_ONCE, LEFT_OUT, ROOT

FEW_EXAMPLES = 30
"""Random inputs of each test, others in every run; `make proof` draws 100."""

# No test asserts an absolute time, and a busy machine takes any time.
settings.register_profile("few", deadline=None, max_examples=FEW_EXAMPLES)
settings.register_profile("proof", deadline=None)
settings.load_profile("few")

# Reports and profiles that tests share stay until the end: looking through all of them takes a tenth of the time.
gc.set_threshold(50_000, 20, 100)

# What this user has measured is none of the tests' business.
_CACHE = tempfile.TemporaryDirectory(prefix="torchtidy-tests-")
os.environ["XDG_CACHE_HOME"] = _CACHE.name

# A compilation that was killed must not break the next run; the processes of one run share what they compiled.
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", f"{_CACHE.name}/inductor")

# The compiler is believed to know this machine's instructions: to try each set takes 7 s per cache.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")

NEVER_SKIPPED_IN_CI = ("browser", "compiled", "torch")
IN_PROCESSES_OF_ITS_OWN = "torch"  # so that no import of a test says whether it is installed
BUSY_CORES = "other programs use the cores"
"""Reason of a skip that CI allows: tests that measure this machine run beside others."""

TAKES_LONG = ("browser", "slow")
BROWSER_FILES = sorted(f"tests/browser/{path.name}" for path in (ROOT / "tests" / "browser").glob("test_*.py"))


class _InTwoBrowsers(LoadFileScheduling):  # type: ignore[misc]
    """A file goes to one process; those with a browser to two, since each process starts a TensorBoard."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return f"browser {BROWSER_FILES.index(file) % 2}" if file in BROWSER_FILES else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    return _InTwoBrowsers(config, log)


@pytest.fixture(scope="session")
def gloo_jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs of eight real ranks, by name: balanced, slowed, loading."""
    pytest.importorskip("torch")
    base = tmp_path_factory.getbasetemp()
    return recorded(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--timed", action="store_true", help="run what depends on a quiet machine, and nothing else")
    parser.addoption("--all-recordings", action="store_true", help="tests marked `sampled` look at each recording")
    parser.addoption("--proof", action="store_true", help="run what is marked `proof`, too")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("proof" if config.getoption("--proof") else "few")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _select(config, items)
    _sort(items)


def _select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Either what depends on how quiet the machine is, or the rest: `make test` must be green on any."""
    wanted, all_recordings = bool(config.getoption("--timed")), bool(config.getoption("--all-recordings"))
    is_proof = bool(config.getoption("--proof"))
    parted: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        is_wanted = (item.get_closest_marker("timed") is not None) == wanted
        is_left_out = (
            (item.get_closest_marker("sampled") and not all_recordings and _is_about(item, LEFT_OUT))
            or (item.get_closest_marker("proof") and not is_proof)
            or _is_about_what_is_counted_once(item)
        )
        parted[is_wanted and not is_left_out].append(item)
    config.hook.pytest_deselected(items=parted[False])
    items[:] = parted[True]


def _is_about_what_is_counted_once(item: pytest.Item) -> bool:
    return not item.get_closest_marker("any_recording") and _is_about(item, COUNTED_ONCE)


def _is_about(item: pytest.Item, recordings: Collection[str]) -> bool:
    _, _, parameters = item.name.partition("[")
    return any(name in parameters for name in recordings)


def _sort(items: list[pytest.Item]) -> None:
    """Files with what takes long go first, so that no process is left alone with one in the end.

    Those with a browser, which keeps all cores busy, go before those that record ranks, which would wait for each
    other.
    """
    orders: dict[Path, int] = {}
    for item in items:
        order = next((at for at, mark in enumerate(TAKES_LONG) if item.get_closest_marker(mark)), len(TAKES_LONG))
        orders[item.path] = min(order, orders.get(item.path, order))
    items.sort(key=lambda item: orders[item.path])


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return missing.collected((yield), collector.path)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker(IN_PROCESSES_OF_ITS_OWN):
        missing.skip_without(IN_PROCESSES_OF_ITS_OWN)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a missing browser, compiler or torch is a failure: a skip would look like a pass."""
    report = missing.ran((yield), call, item)
    is_asked = os.environ.get("CI") and any(map(item.get_closest_marker, NEVER_SKIPPED_IN_CI))
    if report.skipped and is_asked and BUSY_CORES not in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, which must run it: {report.longrepr}"
    return report
