"""The sections of `docs/accuracy.md` on the second corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from tb_tidy_plugin.report.model import Finding
from tb_tidy_plugin.words.units import plural
from tests.accuracy.page import PRECISION_TARGET, REAL_ERROR_TARGET, errors_in_all, percent, proof_row, table
from tests.second_corpus.corpus import Loss
from tests.second_corpus.judgement import FIRST, Judged, why_not
from tests.second_corpus.proof import WORTH, Measured

COUNTED_HEADING = "## Second corpus"
TIMED_HEADING = "## Second corpus: what each loss costs"
RECALL_TARGET = 0.85
PROOF_COLUMNS = (0, 1, 4, 5, 6, 7, 8, 9, 10)
NOT_MEASURED = f"{TIMED_HEADING}\n\nNot measured yet: `python -m tests.second_corpus --proof` needs a quiet machine."

Pair = tuple[Judged, Judged]
"""A program recorded by torch's profiler, and by `tidy_profile`."""


def counted_section(pairs: Sequence[Pair]) -> str:
    """The section on what is named, and on what is said besides."""
    losses = [(plain, tidy, loss) for plain, tidy in pairs for loss in plain.program.losses]
    known = [each for each in losses if each[2].rules]
    rows = [
        (f"losses named among the first {FIRST} findings", *(_part(_named(losses, at)) for at in (0, 1))),
        ("of those that a rule looks for", *(_part(_named(known, at)) for at in (0, 1))),
        (f"findings that are true (aim: ≥ {percent(PRECISION_TARGET)})", *(_part(_true(pairs, at)) for at in (0, 1))),
    ]
    also = [
        (plain.program.name, f"`{rule}`", reason, "yes" if _is_found(plain, rule) or _is_found(tidy, rule) else "no")
        for plain, tidy in pairs
        for rule, reason in plain.program.also.items()
    ]
    return f"""{COUNTED_HEADING}

The second corpus has {len(pairs)} programs modelled on public ones, in other styles than those above
(`tests/second_corpus/programs/`), with {len(losses)} known losses. Each loss is a switch whose other position does the
same work without it. Some have no rule. No threshold was tuned on them. After these programs showed gaps,
`moving-average-per-parameter`, `recurrent-cell-in-loop`, `python-loop-tensor-indexing` and `embedding-gradient-dense`
were extended, and `equal-modules-one-by-one`, `scalar-tensors-in-loop`, `tensor-shrunk-in-loop`,
`gradients-thrown-away` and `normalisation-written-out` were written. A loss is *named* if one of the first {FIRST}
findings is from a rule whose fix recovers it, in a function that loses it. Findings that name no loss were judged by
hand. This section counts all losses, even small ones; the next section has the measured ones.

{table(("", "torch.profiler", "tidy_profile"), rows)}
{table(("program", "loss", "torch.profiler", "tidy_profile", "why not"), map(_loss_row, losses))}
### Other true findings

{table(("program", "rule", "why", "found"), also) if also else "Nothing."}
### Wrong findings

{_lines(_unexplained(pairs))}"""


def timed_section(programs: Sequence[Measured], rounds: int, note: str = "") -> str:
    """The section on what each loss costs and what was promised, largest first."""
    losses = [(each, loss, each.proof(loss.name)) for each in programs for loss in each.program.losses]
    clear = [each for each in losses if each[0].is_clear(each[1].name)]
    worth = [each for each in clear if median(each[2].saved) >= WORTH]
    ordered = sorted(worth, key=lambda each: (-median(each[2].saved), each[2].rule))
    kept = [proof for measured, loss, proof in clear if measured.is_named(loss.name)]
    header = ("loss", "times faster", "predicted, ms", "without, ms", "error", "saved", "expected", "at most", "held")
    rows = [
        (*(proof_row(proof)[at] for at in PROOF_COLUMNS), percent(each.noise), _yes(each.is_named(loss.name)))
        for each, loss, proof in ordered
    ]
    named = sum(each.is_named(loss.name) for each, loss, _ in worth)
    under = f"{plural(rounds, 'round')}{note}"
    unclear = sorted(proof.rule for each, loss, proof in losses if not each.is_clear(loss.name))
    return f"""{TIMED_HEADING}

Each program is timed beside itself without one loss, and beside a copy of itself, all in fresh processes, in turns of a
fraction of a second whose order rotates. *Noise* is by which part of a step the copy differs at most in {under}.
Savings count that are larger than that in each round; those of {len(clear)} of {len(losses)} losses are. The table has
those of {percent(WORTH)} or more; its columns are those of the proof above. *Named* says whether most recordings name
it among the first {FIRST} findings.

Named: {_part((named, len(worth)))} (aim: ≥ {percent(RECALL_TARGET)}).
{errors_in_all(kept, REAL_ERROR_TARGET)}

{table((*header, "noise", "named"), rows)}
Not clear of the noise: {", ".join(f"`{rule}`" for rule in unclear) or "none"}."""


def _named(losses: Iterable[tuple[Judged, Judged, Loss]], at: int) -> tuple[int, int]:
    said = [pair[at].is_named(pair[2].name) for pair in losses]  # type: ignore[union-attr] # one of the first two
    return sum(said), len(said)


def _true(pairs: Sequence[Pair], at: int) -> tuple[int, int]:
    findings = sum(len(pair[at].findings) for pair in pairs)
    return findings - sum(len(pair[at].unexplained) for pair in pairs), findings


def _part(counted: tuple[int, int]) -> str:
    some, of_all = counted
    return f"{percent(some / of_all if of_all else None)} ({some} of {of_all})"


def _loss_row(given: tuple[Judged, Judged, Loss]) -> tuple[str, ...]:
    plain, tidy, loss = given
    missing = next((each for each in (tidy, plain) if not each.is_named(loss.name)), None)
    why = "" if missing is None else why_not(missing, loss)
    return plain.program.name, loss.what, _by(plain, loss), _by(tidy, loss), why


def _by(judgement: Judged, loss: Loss) -> str:
    rules = {judgement.findings[place].rule: place for place in reversed(judgement.named[loss.name]) if place < FIRST}
    return ", ".join(f"`{rule}` ({place + 1}.)" for rule, place in sorted(rules.items())) or "–"


def _is_found(judgement: Judged, rule: str) -> bool:
    return any(finding.rule == rule for finding in judgement.findings)


def _unexplained(pairs: Sequence[Pair]) -> Iterator[str]:
    for pair in pairs:
        told: set[str] = set()
        for finding in (finding for judgement in pair for finding in judgement.unexplained):
            if finding.id not in told:
                told.add(finding.id)
                yield f"- {pair[0].program.name}: `{finding.rule}`{_at(finding)}: {finding.message}"


def _at(finding: Finding) -> str:
    return f" in `{finding.places[0].function}`" if finding.places else ""


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines) or "None."


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"
