"""The page about many ranks, with two of them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.performance import ranks
from tests.performance.traces import Trace
from tests.support.logdirs import trace


def test_each_number_of_ranks_has_a_row(tmp_path: Path) -> None:
    path = trace(tmp_path / "run" / "w.pt.trace.json")
    text = ranks.page([Trace("tiny", path, path.stat().st_size)], [2, 1], rounds=1)
    rows = re.findall(r"^\| (\d+) \| [\d.]+ \| [\d.]+–[\d.]+ \| [\d.]+ \| [\d.]+ \| (\d+) \|$", text, re.MULTILINE)
    assert [int(count) for count, _ in rows] == [1, 2]
    assert all(int(memory) > 20 for _, memory in rows)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    found = re.findall(r"^\| (.+) \| ([\d.]+) \| (\d+) %", text, re.MULTILINE)
    assert [name for name, _, _ in found] == [*ranks.STAGES]
    assert 97 <= sum(int(share) for _, _, share in found) <= 103
