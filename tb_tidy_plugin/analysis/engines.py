"""Engines that analyse many traces: processes on this machine, or a Dask or Ray cluster.

Work is one function of one item. Its answer travels back, so it must be small. Dask and Ray say which worker died. If
one process on this machine dies, all of them end: each unfinished item is then repeated alone, and the item that ends
its process again is given up. All others keep their answers.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, redirect_stdout, suppress
from importlib.util import find_spec
from itertools import islice
from typing import Literal, Protocol, TypeAlias, TypeVar, get_args

import msgspec

from tb_tidy_plugin.system import allocator, allowance
from tb_tidy_plugin.system.allowance import MEMORY_SHARE, free_bytes
from tb_tidy_plugin.system.threads import cores, use_cores
from tb_tidy_plugin.words.errors import TidyError

Item = TypeVar("Item")
_Answer = TypeVar("_Answer")

_Kind: TypeAlias = Literal["local", "dask", "ray"]

LOCAL_CLUSTER = "local"
FEEDER, _ENDS_S = "QueueFeederThread", 5.0
STARTED_WITH = ("cloudpickle", "loky")  # imported by worker processes before they get this process's `sys.path`
NEEDED = {"dask": "distributed", "ray": "ray"}
CONNECT_S = 20.0
LOST_WORKER_S = 3600.0
"""How long a cluster of our own waits for a worker that is restarted. After the usual 15 s it would be closed for good,
which a busy machine exceeds.
"""

WITHOUT_WORKERS_S = 60.0
"""How long a cluster may be without workers, which are restarted, or started as they are needed."""
_LOOK_S = 1.0  # between checks that the parent process still runs
CLUSTER_DEATHS = frozenset({
    "KilledWorker",  # dask
    "ActorDiedError", "ActorUnavailableError", "OutOfMemoryError", "RayActorError", "WorkerCrashedError",  # ray
})  # fmt: skip


class EngineError(TidyError):
    """An engine that does not exist, cannot be reached, or went away."""


class Engine(msgspec.Struct, frozen=True):
    """Place where work is done.

    Attributes:
        address: `HOST:PORT` of the cluster; `local` for a cluster that is started for this work and ends with it.
        jobs: most workers on this machine; None for one per core.
    """

    kind: _Kind = "local"
    address: str = ""
    jobs: int | None = None

    def __str__(self) -> str:
        return f"{self.kind}://{self.address}" if self.address else self.kind

    @property
    def is_elsewhere(self) -> bool:
        """True if workers may be on other machines, which see other files."""
        return self.kind != "local" and self.address != LOCAL_CLUSTER


class GivenUp(msgspec.Struct, frozen=True):
    """An item without an answer because each worker that took it died; `reason` is what is known about that."""

    reason: str


HERE = Engine(jobs=1)
"""In this process, one item after the other."""


def engine_of(text: str, jobs: int | None = None) -> Engine:
    """The engine that `local`, `dask://HOST:PORT` or `ray://HOST:PORT` names.

    Raises:
        EngineError: the text names no engine, or its package is missing.
    """
    kind, separator, address = text.partition("://")
    for known in get_args(_Kind):
        if kind == known and bool(address) == bool(separator) == (known != "local"):
            if known in NEEDED and find_spec(NEEDED[known]) is None:
                error = f"`{text}` needs the package {NEEDED[known]}, which is not installed."
                raise EngineError(error, f"`pip install 'tb-tidy-plugin[{known}]'`.")
            return Engine(known, address, jobs)
    advice = "Use `local`, `dask://HOST:PORT`, `ray://HOST:PORT`, `dask://local` or `ray://local`."
    raise EngineError(f"The engine `{text}` does not exist.", advice)


def each(
    engine: Engine, work: Callable[[Item], _Answer], items: Sequence[Item], worker_bytes: int = 0
) -> Iterator[tuple[int, _Answer | GivenUp]]:
    """The number of each item and its answer, in the order of completion.

    Workers end with the iterator, however that ends.

    Args:
        engine: where the work is done.
        work: a picklable function with picklable answers; an exception that it raises ends everything. It runs on its
            share of the cores (`threads.cores`).
        items: arguments of `work`.
        worker_bytes: memory of one worker; on this machine, only as many workers start as fit into memory.

    Raises:
        EngineError: the engine cannot be reached, or went away.
    """
    from tb_tidy_plugin.system import child

    numbered = dict(enumerate(items))
    if sys.version_info < (3, 11) and (names := child.shadowing(STARTED_WITH)):
        error = f"Workers of Python 3.10 would import `{names[0]}` of the current folder in place of their own modules."
        raise EngineError(error, "Start in another folder, give `--jobs 1`, or use Python 3.11 or newer.")
    with child.importing_nothing_here():
        if engine.kind == "local":
            yield from _in_processes(min(workers_for(worker_bytes, engine.jobs), len(items)), work, numbered)
            return
        with (_dask if engine.kind == "dask" else _ray)(engine) as pool, _kept(engine):
            if pool.width < 1:
                raise EngineError(f"`{engine}` has no workers.", "Start some, then try again.")
            yield from _done(pool, work, numbered)


def is_one_enough(engine: Engine, items: int, worker_bytes: int) -> bool:
    """True if the caller may as well do the work itself, one item after the other."""
    return engine.kind == "local" and (items < 2 or workers_for(worker_bytes, engine.jobs) < 2)


def workers_for(worker_bytes: int, jobs: int | None = None) -> int:
    """Number of workers of `worker_bytes` for the cores and memory of this machine; at least one."""
    if jobs == 1:
        return 1  # without importing loky, which takes time
    from loky import cpu_count

    most = jobs or cpu_count()
    free = free_bytes()
    return max(1, min(most, free // worker_bytes) if worker_bytes and free else most)


class _Pool(Protocol):
    """Workers that accept work."""

    @property
    def width(self) -> int: ...
    def check(self) -> None: ...
    def submit(self, work: Callable[[Item], _Answer], item: Item, /) -> Future[_Answer]: ...


def _done(
    pool: _Pool, work: Callable[[Item], _Answer], items: Mapping[int, Item]
) -> Iterator[tuple[int, _Answer | GivenUp]]:
    """Answers as they come, with at most one item per worker in work; ends early if the whole pool broke."""
    waiting, running, is_broken = iter(items.items()), dict[Future[_Answer], int](), False
    while True:
        with suppress(BrokenExecutor):  # running futures also report it
            for number, item in islice(waiting, 0 if is_broken else pool.width - len(running)):
                running[pool.submit(work, item)] = number
        if not running:
            return
        done = wait(running, timeout=_LOOK_S, return_when=FIRST_COMPLETED).done
        if not done:
            pool.check()
        for future in done:
            problem = future.exception()
            if problem is not None and not _is_death(problem):
                raise problem
            is_broken = is_broken or isinstance(problem, BrokenExecutor)
            yield running.pop(future), future.result() if problem is None else GivenUp(type(problem).__name__)


def _is_death(problem: BaseException) -> bool:
    """True if a worker died; compared by name, since the error's package may not be installed."""
    names = {kind.__name__ for kind in type(problem).__mro__}
    return isinstance(problem, BrokenExecutor) or bool(names & CLUSTER_DEATHS)


# This machine


class _Processes:
    """Processes of this machine, at most `width`."""

    def __init__(self, width: int) -> None:
        from loky import ProcessPoolExecutor

        self.width = width
        most_bytes = MEMORY_SHARE * (free_bytes() or math.inf) / width
        self._executor = ProcessPoolExecutor(
            width, initializer=_belong_to, initargs=(os.getpid(), max(1, cores() // width), most_bytes)
        )

    def submit(self, work: Callable[[Item], _Answer], item: Item, /) -> Future[_Answer]:
        """Starts as soon as a process is free."""
        future: Future[_Answer] = self._executor.submit(work, item)
        return future

    def check(self) -> None:
        """Processes that end are reported by what they worked on."""

    def end(self) -> None:
        """Ends the processes at once, whatever they are doing.

        loky does not wait for the threads that feed its queues. A thread that is left would release the last semaphore
        while this process ends, and loky would print a warning about a missing semaphore to stderr.
        """
        feeders = [thread for thread in threading.enumerate() if thread.name == FEEDER]
        self._executor.shutdown(wait=True, kill_workers=True)
        for thread in feeders:
            thread.join(_ENDS_S)


def _belong_to(parent: int, cores_of_each: int, most_bytes: float) -> None:
    """Leaves Ctrl-C, and all but its share of cores and memory, to others; ends this process if the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_cores(cores_of_each)
    allowance.enforce(raising=True, most_bytes=most_bytes)
    allocator.spare_memory()
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: int) -> None:
    """Ends this process once its parent is gone: nobody would read its answers, and it would wait for work forever."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)


def _in_processes(
    width: int, work: Callable[[Item], _Answer], items: Mapping[int, Item]
) -> Iterator[tuple[int, _Answer | GivenUp]]:
    waiting = dict(items)
    while waiting:
        lost: list[int] = []
        before = len(waiting)
        for number, answer in _with_processes(width, work, dict(waiting)):
            if isinstance(answer, GivenUp):
                lost.append(number)
            else:
                del waiting[number]
                yield number, answer
        for number in lost:
            yield from _with_processes(1, work, {number: waiting.pop(number)})
        if len(waiting) == before:
            raise EngineError("Worker processes end as soon as they are started.", "Try `--jobs 1`.")


def _with_processes(
    width: int, work: Callable[[Item], _Answer], items: Mapping[int, Item]
) -> Iterator[tuple[int, _Answer | GivenUp]]:
    pool = _Processes(width)
    with warnings.catch_warnings():
        # loky replaces a worker whose memory has grown, and warns of a leak; the trace was just larger.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        try:
            yield from _done(pool, work, items)
        finally:
            pool.end()


# Clusters


class _Cluster(msgspec.Struct, frozen=True):
    """A cluster of so many workers; `check` raises EngineError if it has lost all of them."""

    width: int
    submit: Callable[[Callable[[Item], _Answer], Item], Future[_Answer]]
    check: Callable[[], None]


@contextmanager
def _dask(engine: Engine) -> Iterator[_Cluster]:
    import asyncio

    import dask.config
    from distributed import Client, LocalCluster

    with _reached(engine):
        if engine.address == LOCAL_CLUSTER:
            local = LocalCluster(n_workers=workers_for(0, engine.jobs), threads_per_worker=1, dashboard_address=None)
            client = Client(local)
        else:
            local, client = None, Client(f"tcp://{engine.address}", timeout=CONNECT_S)
        with suppress(asyncio.TimeoutError):  # the caller says so
            client.wait_for_workers(1, timeout=CONNECT_S)
    width = sum(client.ncores().values())
    waiting = ThreadPoolExecutor(max(width, 1), "dask")

    def submit(work: Callable[[Item], _Answer], item: Item) -> Future[_Answer]:
        # Dask's own executor mistakes an answer for an error if the worker that holds it dies at that moment.
        return waiting.submit(client.submit(_called, work, item, pure=False).result)

    without_s: float | None = None  # since when there were none at each look

    def check() -> None:
        nonlocal without_s
        there = False
        with suppress(OSError, RuntimeError):  # a scheduler that does not answer may be restarted, too
            there = bool(client.ncores())
        without_s = None if there else without_s or time.monotonic()
        if without_s is not None and time.monotonic() - without_s > WITHOUT_WORKERS_S:
            error = f"`{engine}` has had no workers for {WITHOUT_WORKERS_S:g} s."
            raise EngineError(error, "See the log of its scheduler, start some workers, then try again.")

    try:
        with dask.config.set({"distributed.deploy.lost-worker-timeout": LOST_WORKER_S}):
            yield _Cluster(width, submit, check)
    finally:
        client.close()  # also cancels pending work
        waiting.shutdown()
        if local is not None:
            local.close()


@contextmanager
def _ray(engine: Engine) -> Iterator[_Cluster]:
    import ray

    def submit(work: Callable[[Item], _Answer], item: Item) -> Future[_Answer]:
        future: Future[_Answer] = ray.remote(_called).options(max_retries=1).remote(work, item).future()
        return future

    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    with redirect_stdout(sys.stderr):  # Ray reports on its workers there; stdout may be the report
        with _reached(engine):
            if engine.address == LOCAL_CLUSTER:
                ray.init(num_cpus=engine.jobs, include_dashboard=False, **quiet)
            else:
                ray.init(f"ray://{engine.address}", **quiet)
        try:
            yield _Cluster(int(ray.cluster_resources().get("CPU", 0)), submit, lambda: None)
        finally:
            ray.shutdown()


def _called(work: Callable[[Item], _Answer], item: Item) -> _Answer:
    """A task of a cluster, which has one core. Ray accepts only a function, not a `partial`."""
    use_cores(1)
    return work(item)


@contextmanager
def _reached(engine: Engine) -> Iterator[None]:
    """Raises EngineError if a cluster does not answer."""
    try:
        yield
    except (OSError, RuntimeError) as problem:
        words = str(problem).strip().splitlines() or [type(problem).__name__]
        error = f"`{engine}` cannot be reached: {words[0].rstrip('.')}."
        raise EngineError(error, "Check host and port, and that its versions match those of this machine.") from problem


@contextmanager
def _kept(engine: Engine) -> Iterator[None]:
    """Raises EngineError if a cluster cannot do the work, or went away meanwhile."""
    try:
        yield
    except ImportError as problem:
        error = f"The workers of `{engine}` lack the package {problem.name or problem}."
        raise EngineError(error, "Install the same packages in the same versions as here.") from problem
    except (CancelledError, ConnectionError) as problem:
        error = f"The connection to `{engine}` was lost: {type(problem).__name__}."
        raise EngineError(error, "See its log, then try again.") from problem
