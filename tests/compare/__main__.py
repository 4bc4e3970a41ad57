"""`python -m tests.compare` records and compares the corpus' pairs; it writes the last section of `docs/compare.md`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory

from tb_tidy_plugin.words.units import Nanoseconds
from tests.accuracy.corpus import programs
from tests.accuracy.proof import pairs
from tests.compare.truth import Truth, truth
from tests.support.recordings import ROOT

PAGE = ROOT / "docs" / "compare.md"
HEADING = "## Comparison with timed programs"
HEADER = ("pair", "finding", "verdict", "step time", "without the profiler", "predicted", "realised")
VERDICTS = {"faster": "faster", "slower": "slower", "no_clear_difference": "no clear difference"}


def main() -> None:
    """Writes the section, or says of chosen pairs what is found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*", help="the pairs of this rule; no page is written")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--recordings", type=Path, help="where to keep recordings, and to take them from")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="torchtidy-compare-") as temporary:
        truths = []
        for slow, fixed in pairs(programs()):
            if fnmatch(slow.rule, given.only):
                truths.append(truth(slow, fixed, given.recordings or Path(temporary), given.rounds))
                sys.stderr.write(f"{' | '.join(_row(truths[-1]))}\n")
    text = section(truths, given.rounds)
    if given.only == "*":
        before, _, _ = PAGE.read_text(encoding="utf-8").partition(HEADING)
        PAGE.write_text(before + text, encoding="utf-8")
    else:
        sys.stdout.write(text)


def section(truths: Sequence[Truth], rounds: int) -> str:
    """The section as Markdown, largest effect first."""
    ordered = sorted(truths, key=lambda each: each.comparison.step_ratio.value if each.comparison.step_ratio else 1.0)
    rows = "\n".join(f"| {' | '.join(_row(each))} |" for each in ordered)
    same = [verdict for each in truths for verdict in each.same]
    quiet = same.count("no_clear_difference")
    held = [each.agrees for each in truths if each.agrees is not None]
    return f"""{HEADING}

Written by `python -m tests.compare`: each slow and fixed program of `tests/accuracy`, recorded {rounds} times in turn,
four steps each, with shapes and stacks, on two idle cores. On busy ones steps of one program differ between
recordings by up to six times, and few of these pairs differ clearly.

- The same program recorded twice: no clear difference in {quiet} of {len(same)} pairs
  ({100 * quiet / max(len(same), 1):.1f} %).
- Slow against fixed: the ratio without the profiler (from [accuracy](accuracy.md)) lies within the interval in
  {sum(held)} of {len(held)} pairs. The profiler lengthens many small operators, so the ratio may lie outside.

| {" | ".join(HEADER)} |
|{"---|" * len(HEADER)}
{rows}
"""


def _row(each: Truth) -> tuple[str, ...]:
    comparison, ratio = each.comparison, each.comparison.step_ratio
    return (
        f"`{each.rule}`",
        ", ".join(each.states) or "not found",
        VERDICTS[comparison.verdict],
        f"×{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})" if ratio else "no steps",
        "" if each.measured is None else f"×{each.measured:.2f}",
        str(Nanoseconds(comparison.predicted_ns)),
        "" if comparison.realised_ns is None else _signed(comparison.realised_ns),
    )


def _signed(time_ns: int) -> str:
    return f"{'−' if time_ns < 0 else ''}{Nanoseconds(abs(time_ns))}"


if __name__ == "__main__":
    main()
