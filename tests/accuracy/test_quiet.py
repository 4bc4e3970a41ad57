"""Near misses and clean programs hold no pattern: nothing is found in them but what they name themselves."""

from __future__ import annotations

import pytest

from tests.accuracy.corpus import Program, parameters, programs
from tests.accuracy.verdicts import verdict_on

QUIET = [program for program in programs() if program.kind in {"near", "clean"}]


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("program", parameters(QUIET))
def test_nothing_is_found_that_is_not_there(program: Program) -> None:
    assert not verdict_on(program).complaints
