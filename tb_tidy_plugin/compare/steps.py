"""Comparison of step times, taking noise into account."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.compare.machine import MachineRatio
from tb_tidy_plugin.compare.model import Ratio
from tb_tidy_plugin.words.vocabulary import Verdict

_RESAMPLES = 4000
_INTERVAL = (2.5, 97.5)  # per cent

BETWEEN_RECORDINGS = 0.03
"""Usual difference of two recordings of one program on a quiet machine, even if their steps do not differ."""

_WIDEST = float(np.log(1000))
"""Widest half of an interval, as a logarithm: with two steps on a side t gives astronomic figures."""

_FEWEST = 2  # steps needed for a spread
FEWEST_RECORDINGS = 3  # needed for a spread between them: with two, t would say next to nothing

NORMAL_975 = 1.96

T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Student's t for 1 to 15 degrees of freedom at 97.5 %; beyond, the normal distribution's 1.96 is close enough."""


def step_ratio(
    base_ns: Sequence[Sequence[int]],
    candidate_ns: Sequence[Sequence[int]],
    machine: MachineRatio | None = None,
    *,
    within_recording: bool = False,
) -> Ratio | None:
    """The ratio of median steps with its interval; None without steps. Each side is a list of recordings of steps.

    The interval is the widest of three: of medians resampled from the steps, which accounts for skewed steps; of
    Student's t on logarithms, which accounts for few steps; and if both sides were recorded three times or more, of t
    on the recordings' medians. It is widened by the usual difference of recordings of one program, and by what
    `machine` shows beyond that: it reaches from the measured ratio to that on one machine. Steps of one recording need
    neither. With fewer than two steps on a side the spread is unknown, and the interval reaches from half to twice the
    ratio.
    """
    base, candidate = (np.array(list(chain.from_iterable(side)), np.float64) for side in (base_ns, candidate_ns))
    if not len(base) or not len(candidate):
        return None
    value = float(np.median(candidate) / np.median(base))
    if min(len(base), len(candidate)) < _FEWEST:
        return Ratio(value=value, low=value / 2, high=value * 2)
    spread = max(_by_resampling(base, candidate, value), _by_t(base, candidate), _between(base_ns, candidate_ns))
    spread = min(spread, _WIDEST)
    if within_recording:
        width = float(np.exp(spread))
        return Ratio(value=value, low=value / width, high=value * width)
    machine = machine or MachineRatio(0.0, 0.0)
    width = float(np.exp(np.hypot(np.hypot(spread, NORMAL_975 * machine.error), np.log1p(BETWEEN_RECORDINGS))))
    on_one_machine = value / machine.ratio
    return Ratio(value=value, low=min(value, on_one_machine) / width, high=max(value, on_one_machine) * width)


def around(ratio: Ratio, value: float) -> Ratio:
    """The ratio `value` with the same relative distance to both ends of the interval."""
    by = value / ratio.value
    return Ratio(value=value, low=ratio.low * by, high=ratio.high * by)


VAGUE = 25
"""An interval says nothing if its upper end is more than this many times its lower end."""


def is_vague(ratio: Ratio) -> bool:
    """True if the interval says nothing: too few steps, or steps that differ too much."""
    return ratio.high > VAGUE * ratio.low


def verdict_of(ratio: Ratio | None) -> Verdict:
    """Faster or slower only if the whole interval is on one side of 1."""
    if ratio is None or ratio.low <= 1 <= ratio.high:
        return "no_clear_difference"
    return "faster" if ratio.high < 1 else "slower"


def _between(base_ns: Sequence[Sequence[int]], candidate_ns: Sequence[Sequence[int]]) -> float:
    """Half the width by Welch's t-test on the medians of recordings, if each side has enough of them."""
    base, candidate = (
        np.array([np.median(each) for each in side if len(each)], np.float64) for side in (base_ns, candidate_ns)
    )
    return _by_t(base, candidate) if min(len(base), len(candidate)) >= FEWEST_RECORDINGS else 0.0


def _by_resampling(base: NDArray[np.float64], candidate: NDArray[np.float64], value: float) -> float:
    """Half the width of the interval of the ratio's logarithm, by the bootstrap (Efron, 1979)."""
    random = np.random.default_rng(0)  # the same answer each time
    medians = [np.median(random.choice(times, (_RESAMPLES, len(times))), axis=1) for times in (base, candidate)]
    low, high = np.percentile(np.log(medians[1] / medians[0]), _INTERVAL)
    return float(max(np.log(value) - low, high - np.log(value), 0.0))


def _by_t(base: NDArray[np.float64], candidate: NDArray[np.float64]) -> float:
    """Half the width by Welch's t-test on logarithms (Welch, 1947)."""
    parts = [float(np.log(times).var(ddof=1)) / len(times) for times in (base, candidate)]
    error = sum(parts)
    if not error:
        return 0.0
    freedom = error**2 / sum(part**2 / (len(times) - 1) for part, times in zip(parts, (base, candidate), strict=True))
    t = T_975[max(int(freedom), 1) - 1] if freedom < len(T_975) + 1 else NORMAL_975
    return t * float(np.sqrt(error))
