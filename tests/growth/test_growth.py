"""Time and memory are proportional to the input, whatever there is much of: from the file to every output.

Most runs are small here. `python -m tests.growth`, which `make proof` runs, looks at three runs of a second and more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.growth.growth import ENDS, complaints, line_of, sizes_of, small_run
from tests.growth.taken import Taker
from tests.support.growing import INPUTS, MANY
from tests.support.thinned import thinned

TIMES = 0.25

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory otherwise"),
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("growth") / "small")


@pytest.fixture(scope="module")
def taker(small: Path) -> Iterator[Taker]:
    with Taker("everything", small) as found:
        yield found


@pytest.mark.parametrize("name", thinned(list(INPUTS), 3))
def test_it_grows_as_its_input_does(name: str, taker: Taker, tmp_path: Path) -> None:
    sizes = sizes_of(taker, INPUTS[name], tmp_path / "run", TIMES, ENDS)
    assert not complaints(sizes), line_of(name, sizes)


@pytest.mark.proof
@pytest.mark.parametrize("name", ["threads", "processes"])
def test_many_lanes_take_their_number_not_its_square(name: str, small: Path, tmp_path: Path) -> None:
    """As TensorBoard's worker takes them: a cheap step that looks at all lanes for each shows late."""
    growing = INPUTS[name]
    with Taker("worker", small) as worker:
        sizes = sizes_of(worker, growing, tmp_path / "run", MANY[name] / growing.count, ENDS)
    assert [each.count for each in sizes] == [20_000, 80_000]
    assert not complaints(sizes), line_of(name, sizes)
