"""Cases of one kind: a few for `make test`, all for `make proof`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

STEPS = pytest.mark.parametrize(
    "every", [pytest.param(3, id="every third"), pytest.param(1, id="all", marks=pytest.mark.proof)]
)
"""For a test that goes over many cases by itself: it looks at the first of each `every` cases."""


def thinned(cases: Sequence[str], every: int) -> list[object]:
    """Parameters of a test, of which `make test` has the first of each `every` cases."""
    return [pytest.param(case, marks=[] if at % every == 0 else pytest.mark.proof) for at, case in enumerate(cases)]
