"""How much CPU time each rule takes: `python -m tests.performance.rules_speed TRACE...` prints a table per trace.

What a rule asks for first is made for it and counts as its time, whoever asks for it later. Reading, the event tree and
the ledger are measured beside the rules, since no report goes without them; sources are found and read as for a user.

`--made 100 200 400` records loops of so many training steps on the CPU, with shapes and stacks, and measures those,
too: some 3,600 events and 1.3 MB a step.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tb_tidy_plugin.analysis.checker import Found, check_rule
from tb_tidy_plugin.analysis.findings import Known, findings_of, without_yielded, yielding_last
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit import Match, Rows
from tb_tidy_plugin.rules import all_rules
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.lookup import sources_of
from tb_tidy_plugin.trace.files import TraceFile, find_traces
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.remote import size_of
from tests.performance.recorded_loop import record_loop

LOOKING, DESCRIBING = 0, 1


@dataclass
class Round:
    """CPU seconds of one analysis.

    Attributes:
        events: rows of the trace.
        matches: by rule.
        seconds: by rule, for looking and for making findings of what it found.
    """

    events: int
    reading: float
    tree: float
    ledger: float
    matches: Mapping[str, int] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def rules(self) -> float:
        """What all rules took together."""
        return sum(map(sum, self.seconds.values()))

    @contextmanager
    def timing(self, rule: str, part: int) -> Iterator[None]:
        """Adds the time of its block to a part of a rule."""
        start = time.process_time()
        yield
        self.seconds.setdefault(rule, [0.0, 0.0])[part] += time.process_time() - start


def main() -> None:
    """Prints a table for each trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, nargs="*", help="trace files, run folders or logdirs")
    parser.add_argument("--made", type=int, nargs="*", default=[], metavar="STEPS")
    parser.add_argument("--rounds", type=int, default=3, help="the fastest one counts")
    parser.add_argument("--least", type=float, default=1.0, metavar="MS", help="rules that take less share a line")
    given = parser.parse_args()
    for path in given.traces:
        for file in find_traces(path):
            sys.stdout.write(table_of(file, given.rounds, given.least))
    for steps in given.made:
        with tempfile.TemporaryDirectory(prefix="torchtidy-speed-") as folder:
            (file,) = find_traces(record_loop(Path(folder), steps))
            sys.stdout.write(table_of(file, given.rounds, given.least))


def table_of(file: TraceFile, rounds: int, least_ms: float) -> str:
    """The fastest of some rounds over one trace, in Markdown, the slowest rule first."""
    best = min((one_round(file) for _ in range(rounds)), key=lambda each: each.rules)
    ranked = sorted(best.seconds.items(), key=lambda entry: -sum(entry[1]))
    slow = [(rule, parts) for rule, parts in ranked if 1e3 * sum(parts) >= least_ms]
    rows = [(f"`{rule}`", f"{best.matches.get(rule, 0):,}", *map(_ms, parts)) for rule, parts in slow]
    rest = [parts for _, parts in ranked[len(slow) :]]
    if rest:
        rows.append((f"{len(rest)} others", "", *(_ms(sum(each)) for each in zip(*rest, strict=True))))
    looking, describing = (sum(parts[part] for parts in best.seconds.values()) for part in (LOOKING, DESCRIBING))
    rows.append(("**all rules**", "", _ms(looking), _ms(describing)))
    lines = ["| rule | matches | looking, ms | findings, ms |", "|---|--:|--:|--:|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    title = (
        f"{file.path.name}: {best.events:,} events, {size_of(file.path) / 1e6:.0f} MB. "
        f"Reading {best.reading:.2f} s, tree {best.tree:.2f} s, ledger {best.ledger:.2f} s, "
        f"all rules {best.rules:.2f} s: {1e6 * best.rules / best.events:.2f} µs per event."
    )
    return "\n".join([title, "", *lines, "", ""])


def one_round(file: TraceFile) -> Round:
    """One analysis, from the file on."""
    gc.collect()
    started = time.process_time()
    table = read_trace(file.path)
    read = time.process_time()
    profile = Profile(table)
    nested = time.process_time()
    account_of(profile)
    result = Round(len(table), read - started, nested - read, time.process_time() - nested)
    aligner, rules = Aligner(profile, sources_of(file, ())), [rule() for rule in all_rules()]
    matches: dict[str, Sequence[Match]] = {}
    for rule in rules:
        with result.timing(rule.name(), LOOKING):
            outcome = check_rule(profile, rule)
        if isinstance(outcome, Found):
            matches[rule.name()] = outcome.matches
    reported: dict[str, Rows] = {}
    for rule in yielding_last(rules):
        with result.timing(rule.name(), DESCRIBING):
            left, _ = without_yielded(profile, rule, matches.get(rule.name(), ()), reported)
            found = findings_of(profile, rule, left, Known(aligner.place_of))
        if found:
            reported[rule.name()] = np.concatenate([each.rows for each in found])
    result.matches = {name: len(found) for name, found in matches.items()}
    return result


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.1f}"


if __name__ == "__main__":
    main()
