"""The report as Markdown, for a comment on a pull request.

Strings from a trace are untrusted: none of them becomes markup, a link or a mention on the code host. GitHub looks for
mentions after the Markdown is rendered, so characters alone would not do: a zero-width space parts `@` from a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tb_tidy_plugin.report import ranks_text
from tb_tidy_plugin.report.model import CodeChange, Finding, Note, Place, Problem, ProfileReport, Report, RunReport
from tb_tidy_plugin.report.rank_model import Ranks
from tb_tidy_plugin.report.text import PRECISION, STEP_BASIS
from tb_tidy_plugin.units import Nanoseconds, Share, between
from tb_tidy_plugin.visible import visible

LONGEST = 65_536  # of a comment on GitHub
LAST_LINE_ROOM = 200
LONGEST_STRING = 1000
MOST_PLACES = 10

MARKUP = re.compile(r"[\\`*_\[\]<>|~&$#:@]|(?<=www)\.")
SPAN = re.compile(r"`([^`]*)`")
FENCE = re.compile(r"`+")

# What is left out first where there is too much: details of the least finding.
HEAD, ROW, DETAIL, REST = range(4)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text that is in the comment as a whole or not at all; the higher `rank` goes first."""

    rank: int
    text: str


def to_markdown(report: Report, longest: int = LONGEST) -> str:
    """The report, in no more than `longest` bytes; its last line says what was left out."""
    pieces = list(_pieces(report))
    kept = _fitting(pieces, longest - LAST_LINE_ROOM)
    text = "".join(piece.text for at, piece in enumerate(pieces) if at in kept).lstrip("\n")
    left_out = [piece for at, piece in enumerate(pieces) if at not in kept]
    return text + (_left_out(left_out) if left_out else "")


def _fitting(pieces: list[_Piece], room: int) -> set[int]:
    """Numbers of the pieces that fit, the important ones first."""
    kept = set()
    for at in sorted(range(len(pieces)), key=lambda at: pieces[at].rank):
        size = len(pieces[at].text.encode("utf-8", "replace"))
        if size <= room:
            room -= size
            kept.add(at)
    return kept


def _left_out(pieces: list[_Piece]) -> str:
    names = {HEAD: "headings", ROW: "lines of tables", DETAIL: "findings’ details", REST: "lists of unchecked rules"}
    counts = [(sum(piece.rank == rank for piece in pieces), name) for rank, name in names.items()]
    listed = ", ".join(f"{name}: {count}" for count, name in counts if count)
    return f"\nLeft out, as a comment has its limit: {listed}. `tb-tidy check` shows all.\n"


def _pieces(report: Report) -> Iterator[_Piece]:
    for run in report.runs:
        found = len(run.findings) + sum(len(profile.findings) for profile in run.profiles)
        yield _Piece(HEAD, f"\n## TorchTidy: {found} finding{'s' * (found != 1)} in {code(run.run)}\n")
        if run.outcomes or run.ranks:
            none = "" if run.findings else " No findings."
            yield _Piece(HEAD, f"\nAll ranks together.{none}\n")
            if run.ranks is not None:
                yield from _ranks(run.ranks)
            yield from _findings(run)
        for profile in run.profiles:
            yield _Piece(HEAD, f"\n{_profile_line(profile)}\n")
            yield from _findings(profile)
    if report.problems:
        yield _Piece(HEAD, "\n## TorchTidy: could not be read\n\n")
        yield from (_Piece(ROW, _problem(problem)) for problem in report.problems)


def _ranks(ranks: Ranks) -> Iterator[_Piece]:
    headings = ranks_text.headings(ranks)
    yield _Piece(HEAD, f"\n{_text(ranks.present)}\n")
    yield _Piece(ROW, f"\n| {' | '.join(headings)} |\n|{'--:|' * len(headings)}\n")
    yield from (_Piece(ROW, f"| {' | '.join(row)} |\n") for row in ranks_text.worst_rows(ranks))
    yield from (_Piece(ROW, f"\n{_text(sentence)}\n") for sentence in ranks_text.sentences(ranks))
    lines = [f"- {_text(line)}" for line in ranks_text.shared_lines(ranks)]
    if lines:
        yield _Piece(REST, _folded("Findings of the ranks", "\n".join(lines)))


def _findings(part: ProfileReport | RunReport) -> Iterator[_Piece]:
    if part.findings:
        yield _Piece(HEAD, "\n| severity | rule | place | costs per step | could save |\n|---|---|---|--:|--:|\n")
        yield from (_Piece(ROW, _row(finding)) for finding in part.findings)
        yield from (_Piece(DETAIL, _details(finding)) for finding in part.findings)
    unchecked = [outcome for outcome in part.outcomes if outcome.status in {"not_checked", "failed"}]
    if unchecked:
        lines = [f"- {code(each.rule)}: {'' if each.status == 'not_checked' else 'failed: '}{_text(each.reason or '')}"
                 for each in unchecked]  # fmt: skip
        yield _Piece(REST, _folded(f"Not checked: {len(unchecked)}", "\n".join(lines)))


def _profile_line(profile: ProfileReport) -> str:
    rank = "" if profile.rank is None else f"rank {profile.rank}"
    named = " · ".join(part for part in (code(profile.worker), code(profile.span), rank) if part)
    steps = profile.steps
    time = STEP_BASIS[steps.basis]
    if steps.median_ns is not None:
        time = f"{steps.count} step{'s' * (steps.count != 1)}, median **{Nanoseconds(steps.median_ns)}** ({time})"
    notes = "".join(f" {_text(note)}" for note in profile.quality.notes)
    none = "" if profile.findings else " No findings."
    return f"{named}{': ' if named else ''}{time}.{none}{notes}"


def _row(finding: Finding) -> str:
    costs, saves = "", ""
    if finding.share is not None:
        costs = f"{Nanoseconds(finding.cost_ns)} ({Share(finding.share)})"
        if saving := finding.saving:
            saves = f"≈ {Nanoseconds(saving.expected_ns)} ({between(saving.low_ns, saving.high_ns)})"
    places = [_place(place) for place in finding.places[:1]]
    more = f" and {len(finding.places) - 1} more" if len(finding.places) > 1 else ""
    return f"| {finding.severity} | {code(finding.rule)} | {''.join(places)}{more} | {costs} | {saves} |\n"


def _place(place: Place) -> str:
    return f"{code(f'{place.file}:{place.line}')} in {code(place.function)}"


def _details(finding: Finding) -> str:
    places = [f"- {_place(place)}{PRECISION[place.precision]}" for place in finding.places[:MOST_PLACES]]
    if len(finding.places) > MOST_PLACES:
        places.append(f"- and {len(finding.places) - MOST_PLACES} more")
    notes = [_text(detail.text) for detail in finding.details if isinstance(detail, Note)]
    basis = f", saving: {', '.join(finding.saving.basis)}" if finding.saving else ""
    figures = f"{finding.matches}×, confidence {finding.confidence}{basis}."
    changes = [part for detail in finding.details if isinstance(detail, CodeChange) for part in _change(detail)]
    parts = ["\n".join(places), *notes, f"**Fix:** {_text(finding.fix)}.", *changes, figures]
    return _folded(f"{_html(f'`{finding.rule}`')}: {_html(finding.message)}", "\n\n".join(filter(None, parts)))


def _change(change: CodeChange) -> Iterator[str]:
    yield f"Before:\n\n{_fenced(change.before)}"
    yield f"After:\n\n{_fenced(change.after)}"
    if change.caveat:
        yield f"Note: {_text(change.caveat.rstrip('.'))}."


def _problem(problem: Problem) -> str:
    return f"- {code(problem.path)}: {_text(problem.error)} {_text(problem.advice)}\n"


def _folded(summary: str, body: str) -> str:
    return f"\n<details><summary>{summary}</summary>\n\n{body}\n\n</details>\n"


def _fenced(code: str) -> str:
    """Code between fences that are longer than any within."""
    longest = max((len(run) for run in FENCE.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    shown = "\n".join(map(visible, code.expandtabs(4).split("\n")))
    return f"{fence}python\n{shown}\n{fence}"


def _text(text: str) -> str:
    """A sentence as Markdown: what stands between backticks is code, all else is plain."""
    return _spanned(text, code)


def _html(text: str) -> str:
    """The same where Markdown is not read, as in a summary."""
    return _spanned(text, _code_element)


def _spanned(text: str, as_code: Callable[[str], str]) -> str:
    parts = SPAN.split(_line(text))
    return "".join(as_code(part) if at % 2 else plain(part) for at, part in enumerate(parts))


def code(text: str) -> str:
    """A string as code on one line, also in a table."""
    line = _line(text).strip()
    if not line:
        return ""
    return _code_element(line) if "`" in line or "|" in line else f"`{line}`"


def _code_element(text: str) -> str:
    return f"<code>{plain(text)}</code>"


def plain(text: str) -> str:
    """A string as itself: no character of it is markup."""
    return MARKUP.sub(lambda found: f"&#{ord(found[0])};{'&#8203;' if found[0] in '@#' else ''}", _line(text))


def _line(text: str) -> str:
    """A string in one line of bearable length, without what is not to be seen."""
    shown = visible(text, " ")
    return shown if len(shown) <= LONGEST_STRING else f"{shown[: LONGEST_STRING - 1]}…"
