"""Which captured launch a replayed kernel comes from, over changes of the sequence whose truth is known."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

from tb_tidy_plugin.profile.graphs import match as graph_match
from tb_tidy_plugin.profile.graphs.match import (
    EXACT,
    RENAMED,
    UNIQUE,
    Pairs,
    by_occurrence,
    matched,
    numbered_texts,
    spread,
)
from tb_tidy_plugin.profile.graphs.records import RecordSource, captures_of, family_of
from tb_tidy_plugin.profile.kernels import kernel_kind
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared

Changed: TypeAlias = list[tuple[int, str]]
"""For each replayed kernel its true launch (-2 for none) and its name."""

Change: TypeAlias = Callable[[random.Random, list[str]], Changed]

LAYER = (
    *("norm", "gemm1", "copy", "copy", "rope", "store", "attention", "reduce"),
    *("gemm2", "norm", "gemm3", "act", "gemm4", "add", "copy"),
)
MODEL = ["embed", "copy", *LAYER * 20, "norm", "gemm5", "softmax"]
MOST_WRONG = 0.001


def captured(name: str) -> list[str]:
    """Kernels of a capture: of a drawn model, or the first of a shared recording."""
    if name == "drawn":
        return MODEL
    source = RecordSource.of(read_trace(next(shared(f"traces/{CAPTURES[name]}").glob("*.json.gz"))))
    return list(captures_of(source)[0].names[:400])


def lost(share: float) -> Change:
    return lambda dice, names: [each for each in enumerate(names) if dice.random() >= share]


def other_products(dice: random.Random, names: list[str]) -> Changed:
    """Every product is another kernel, and a third of them have a second one behind them."""
    found: Changed = []
    for at, name in enumerate(names):
        is_product = kernel_kind(name) == "matrix"
        found.append((at, f"product{dice.randrange(50)}" if is_product else name))
        if is_product and dice.random() < 0.3:
            found.append((-2, "splitKreduce"))
    return found


def swapped(dice: random.Random, names: list[str]) -> Changed:
    """A tenth of the kernels change places with the next one; of two with one name nobody could tell."""
    found, at = list(enumerate(names)), 0
    while at + 1 < len(found):
        if dice.random() < 0.1 and found[at][1] != found[at + 1][1]:
            found[at], found[at + 1] = found[at + 1], found[at]
            at += 1
        at += 1
    return found


def streams(dice: random.Random, names: list[str]) -> Changed:
    """A fifth of the kernels run on another stream, up to three places earlier; each name keeps its order."""
    found = list(enumerate(names))
    for at in range(3, len(found)):
        if dice.random() < 0.2 and found[at][1] not in {name for _, name in found[at - 3 : at]}:
            found.insert(at - 3, found.pop(at))
    return sorted(found, key=lambda each: [here for here, _ in found].index(each[0]))


def wrong_shares(pairs: Pairs, replay: Changed) -> tuple[float, float]:
    """Of the certain pairs and of all kernels, the part with a launch that is not theirs."""
    truth = np.array([at for at, _ in replay])
    wrong = (pairs.launch != truth) & (pairs.launch != ABSENT)
    return float(wrong[pairs.certain].mean()) if pairs.certain.any() else 0.0, float(wrong.mean())


CHANGES: dict[str, tuple[Change, float]] = {
    "1 % lost": (lost(0.01), 0.98),
    "5 % lost": (lost(0.05), 0.95),
    "20 % lost": (lost(0.2), 0.9),
    "other products": (other_products, 0.3),
    "neighbours swapped": (swapped, 0.7),
}


CAPTURES = {"sglang": "mi300_sglang_graph_capture", "flux": "mi300_xdit_flux_capture"}


@pytest.mark.parametrize("name", ["drawn", *CAPTURES])
def test_what_is_certain_is_right(name: str) -> None:
    """Each change with the part of the kernels that is certain at least; of all pairs at most 2 % are wrong."""
    capture = captured(name)
    for change, least in CHANGES.values():
        for seed in range(3):
            replay = change(random.Random(seed), capture)
            pairs = matched(*numbered_texts([kernel for _, kernel in replay], capture))
            certain, everything = wrong_shares(pairs, replay)
            assert certain <= MOST_WRONG
            assert everything <= 0.02
            assert pairs.certain.mean() >= least


@pytest.mark.parametrize("name", CAPTURES)
def test_families_are_enough_for_another_batch_or_device(name: str) -> None:
    capture = [family_of(kernel) for kernel in captured(name)]
    assert (matched(*numbered_texts(capture, capture)).known == EXACT).all()
    replay = lost(0.05)(random.Random(1), capture)
    pairs = matched(*numbered_texts([kernel for _, kernel in replay], capture))
    assert wrong_shares(pairs, replay)[0] <= MOST_WRONG
    assert pairs.certain.mean() > 0.9


def test_a_donor_without_its_second_half_explains_nothing_that_repeats() -> None:
    pairs = matched(*numbered_texts(MODEL, MODEL[: len(MODEL) // 2]))
    assert pairs.certain.mean() < 0.1


def test_a_foreign_model_explains_nothing() -> None:
    foreign = [f"other_{name}" if at % 7 else name for at, name in enumerate(MODEL)]
    assert matched(*numbered_texts(foreign, MODEL[::-1])).certain.mean() < 0.1


def test_several_streams_are_paired_by_the_kth_of_each_name() -> None:
    for seed in range(3):
        replay = streams(random.Random(seed), MODEL)
        pairs = by_occurrence(*numbered_texts([kernel for _, kernel in replay], MODEL))
        assert (pairs.launch != ABSENT).all()
        certain, everything = wrong_shares(pairs, replay)
        assert certain <= MOST_WRONG
        assert everything <= 0.02
        assert set(pairs.known.tolist()) == {UNIQUE, RENAMED}


def test_other_counts_are_never_paired_by_name() -> None:
    assert (by_occurrence(*numbered_texts("aab", "abb")).launch == ABSENT).all()


def test_a_name_that_fits_twice_is_left_out() -> None:
    assert matched(*numbered_texts("xay", "xaay")).launch.tolist() == [0, ABSENT, 3]


def test_other_names_between_two_certain_ones_are_known_by_their_place() -> None:
    pairs = matched(*numbered_texts("xpqy", "xaby"))
    assert pairs.launch.tolist() == [0, 1, 2, 3]
    assert pairs.known.tolist() == [UNIQUE, RENAMED, RENAMED, UNIQUE]
    assert matched(*numbered_texts("xpqy", "xaaby")).launch.tolist() == [0, ABSENT, ABSENT, 4]
    assert matched(*numbered_texts("xpby", "xbcy")).launch.tolist() == [0, ABSENT, ABSENT, 3]


def test_one_name_between_two_certain_ones_is_spread_over_more_or_fewer_of_it() -> None:
    for replay, capture, expected in (
        ("xaay", "xay", [0, 1, 1, 2]),
        ("xay", "xaay", [0, 1, 3]),
        ("xaby", "xcay", [0, ABSENT, ABSENT, 3]),
    ):
        names = numbered_texts(replay, capture)
        assert spread(matched(*names), *names).launch.tolist() == expected


def test_sequences_that_are_too_long_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_match, "MOST_CELLS", 8)
    assert (matched(*numbered_texts("abc", "abd")).launch == ABSENT).all()
    assert (matched(*numbered_texts("abc", "abc")).known == EXACT).all()
