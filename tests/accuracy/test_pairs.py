"""Each slow program has its rule's pattern, each fixed one has not, and neither has any other."""

from __future__ import annotations

import pytest

from tests.accuracy.corpus import Program, parameters, programs
from tests.accuracy.verdicts import verdict_on

PAIRS = [program for program in programs() if program.kind in {"slow", "fixed"}]


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("program", parameters(PAIRS))
def test_exactly_what_is_there_is_found(program: Program) -> None:
    assert not verdict_on(program).complaints
