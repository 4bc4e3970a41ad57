"""The speed of this machine: products, memory and caches, an operator without work, a page fault.

`tidy_profile` measures it after the first recordings with a build of torch on a machine, and `tb-tidy bench --machine`
at leisure. It changes nothing of the job: it runs in a thread of its own, where no mode of the job is on (autograd,
autocast, dispatch), draws no random numbers, sets the number of threads back, and frees its memory.

Each figure is the best of several runs: what the machine can do, not what it did beside other work. It
keeps no figures if other programs use the cores meanwhile.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from tb_tidy_plugin.capture.faults import fault_ns
from tb_tidy_plugin.capture.guarded import log_harmless, unless_it_fails
from tb_tidy_plugin.system.machine_file import EXIT_BUSY, LEISURE_S, keep_machine, machine_file, read_machine

WHAT = "the speed of this machine"
UNAFFECTED = "the recording is unaffected"
WHEN_IDLE = "Run `tb-tidy bench --machine` when it is idle."
JOB_S = 0.25  # of a job, with the memory that it takes; its last run may take a little more
TIMES = 3
ANSWER_S = 1.0  # after the budget, before the job goes on without an answer
EXIT_S = 5.0  # at most, for a late measurement when the job ends

DTYPES = ("float32", "bfloat16", "float64", "float16")
SIDES = (128, 256, 384, 512, 768, 1024, 1536, 2048, 3072)
"""Sizes of square products: small ones suit one core, large ones many."""

LONGEST_PRODUCT_NS = 1_500_000  # of one product; longer ones would leave no time for another round
SETS = (1 << 16, 1 << 18, 1 << 22)
"""Bytes of the working sets in caches: two tensors of half that."""

MEMORY_SETS, BEYOND_CACHE = (1 << 25, 1 << 26, 1 << 27, 1 << 28), 2
"""Bytes of a working set in memory: the largest that is needed for `BEYOND_CACHE` times the largest cache."""

MAPPING_NS = 100_000_000  # most time for mapping that memory, which bounds it as well
SPARE_MEMORY = 8  # times the working set that must be free
FIRST_RUNS = 3  # of a product, to see how long it takes
SELDOM = 2  # memory is measured in each such round: it takes the most time
PAGE_SIZE, LARGEST_START = 4096, 4  # bytes of a page; a copy takes at least a fourth of its time for its bytes
SHORT_CALLS, SHORT_RUNS = 20, 8  # of a short operator, in one run; runs of it and of copies in caches, in one round
SETTLED_RUNS = 64  # of larger copies: the first ones of a round find the caches full of other data
SHORT_SET = 1 << 18  # bytes; copies of more take long enough to be timed one by one
LOOK_NS, TRIES = 20_000_000, 3  # the system counts processor time in ticks of some ms
OWN_CORES = 0.75
"""Least part of the time of the cores in use that this process must get."""

_Row: TypeAlias = dict[str, str | int | float]
_Speed: TypeAlias = dict[str, Any]


class BusyError(Exception):
    """Other programs took the cores."""


@dataclass(slots=True)
class _Figure:
    """Something that is measured again and again, and the shortest time that it took so far.

    Attributes:
        threads: of torch. act: one run. calls: how often it does the same in one run. runs: in one round.
        is_seldom: True if it is left out in most rounds.
    """

    threads: int
    act: Callable[[], object]
    calls: int = 1
    runs: int = 1
    is_seldom: bool = False
    best_ns: float = float("inf")

    def run(self) -> None:
        """One more round."""
        for _ in range(self.runs):
            began_ns = time.perf_counter_ns()
            self.act()
            self.best_ns = min(self.best_ns, max(time.perf_counter_ns() - began_ns, 1) / self.calls)


def machine_speed() -> Mapping[str, object] | None:
    """The figures of this machine for a side file: known ones, improved or measured now; None if that is not possible.

    A quarter of a second may fall into a slow moment: the first `TIMES` recordings measure, and the best counts. Not
    measured in jobs of several processes, which share the cores.
    """
    import torch

    file = unless_it_fails("the folder of measured machines", lambda: _file(torch), UNAFFECTED)
    known = None if file is None else unless_it_fails(WHAT, lambda: _known(read_machine(file)), "it is measured again")
    if _shares_cores() or (known is not None and known.get("times", 0) >= TIMES):
        return known
    found = unless_it_fails(WHAT, lambda: measured_apart(JOB_S), UNAFFECTED)
    if found is None:
        return known
    best = unless_it_fails(WHAT, lambda: _best(known, found), "it is measured again") or found
    if file is not None:
        unless_it_fails(WHAT, lambda: keep_machine(file, json.dumps(best).encode()), "it is measured again next time")
    return best


def _file(torch: ModuleType) -> Path | None:
    """The file of this machine; None in an environment without the package that knows the cache folder."""
    try:
        return machine_file(_build(torch))
    except ImportError:  # as under `tb-tidy record`, which needs nothing in the program's own environment
        return None


def _known(content: bytes | None) -> _Speed | None:
    """The figures in a file, which this user wrote; anything else is measured again."""
    known = None if content is None else json.loads(content)
    return known if isinstance(known, dict) and isinstance(known.get("times"), int) else None


def _best(known: _Speed | None, found: _Speed) -> _Speed:
    """The best of both; those that only one has are kept."""
    if known is None or known["host"]["threads"] != found["host"]["threads"]:
        return found
    before, now = known["host"], found["host"]
    host = {
        "threads": now["threads"],
        **{name: min(before[name], now[name]) for name in ("operator_ns", "page_fault_ns")},
        "products": _faster(before["products"], now["products"], "flops_per_second"),
        "copies": _faster(before["copies"], now["copies"], "bytes_per_second"),
    }
    return {**found, "host": host, "times": known["times"] + 1}


def _faster(before: list[_Row], now: list[_Row], rate: str) -> list[_Row]:
    best: dict[tuple[object, ...], _Row] = {}
    for row in (*before, *now):
        key = tuple(value for name, value in row.items() if name != rate)
        if key not in best or row[rate] > best[key][rate]:  # type: ignore[operator] # rates are numbers
            best[key] = row
    return list(best.values())


def _shares_cores() -> bool:
    names = ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")
    return any(os.environ.get(name, "1") not in {"", "1"} for name in names)


def measured_apart(budget_s: float) -> _Speed | None:
    """The figures, measured in a thread of their own; None if the cores were busy, which is logged.

    Raises whatever a measurement raises.
    """
    import torch

    found: list[_Speed | Exception] = []

    def measure() -> None:
        try:
            found.append(_measured(torch, budget_s))
        except Exception as error:  # noqa: BLE001 - raised below, in the thread of the job
            found.append(error)

    thread = threading.Thread(target=measure, name="torchtidy-machine", daemon=True)
    thread.start()
    atexit.register(thread.join, EXIT_S)  # a process that ends while a thread computes in torch aborts
    thread.join(budget_s + ANSWER_S)
    if not found:
        raise TimeoutError(f"it takes longer than {budget_s + ANSWER_S:.1f} s")
    atexit.unregister(thread.join)
    answer = found[0]
    if isinstance(answer, BusyError):
        log_harmless(logging.INFO, f"{WHAT} is not known: other programs use its cores. {WHEN_IDLE}")
        return None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _measured(torch: ModuleType, budget_s: float) -> _Speed:
    end_s = time.perf_counter() + budget_s
    with torch.inference_mode():
        return {"torch": _build(torch), "times": 1, "host": _host(torch, end_s)}


def _build(torch: ModuleType) -> str:
    return str(torch.__version__)


def _host(torch: ModuleType, end_s: float) -> _Speed:
    """All figures of the processor, in rounds: interruptions by others last longer than a run, but not for long."""
    threads, fault = torch.get_num_threads(), fault_ns()
    counts = sorted({1, threads})
    with _threads_set_back(torch):
        _check_that_cores_are_free(torch, threads)
        operators = _operators(torch)
        products = [_Product(torch, name, count) for count in counts for name in DTYPES]
        caches = {(size, count): _copies(torch, size, count) for count in counts for size in SETS}
        size, memory = _memory(torch, counts, fault)
        figures: list[_Figure | _Product] = [*products, *operators, *chain(*caches.values())]
        figures += [each for kinds in memory.values() for _, each in kinds]
        _run_all(torch, figures, end_s)
        _check_that_threads_help(products)
    return {
        "threads": threads,
        "operator_ns": round(min(each.best_ns for each in operators), 1),
        "page_fault_ns": round(fault, 1),
        "products": [each.rate() for each in products],
        "copies": [
            *(_copy_rate(size, count, *pair) for (size, count), pair in caches.items()),
            *(_memory_rate(size, count, kinds) for count, kinds in memory.items()),
        ],
    }


def _run_all(torch: ModuleType, figures: list[_Figure | _Product], end_s: float) -> None:
    """Runs all figures round by round, until the time is over; each at least once."""
    figures = sorted(figures, key=lambda each: each.threads)
    for number in count():
        for figure in figures:
            if number and time.perf_counter() > end_s:
                return
            if not figure.is_seldom or not number % SELDOM:
                if figure.threads != torch.get_num_threads():
                    torch.set_num_threads(figure.threads)
                figure.run()


@contextmanager
def _threads_set_back(torch: ModuleType) -> Iterator[None]:
    """Sets the number of threads back at the end."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _check_that_cores_are_free(torch: ModuleType, threads: int) -> None:
    """Raises `BusyError` if this process does not get the cores that it asks for."""
    torch.set_num_threads(threads)
    factor = torch.ones((512, 512), dtype=torch.float32, device="cpu")
    result = torch.mm(factor, factor)
    for _ in range(TRIES):  # another program may work for a moment only
        started_ns, used_ns = time.perf_counter_ns(), time.process_time_ns()
        while time.perf_counter_ns() - started_ns < LOOK_NS:
            torch.mm(factor, factor, out=result)
        cores = (time.process_time_ns() - used_ns) / (time.perf_counter_ns() - started_ns)
        if cores >= OWN_CORES * min(threads, _cores()):
            return
    raise BusyError


def _check_that_threads_help(products: list[_Product]) -> None:
    """Raises `BusyError` if all threads together are slower than one: they waited for cores that others had."""
    rates = {each.threads: each.best for each in products if each.name == DTYPES[0]}
    if rates[max(rates)] < rates[1]:
        raise BusyError


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Product:
    """Square products in one dtype: of the two largest sides that do not take too long, found in the first rounds.

    A side is added when a run of it should not take too long by the best run so far, so that one slow run is no reason
    to stay with small sides.
    """

    is_seldom = False

    def __init__(self, torch: ModuleType, name: str, threads: int) -> None:
        self.name, self.threads = name, threads
        self._torch = torch
        self._sides: dict[int, _Figure] = {}

    def run(self) -> None:
        """One more round."""
        for side in sorted(self._sides)[-2:]:
            self._sides[side].run()
        while (larger := self._next()) is not None:
            self._add(larger)

    def _next(self) -> int | None:
        """The next side, if a product of it should not take too long."""
        side = next((each for each in SIDES if each not in self._sides), None)
        if side is None or not self._sides:
            return side
        largest = max(self._sides)
        return side if self._sides[largest].best_ns * (side / largest) ** 3 <= LONGEST_PRODUCT_NS else None

    def _add(self, side: int) -> None:
        torch = self._torch
        factor = torch.ones((side, side), dtype=getattr(torch, self.name), device="cpu")
        result = torch.mm(factor, factor)  # the first call prepares the next ones
        figure = self._sides[side] = _Figure(self.threads, partial(torch.mm, factor, factor, out=result))
        for _ in range(FIRST_RUNS):
            figure.run()

    @property
    def best(self) -> float:
        """The best rate of all sides, in FLOP/s."""
        return max(2 * side**3 / each.best_ns for side, each in self._sides.items()) * 1e9

    def rate(self) -> _Row:
        """The same as a row."""
        return {"dtype": self.name, "threads": self.threads, "flops_per_second": self.best}


def _copies(torch: ModuleType, size: int, threads: int) -> tuple[_Figure, _Figure]:
    """A copy within a cache, and one without work."""
    source, target = (torch.ones(size // 8, dtype=torch.float32, device="cpu") for _ in range(2))
    whole, empty = partial(target.copy_, source), partial(target[:16].copy_, source[:16])
    of_whole = _Figure(threads, partial(_often, whole), SHORT_CALLS, SHORT_RUNS)
    if size > SHORT_SET:
        of_whole = _Figure(threads, whole, runs=SETTLED_RUNS)
    return of_whole, _Figure(threads, partial(_often, empty), SHORT_CALLS, SHORT_RUNS)


def _copy_rate(size: int, threads: int, whole: _Figure, empty: _Figure) -> _Row:
    """The rate beyond the time of a copy without work."""
    took_ns = max(whole.best_ns - empty.best_ns, whole.best_ns / LARGEST_START)
    return {"bytes": size, "threads": threads, "bytes_per_second": size / took_ns * 1e9}


def _memory(torch: ModuleType, counts: list[int], fault: float) -> tuple[int, dict[int, list[tuple[int, _Figure]]]]:
    """Bytes of the working set; by threads, the bytes that copying and adding up move, and these."""
    allowed = min(MAPPING_NS / max(fault, 1) * PAGE_SIZE, _free_memory() / SPARE_MEMORY)
    wanted = [size for size in MEMORY_SETS if size <= allowed and size // 2 < BEYOND_CACHE * _largest_cache()]
    if not wanted:
        return 0, {}
    size = wanted[-1]
    whole = torch.ones(size // 4, dtype=torch.float32, device="cpu")
    source, target = whole.chunk(2)
    kinds = [(size, partial(target.copy_, source)), (size, whole.sum)]
    return size, {
        threads: [(moved, _Figure(threads, act, runs=min(threads, 2), is_seldom=True)) for moved, act in kinds]
        for threads in counts
    }


def _memory_rate(size: int, threads: int, kinds: list[tuple[int, _Figure]]) -> _Row:
    best = max(moved / each.best_ns for moved, each in kinds)
    return {"bytes": size, "threads": threads, "bytes_per_second": best * 1e9}


def _operators(torch: ModuleType) -> list[_Figure]:
    """Some operators without work."""
    one = torch.ones(1, dtype=torch.float32, device="cpu")
    cheap: list[Callable[[], object]] = [one.detach, partial(one.copy_, one), partial(one.view, 1)]
    return [_Figure(1, partial(_often, act), SHORT_CALLS, SHORT_RUNS) for act in cheap]


def _often(act: Callable[[], object]) -> None:
    for _ in range(SHORT_CALLS):
        act()


def _largest_cache() -> int:
    """Bytes of the largest cache of the first core, 0 if unknown."""
    sizes = [0]
    for index in range(8):
        try:
            text = Path(f"/sys/devices/system/cpu/cpu0/cache/index{index}/size").read_text("ascii").strip()
            sizes.append(int(text.rstrip("KM")) << {"K": 10, "M": 20}.get(text[-1:], 0))
        except (OSError, ValueError):
            break
    return max(sizes)


def _free_memory() -> float:
    """Bytes that the system can give; infinite if unknown."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text("ascii").splitlines())
        return int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return float("inf")


def main() -> None:
    """Writes the figures to stdout as JSON and keeps them; measures for as many seconds as a line of stdin says.

    Exits with `EXIT_BUSY` if the cores are.
    """
    import torch

    found = measured_apart(float(sys.stdin.readline() or LEISURE_S))
    if found is None:
        sys.exit(EXIT_BUSY)
    text = json.dumps({**found, "times": TIMES})
    keep_machine(machine_file(_build(torch)), text.encode())
    sys.stdout.write(text)
