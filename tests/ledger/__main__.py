"""Writes the table of `docs/ledger.md`: `python -m tests.ledger`."""

from __future__ import annotations

import time
from statistics import median

from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.ledger.model import Ledger
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.cache import NOWHERE
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.limits import USUAL_LIMITS
from tb_tidy_plugin.words.units import Nanoseconds, Share
from tests.ledger.traces import path_of, recordings
from tests.support.page_parts import write_part
from tests.support.recordings import ROOT

PAGE = ROOT / "docs" / "ledger.md"
NAMED = 0.05
HEAD = (
    "| recording | kind | steps | step | host's mark | unnamed | largest entries | left out |\n"
    "|---|---|--:|--:|--:|--:|---|--:|"
)


def row(name: str, ledger: Ledger) -> str:
    """One line of the table."""
    window = max(ledger.window.end_ns - ledger.window.start_ns, 1)
    largest = ", ".join(f"{entry.id} {Share(entry.share)}" for entry in ledger.entries[:3])
    cells = (
        name,
        ledger.recording,
        f"{ledger.step_ns.n}, {ledger.step_source.replace('_', ' ')}",
        str(Nanoseconds(ledger.step_ns.median)),
        "–" if ledger.host_step_ns is None else str(Nanoseconds(ledger.host_step_ns)),
        str(Share(ledger.unnamed_ns / window)),
        largest,
        str(Nanoseconds(sum(left.ns for left in ledger.left_out))) if ledger.left_out else "–",
    )
    return f"| {' | '.join(cells)} |"


def figures(ledgers: dict[str, Ledger], linked: set[str]) -> list[str]:
    """How much the ledgers tell, as list items.

    Args:
        ledgers: by recording.
        linked: recordings whose device work is linked to its launches.
    """

    def unnamed(name: str) -> float:
        window = ledgers[name].window
        return ledgers[name].unnamed_ns / max(window.end_ns - window.start_ns, 1)

    told = {name for name in linked if ledgers[name].recording != "thinned"}
    first = [ledger.entries[0] for ledger in ledgers.values()]
    unknown = [entry for entry in first if not entry.advice and "is not known because" in (entry.nothing_to_fix or "")]
    fits, fits_told = (sum(unnamed(name) < NAMED for name in names) for names in (ledgers, told))
    reasons = sum(bool(entry.advice or entry.nothing_to_fix) for entry in first)
    return [
        f"- {len(ledgers)} recordings. Median unnamed time: {Share(median(map(unnamed, ledgers)))}.",
        f"- Less than {Share(NAMED)} is unnamed in {fits} recordings, and in {fits_told} of the {len(told)} with",
        "  linked launches and without removed events.",
        f"- The largest entry has advice or a reason in {reasons} recordings; in {len(unknown)} the only reason is",
        "  that its efficiency is unknown.",
        f"- Banners: {sum(ledger.banner is not None for ledger in ledgers.values())}.",
    ]


def main() -> None:
    """Writes the table and its figures, and says on the terminal how long each ledger took."""
    rows, ledgers, linked = [HEAD], {}, set()
    for recording in recordings():
        if recording == "absent":
            raise SystemExit("The shared recordings are not here: set TIDY_SHARED.")
        if recording.startswith("v100_dlrm_8ranks") and "worker0" not in recording:
            continue
        profile = Profile(read_with_side_files(path_of(recording), lambda _: None, NOWHERE, USUAL_LIMITS))
        before = time.process_time()
        ledger = account_of(profile).ledger
        took = time.process_time() - before
        print(f"{recording}: {took:.3f} s, {took / len(profile.table) * 1e5:.2f} s per 100,000 events")  # noqa: T201
        rows.append(row(recording, ledger))
        ledgers[recording] = ledger
        work = profile.device_work.rows
        if 2 * (profile.launch[work] != ABSENT).sum() >= len(work):
            linked.add(recording)
    write_part(PAGE, "recordings", "\n".join([*rows, "", *figures(ledgers, linked)]))


if __name__ == "__main__":
    main()
