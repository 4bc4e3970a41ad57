"""`python -m tests.estimate`: how near the replay of each real recording is, and what it costs; into docs/estimates.md.

Needs the shared traces. Times are seconds of processor time, the shortest of some rounds, which other work disturbs
least.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tb_tidy_plugin.analysis.checker import Found, check_rule
from tb_tidy_plugin.estimate.graph import graph_of
from tb_tidy_plugin.estimate.replay import replay
from tb_tidy_plugin.estimate.saving import Fix, SavingEstimates
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rules import all_rules
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.page_parts import write_part
from tests.support.recordings import ROOT, SHARED, shared_names

PAGE = ROOT / "docs" / "estimates.md"
HEADER = (
    "| recording | events | cuts and activities | waits | residual | unexplained | one replay | graph | all savings |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
)
ROUNDS = 3


@dataclass(frozen=True)
class Residual:
    """What the replay of one recording is like; times in seconds.

    `nodes` are the cuts of host threads and the activities of devices; `savings_s` is for all findings, one by one and
    together, with the graph but without the rules.
    """

    events: int
    nodes: int
    waits: int
    residual: float
    unexplained: float
    replay_s: float
    graph_s: float
    savings_s: float


def main() -> None:
    """Writes the table."""
    rows = []
    for name in shared_names("traces"):
        paths = [file.path for file in find_traces(SHARED / "traces" / name) if isinstance(file.path, Path)]
        for path in paths:
            if (found := residual_of(path)) is not None:
                label = f"{name}, {path.name.partition('.')[0]}" if len(paths) > 1 else name
                rows.append(row(label, found))
                sys.stderr.write(rows[-1])
    write_part(PAGE, "residuals", HEADER + "".join(rows))


def residual_of(path: Path) -> Residual | None:
    """The figures of one trace; None where nothing can be replayed."""
    profile = Profile(read_trace(path))
    graph = graph_of(profile)
    if graph is None:
        return None
    fixes = list(_fixes(profile))
    estimates = SavingEstimates(profile)
    return Residual(
        events=len(profile.table),
        nodes=len(graph.host.time_ns) + len(graph.device),
        waits=len(graph.waits),
        residual=estimates.residual or 0.0,
        unexplained=estimates.unexplained,
        replay_s=_shortest(lambda: replay(graph)),
        graph_s=_shortest(lambda: graph_of(profile)),
        savings_s=_shortest(lambda: _all_savings(SavingEstimates(profile), fixes)),
    )


def row(name: str, found: Residual) -> str:
    """One line of the table."""
    times = (f"{1e3 * each:.1f} ms" for each in (found.replay_s, found.graph_s, found.savings_s))
    shares = (f"{100 * found.residual:.2f} %", f"{100 * found.unexplained:.1f} %")
    cells = (f"`{name}`", f"{found.events:,}", f"{found.nodes:,}", f"{found.waits:,}", *shares, *times)
    return f"| {' | '.join(cells)} |\n"


def _fixes(profile: Profile) -> Iterator[Fix]:
    """What each rule would change, all of its matches together."""
    for rule in (each() for each in all_rules()):
        if isinstance(outcome := check_rule(profile, rule), Found):
            matches = outcome.matches
            lost = [span for match in matches for span in match.lost or ()]
            yield Fix([edit for match in matches for edit in rule.remedy(profile, match)], lost or None)


def _all_savings(estimates: SavingEstimates, fixes: list[Fix]) -> None:
    for fix in fixes:
        estimates.saving(fix)
    estimates.joint_saving(*fixes)


def _shortest(task: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        task()
        times.append(time.process_time() - began)
    return min(times)


if __name__ == "__main__":
    main()
