"""Findings with the code changes that fix them; without LibCST, with the name of the extra that installs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from tb_tidy_plugin.analysis.answers import FixesAnswer
from tb_tidy_plugin.analysis.job import Job, UsualRules
from tb_tidy_plugin.analysis.remembered import OWN_RULES
from tb_tidy_plugin.fixes.installed import has_libcst
from tb_tidy_plugin.report.code_model import NEEDS_EXTRA, NOT_MADE, CodeFix, CodeFixes
from tb_tidy_plugin.report.fix_model import Unfixed
from tb_tidy_plugin.report.model import Finding, Place, ProfileReport
from tb_tidy_plugin.sources.files import RecordedFile
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.cache import code_state, key_of
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.words.recipe import Recipe
from tb_tidy_plugin.words.visible import log_called

if TYPE_CHECKING:
    from tb_tidy_plugin.analysis.fixing import Fixer

log = log_called("tb_tidy_plugin")

CODE_CHANGES = "changes"  # part of the cache entries' names
MOST_PLACES = 10
"""Most places of one finding that get a change, most expensive first."""

MOST_SYNTAX_NODES = 8_000
"""Limit for the syntax trees of all files of a run: LibCST takes up to 2 s for 8,000 nodes in scripts of 800 lines."""

NO_PLACE = "The recording does not say where in your code this is."
_Key: TypeAlias = tuple[object, ...]

FURTHER = f"A report contains the changes for at most {MOST_PLACES} places. Run `tb-tidy fix` for the others."


class _Place(NamedTuple):
    """A place of a finding whose rule can change code, with the arguments of `Fixer.proposal`."""

    finding: Finding
    place: Place
    facts: Recipe
    known: str | RecordedFile


class _Outcome(msgspec.Struct, frozen=True):
    """The change for a place, or the reason why there is none."""

    change: CodeFix | None = None
    reason: str = ""


def with_code_fixes(answers: Sequence[FixesAnswer], job: Job) -> list[ProfileReport]:
    """The reports on the traces of one run; their findings have `code_fixes`.

    Args:
        answers: one for each trace.
        job: settings of the analysis: its rules make the changes, in files below its source roots.
    """
    if not any(answer.facts for answer in answers):
        return [answer.report for answer in answers]
    if not has_libcst():
        return with_hints(answers)
    answers = _agreed(answers)
    places: dict[_Key, _Place] = {}
    for answer in answers:
        for finding in answer.report.findings:
            for place in finding.places[:MOST_PLACES] if finding.id in answer.facts else ():
                asked = _Place(finding, place, answer.facts[finding.id], answer.known(place.file))
                places.setdefault(_key(asked), asked)  # the first of several ranks' equal places stands for all
    made = dict(zip(places, _outcomes([*places.values()], job), strict=True))
    return [_replaced(answer, [_fixed(answer, each, made) for each in answer.report.findings]) for answer in answers]


def _agreed(answers: Sequence[FixesAnswer]) -> list[FixesAnswer]:
    """The answers with what all recordings of a run together say about each file: their ranks ran the same one."""
    found: dict[str, list[RecordedFile]] = {}
    for answer in answers:
        for file, known in answer.recorded.items():
            found.setdefault(file, []).append(known)
    agreed = {
        file: RecordedFile(
            tuple(sorted({each for known in all_known for each in known.functions})),
            tuple(sorted({each for known in all_known for each in known.on})),
            min((known.until_s for known in all_known if known.until_s is not None), default=None),
        )
        for file, all_known in found.items()
    }
    return [
        msgspec.structs.replace(answer, recorded={file: agreed[file] for file in answer.recorded}) for answer in answers
    ]


def with_hints(answers: Sequence[FixesAnswer]) -> list[ProfileReport]:
    """The reports; findings whose lines are known name the command or the extra that makes the change.

    Importing and running LibCST takes longer than everything else for a recording of 10 MB.
    """
    hint = CodeFixes([], NOT_MADE if has_libcst() else NEEDS_EXTRA)

    def hinted(answer: FixesAnswer, finding: Finding) -> Finding:
        is_at_hand = finding.id in answer.facts and any(place.text for place in finding.places)
        return msgspec.structs.replace(finding, code_fixes=hint) if is_at_hand else finding

    return [_replaced(answer, [hinted(answer, each) for each in answer.report.findings]) for answer in answers]


def _key(asked: _Place) -> _Key:
    place = asked.place
    lines = (place.line, place.end_line, place.function, place.precision, place.text)
    return (asked.finding.id, place.file, *lines, asked.known)


def _outcomes(places: Sequence[_Place], job: Job) -> list[_Outcome]:
    """The change for each place, or the reason why there is none; from the cache if its inputs are unchanged."""
    from tb_tidy_plugin.analysis.fixing import Fixer

    fixer = Fixer(job, MOST_SYNTAX_NODES)
    key = _cache_key(places, fixer)
    content = None if key is None else job.cache.load(CODE_CHANGES, key)
    if content is not None:
        try:
            return decode(content, list[_Outcome])
        except NOT_JSON as problem:
            log.info("%s %s is ignored: %s", CODE_CHANGES, key, problem)
    found = [fixer.proposal(*each) for each in places]
    outcomes = [
        _Outcome(reason=each.reason) if isinstance(each, Unfixed) else _Outcome(change=each.fix) for each in found
    ]
    if key is not None:
        with suppress(UnicodeEncodeError):  # a path that is not text
            job.cache.keep(CODE_CHANGES, key, [msgspec.json.encode(outcomes)])
    return outcomes


def _cache_key(places: Sequence[_Place], fixer: Fixer) -> str | None:
    """Cache key of all that the changes depend on, including texts of files; None if a rule is not this package's."""
    job = fixer.job
    modules = [] if isinstance(job.rules, UsualRules) else [type(rule).__module__ for rule in job.rules]
    if job.cache.folder is None or not all(module.startswith(OWN_RULES) for module in modules):
        return None
    texts = {each.place.file: fixer.state(each.place.file) for each in places}
    try:
        return key_of(
            code_state(), MOST_SYNTAX_NODES, texts, [(_key(each), each.finding.rule, each.facts) for each in places]
        )
    except (OSError, UnicodeEncodeError):  # this package's code cannot be read, or a name is not text
        return None


def _replaced(answer: FixesAnswer, findings: list[Finding]) -> ProfileReport:
    return msgspec.structs.replace(answer.report, findings=findings)


def _fixed(answer: FixesAnswer, finding: Finding, made: Mapping[_Key, _Outcome]) -> Finding:
    """The finding with the changes for its places."""
    facts = answer.facts.get(finding.id)
    if facts is None:
        return finding
    changes: dict[str, CodeFix] = {}
    reasons = [] if finding.places else [NO_PLACE]
    for place in finding.places[:MOST_PLACES]:
        found = made[_key(_Place(finding, place, facts, answer.known(place.file)))]
        if found.change is None:
            reasons.append(found.reason)
        else:
            saving_ns = finding.saving.expected_ns if finding.saving else None
            changes.setdefault(found.change.diff, msgspec.structs.replace(found.change, saving_ns=saving_ns))
    if len(finding.places) > MOST_PLACES:
        reasons.append(FURTHER)
    fixes = CodeFixes(list(changes.values()), reasons[0] if reasons else None)
    return msgspec.structs.replace(finding, code_fixes=fixes)
