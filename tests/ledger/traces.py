"""Traces for the ledger: made event by event, in µs, and the shared recordings."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.ledger.account import Account, account_of, passes_of
from tb_tidy_plugin.ledger.model import Ledger
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.cache import NOWHERE
from tb_tidy_plugin.trace.columns import EventTable
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.limits import USUAL_LIMITS
from tb_tidy_plugin.words.causes import CauseGroup, legend_of
from tests.support.recordings import SHARED

MAIN, OTHER = 1, 2
DEVICE = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0}


class Made:
    """A trace that is made event by event, all times in µs; `device` is what its device has unlike `DEVICE`."""

    def __init__(self, **device: object) -> None:
        self.device = {**DEVICE, **device}
        self.keys: dict[str, object] = {"cuda_version": 1}
        self.events: list[dict[str, Any]] = []
        self._correlation = count(1)

    def add(
        self, category: str, name: str, start: float, end: float, thread: int = MAIN, pid: int = 100, **args: object
    ) -> Made:
        """Any event."""
        self.events.append(
            {
                "ph": "X", "cat": category, "name": name, "pid": pid, "tid": thread, "ts": start,
                "dur": end - start, "args": args,
            }
        )  # fmt: skip
        return self

    def mark(self, name: str, start: float, end: float, thread: int = MAIN) -> Made:
        """An annotation."""
        return self.add("user_annotation", name, start, end, thread)

    def operator(self, name: str, start: float, end: float, thread: int = MAIN, **args: object) -> Made:
        """An operator."""
        return self.add("cpu_op", name, start, end, thread, **args)  # type: ignore[arg-type]

    def frame(self, name: str, start: float, end: float, thread: int = MAIN) -> Made:
        """A Python function."""
        number: dict[str, Any] = {"Python id": next(self._correlation)}
        return self.add("python_function", name, start, end, thread, **number)

    def call(self, name: str, start: float, end: float, thread: int = MAIN, **args: object) -> Made:
        """A call of the runtime."""
        return self.add("cuda_runtime", name, start, end, thread, **args)  # type: ignore[arg-type]

    def kernel(
        self, name: str, start: float, end: float, launch: float | None = None, took: float = 2, stream: int = 7,
        thread: int = MAIN,
    ) -> Made:  # fmt: skip
        """A kernel, launched at `launch` by a call that takes `took`; by none where that is None."""
        number = next(self._correlation)
        if launch is not None:
            self.call("cudaLaunchKernel", launch, launch + took, thread, correlation=number)
        return self.add(
            "kernel", name, start, end, stream, 0, device=0, stream=stream, correlation=number if launch else 0
        )

    def copy(self, way: str, start: float, end: float, launch: float, took: float = 2, thread: int = MAIN) -> Made:
        """A copy of the kind `Memcpy HtoD (Pageable -> Device)`."""
        number = next(self._correlation)
        self.call("cudaMemcpyAsync", launch, launch + took, thread, correlation=number)
        return self.add("gpu_memcpy", way, start, end, 7, 0, device=0, stream=7, correlation=number, bytes=1 << 20)

    def graph(self, launch: float, kernels: list[tuple[float, float]]) -> Made:
        """Kernels that one launch of a graph replays."""
        number = next(self._correlation)
        self.call("cudaGraphLaunch", launch, launch + 2, correlation=number)
        for start, end in kernels:
            self.add("kernel", "gemm", start, end, 7, 0, device=0, stream=7, correlation=number)
        return self

    def written(self, folder: Path) -> Path:
        """Its file, in `folder`."""
        document = {
            "schemaVersion": 1,
            "deviceProperties": [self.device],
            "traceEvents": self.events,
            **self.keys,
        }
        path = folder / "made.pt.trace.json"
        path.write_text(json.dumps(document))
        return path

    def profile(self, completed: Callable[[EventTable], EventTable] = lambda table: table) -> Profile:
        """What the real reader makes of it; `completed` puts beside the table what else there is."""
        with tempfile.TemporaryDirectory() as folder:
            return Profile(completed(read_trace(self.written(Path(folder)))))

    def account(self) -> Account:
        """Its ledger."""
        return account_of(self.profile())

    def times_us(self) -> dict[str, float]:
        """µs of each entry, by its id."""
        return {entry.id: entry.ns_total / 1000 for entry in self.account().ledger.entries}


def check(account: Account) -> None:
    """Asserts what holds for every ledger."""
    ledger, segments = account.ledger, account.segments
    window = ledger.window.end_ns - ledger.window.start_ns
    assert all(type(entry.ns_total) is int and entry.ns_total > 0 for entry in ledger.entries)
    assert sum(entry.ns_total for entry in ledger.entries) == window
    for entry in ledger.entries:
        assert entry.floor_ns + sum(gap.ns for gap in entry.gaps) == entry.ns_total
        assert entry.floor_ns >= 0
        assert all(gap.ns > 0 for gap in entry.gaps)
        unknown = sum(gap.ns for gap in entry.gaps if gap.reason == "unknown")
        assert entry.floor_known_ns == entry.ns_total - unknown
    passes = passes_of(account.limits.profile)
    assert int(passes.ns.sum()) == window
    assert (passes.ns > 0).all()
    assert len({entry.id for entry in ledger.entries}) == len(ledger.entries)
    edges = [ledger.window.start_ns, *(step.end_ns for step in ledger.steps)]
    assert edges[-1] == ledger.window.end_ns
    for index, step in enumerate(ledger.steps):
        assert step.start_ns == edges[index]
        assert sum(entry.ns_by_step[index] for entry in ledger.entries) == step.end_ns - step.start_ns
        assert 0 <= step.device_ns <= step.end_ns - step.start_ns
    if window:
        assert (segments.starts[1:] == segments.ends[:-1]).all()
        assert (segments.ends > segments.starts).all()
    assert 0 <= ledger.unnamed_ns <= window
    assert (ledger.banner is None) == (ledger.recording == "steady")
    assert not ledger.is_one_time or ledger.recording in {"start-up", "compilation", "capture"}
    assert [each.group for each in ledger.groups] == [
        group for group in CauseGroup if any(entry.cause.group is group for entry in ledger.entries)
    ]
    totals = [entry.ns_total for entry in ledger.entries]
    assert totals == sorted(totals, reverse=True)
    for at, entry in enumerate(ledger.entries):
        assert entry.share * window == pytest.approx(entry.ns_total)
        assert sum(entry.ns_by_step) == entry.ns_total
        assert entry.owner == entry.owners[0]
        assert sum(owner.ns for owner in entry.owners) <= entry.ns_total
        assert entry.hidden_ns >= 0
        assert (entry.group, entry.proof_text) == (entry.cause.group, entry.cause.proof.text)
        assert (entry.label, entry.colour) == legend_of(entry.cause, entry.kind)
        if at == 0 or entry.share > 0.1:
            assert entry.finding_id or entry.advice or entry.nothing_to_fix, entry.id
        for piece in entry.evidence:
            assert ledger.window.start_ns <= piece.start_ns < piece.end_ns <= ledger.window.end_ns
        limit = entry.limit
        assert limit is None or 0 < limit.known_share <= 1
        assert limit is None or limit.share_reached is None or 0 <= limit.share_reached <= 1
        found = entry.communication
        assert found is None or 0 <= found.wait_ns <= entry.ns_total


def recordings() -> list[str]:
    """Names of all shared recordings, each file by itself: `folder/file`; a placeholder that skips where none is."""
    found = sorted(SHARED.glob("traces/*/*.json*"))
    return [f"{path.parent.name}/{path.name.split('.')[0]}" for path in found] or ["absent"]


def path_of(recording: str) -> Path:
    """The file of a recording by its name; skips where it is absent."""
    folder, _, file = recording.partition("/")
    found = sorted(SHARED.glob(f"traces/{folder}/{file}*.json*"))
    if not found:
        pytest.skip(f"{recording} is not here: set TIDY_SHARED to the folder that holds it")
    return found[0]


@lru_cache(maxsize=1)
def account_in(recording: str) -> tuple[Profile, Account]:
    """A shared recording and its ledger; kept until the next one is asked for."""
    profile = Profile(read_with_side_files(path_of(recording), lambda _: None, NOWHERE, USUAL_LIMITS))
    account = account_of(profile)
    _LEDGERS[recording] = account.ledger
    return profile, account


_LEDGERS: dict[str, Ledger] = {}


def ledger_in(recording: str) -> Ledger:
    """The ledger of a shared recording, kept for good."""
    if recording not in _LEDGERS:
        account_in(recording)
    return _LEDGERS[recording]
