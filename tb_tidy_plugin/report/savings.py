"""Savings in words: the likely value first, then how sure it is and how it is known. The page says the same words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tb_tidy_plugin.report.model import Saving
from tb_tidy_plugin.units import Nanoseconds
from tb_tidy_plugin.vocabulary import Basis

NO_SAVING = "no saving expected"
FILLED = "nothing if other work fills the time that becomes free"

KNOWN_HOW: Mapping[Basis, str] = {
    "bound": "an upper limit",
    "replayed": "computed from the timeline",
    "measured": "measured",
}


def expected_text(saving: Saving) -> str:
    """`about 12.3 ms`, or that nothing is expected."""
    return f"about {Nanoseconds(saving.expected_ns)}" if saving.expected_ns else NO_SAVING


def likelihood_text(saving: Saving) -> str:
    """`at least 12 ms, at most 21.3 ms`; a least of nothing says when it comes to that. Empty where nothing is open."""
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


def saving_text(saving: Saving) -> str:
    """`about 12.3 ms, at least 12 ms, at most 21.3 ms`."""
    return ", ".join(filter(None, (expected_text(saving), likelihood_text(saving))))
