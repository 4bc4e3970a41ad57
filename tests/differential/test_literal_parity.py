"""Upstream's literal semantics on our tree give upstream's counts: stored ones, and those of the installed torch."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.kineto import read_trace
from tests.differential.literal_upstream import count_all
from tests.support.recordings import ROOT, shared, shared_names

RECORDER = Path(__file__).with_name("live_upstream.py")


@pytest.mark.parametrize("program", shared_names("parity"))
def test_stored_counts(program: str) -> None:
    folder = shared(f"parity/{program}")
    expected = json.loads((folder / "expected.json").read_text())["patterns"]
    ours = count_all(Profile(read_trace(folder / "trace.pt.trace.json.gz")))
    # Where upstream's matcher crashed (names of freed code objects) there is no count to compare.
    counted = {name: pattern["count"] for name, pattern in expected.items() if "count" in pattern}
    assert {name: ours[name] for name in counted} == counted
    assert counted


@pytest.mark.torch
def test_live_counts(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None and not os.environ.get("CI"):
        pytest.skip("torch is not installed")
    done = subprocess.run(
        [sys.executable, str(RECORDER), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode == 3 and not os.environ.get("CI"):
        pytest.skip("this torch no longer has torch.profiler._pattern_matcher")
    assert done.returncode == 0, done.stderr
    live = json.loads((tmp_path / "live.json").read_text())
    assert len(live) >= 8
    for program, counts in live.items():
        ours = count_all(Profile(read_trace(tmp_path / f"{program}.pt.trace.json")))
        # A matcher that crashed on the live tree (names of freed code objects, an upstream defect) has no count.
        compared = {name: count for name, count in counts.items() if count is not None}
        assert {name: ours[name] for name in compared} == compared, program
    totals = {name: sum(counts[name] or 0 for counts in live.values()) for name in next(iter(live.values()))}
    assert min(totals.values()) >= 1, f"a pattern that never matched compares nothing: {totals}"
