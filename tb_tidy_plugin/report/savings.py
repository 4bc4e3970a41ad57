"""Savings in words: the likely value, then its range and its basis. The page uses the same words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tb_tidy_plugin.report.model import ProfileReport, RunReport, Saving
from tb_tidy_plugin.words.units import Nanoseconds
from tb_tidy_plugin.words.vocabulary import Basis

NO_SAVING = "no saving expected"
FILLED = "nothing if other work fills the time that becomes free"

KNOWN_HOW: Mapping[Basis, str] = {
    "bound": "an upper limit",
    "replayed": "computed from the timeline",
    "measured": "measured",
}


def expected_text(saving: Saving) -> str:
    """`about 12.3 ms`, or a remark that no saving is expected."""
    return f"about {Nanoseconds(saving.expected_ns)}" if saving.expected_ns else NO_SAVING


def likelihood_text(saving: Saving) -> str:
    """`at least 12 ms, at most 21.3 ms`; a lower end of zero says when it applies. Empty if nothing is uncertain."""
    most = f"at most {Nanoseconds(saving.high_ns)}" if saving.high_ns > saving.expected_ns else ""
    if not saving.expected_ns:
        least = ""
    elif saving.low_ns <= 0:
        least = FILLED
    else:
        least = f"at least {Nanoseconds(saving.low_ns)}" if saving.low_ns < saving.expected_ns else ""
    parts = (most, least) if least == FILLED else (least, most)
    return ", ".join(filter(None, parts))


def basis_text(basis: Sequence[Basis]) -> str:
    """`computed from the timeline, measured`."""
    return ", ".join(KNOWN_HOW[each] for each in basis)


def has_two_clocks(part: ProfileReport | RunReport | None) -> bool:
    """True if costs are parts of recorded steps, and savings parts of a step without the profiler."""
    return isinstance(part, ProfileReport) and bool(part.true_step_ns) and part.step_ns == part.true_step_ns


def saving_text(saving: Saving) -> str:
    """`about 12.3 ms, at least 12 ms, at most 21.3 ms`."""
    return ", ".join(filter(None, (expected_text(saving), likelihood_text(saving))))
