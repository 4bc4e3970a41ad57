"""Host or device: whose time counts."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.profile.sides import slower_side
from tb_tidy_plugin.rulekit.testing.drawn import A100, draw, row_of


@pytest.mark.parametrize(("kernel_us", "expected"), [(50, "aten::mul"), (51, "kernel"), (500, "kernel")])
def test_the_side_that_takes_longer(kernel_us: int, expected: str) -> None:
    profile = draw(f"aten::mul 0-50 kernel=kernel@100-{100 + kernel_us}", A100)
    (row,) = slower_side(profile, [row_of(profile, "aten::mul")])
    assert profile.name(row) == expected


def test_the_host_where_nothing_is_launched() -> None:
    profile = draw("aten::mul 0-50\naten::add 60-70")
    assert len(slower_side(profile, [0, 1])) == 2
