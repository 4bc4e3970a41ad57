"""The formatter, against the same table of cases as the page's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.words.units import Bytes, Count, Nanoseconds, Share, between, plural

CASES = json.loads(Path(__file__).with_name("units_cases.json").read_text())
KINDS = {"bytes": Bytes, "nanoseconds": Nanoseconds, "share": Share}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']} {case['value']}")
def test_text(case: dict[str, Any]) -> None:
    assert str(KINDS[case["kind"]](case["value"])) == case["text"]


def test_bounds_that_read_the_same_are_said_once() -> None:
    assert between(1_000_000, 2_000_000) == "1 ms to 2 ms"
    assert between(457_100, 457_300) == "457 µs"


def test_counts_in_words() -> None:
    """As the page's own: `frontend/src/base/units.test.ts`."""
    assert f"{Count(56_451)}" == "56,451"
    assert [plural(1, "match", "matches"), plural(2, "match", "matches"), plural(0, "step")] == [
        "1 match", "2 matches", "0 steps",
    ]  # fmt: skip
    assert plural(2048, "operator") == "2,048 operators"


def test_all_kinds_are_covered() -> None:
    assert {case["kind"] for case in CASES} == set(KINDS)
    assert len(CASES) >= 70
