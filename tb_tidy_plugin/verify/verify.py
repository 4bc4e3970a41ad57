"""Verification that a change made a program faster and kept its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from tb_tidy_plugin.benchmarks.blocks import ratio_of, typical_times
from tb_tidy_plugin.report.model import SCHEMA_VERSION, ProfileReport, Report
from tb_tidy_plugin.verify.model import Equality, Kept, ProgramSide, Verification
from tb_tidy_plugin.verify.programs import Results, Running, Turn, running


class Plan(msgspec.Struct, frozen=True):
    """Amount of work.

    Attributes:
        rounds: pairs of fresh processes. turns: of each process in each round. turn_s: seconds of one.
        steps: number of steps with compared results. tolerance: relative, for results that are equal up to rounding.
        limit_s: most seconds until a program is at its first step, or done with a turn.
    """

    rounds: int = 3
    turns: int = 8
    turn_s: float = 0.5
    steps: int = 5
    tolerance: float = 1e-3
    limit_s: float = 600.0


class _Seen(msgspec.Struct):
    """Results of one program, in the order of the turns."""

    turns: list[Turn] = msgspec.field(default_factory=list)
    results: list[Results] = msgspec.field(default_factory=list)
    initial: list[str] = msgspec.field(default_factory=list)

    @property
    def seconds(self) -> list[float]:
        """The mean step of each turn."""
        return [turn.seconds / turn.steps for turn in self.turns]

    def side(self, folder: str, step_s: float) -> ProgramSide:
        return ProgramSide(
            folder=folder,
            step_ns=round(step_s * 1e9),
            steps=sum(turn.steps for turn in self.turns),
            peak_bytes=max(turn.peak_bytes for turn in self.turns),
        )


def verified(
    names: tuple[str, str],
    folders: tuple[Path, Path],
    command: Sequence[str],
    plan: Plan,
    promises: Sequence[Kept] = (),
    progress: Callable[[str, float], object] = lambda *_: None,
) -> Verification:
    """Runs both programs in turns.

    Args:
        names: names of the folders, before and after.
        folders: working folders of `command`.
        command: the program with its arguments.
        plan: the amount of work.
        promises: of findings whose fix is in the program afterwards.
        progress: called with the current work and its completed part, 0 to 1.

    Raises:
        VerifyError: a program cannot be run, breaks, or does not mark its steps.
    """
    before, after = _Seen(), _Seen()
    for at in range(plan.rounds):
        _round(at, folders, command, plan, (before, after), progress)
    ratio = ratio_of(before.seconds, after.seconds)
    before_s, after_s = typical_times(before.seconds, after.seconds, ratio)
    results, reason = _compared(before, after, plan.tolerance)
    kept = 1.0
    for each in promises:
        kept *= 1 - each.expected
    return Verification(
        schema=SCHEMA_VERSION,
        before=before.side(names[0], before_s),
        after=after.side(names[1], after_s),
        ratio=ratio.middle,
        low=ratio.low,
        high=ratio.high,
        verdict="faster" if ratio.high < 1 else "slower" if ratio.low > 1 else "no clear difference",
        results=results,
        reason=reason,
        losses=len(before.results[0].losses),
        promises=list(promises),
        promised=1 - kept if promises else None,
        saved=1 - ratio.middle,
    )


def _round(
    at: int,
    folders: tuple[Path, Path],
    command: Sequence[str],
    plan: Plan,
    seen: tuple[_Seen, _Seen],
    progress: Callable[[str, float], object],
) -> None:
    """Fresh processes of both; the first one alternates between rounds."""

    def tell(what: str, part: float) -> None:
        progress(f"round {at + 1} of {plan.rounds}: {what}", (at + part) / plan.rounds)

    with ExitStack() as stack:
        tell("starting", 0.0)
        both: list[tuple[Running, _Seen]] = []
        for name, folder, of in zip(("before", "after"), folders, seen, strict=True):
            program = stack.enter_context(running(name, folder, command, plan.limit_s))
            program.ready()
            both.append((program, of))
        for program, of in both:
            tell("comparing results", 0.1)
            of.initial.append(program.initial)
            of.results.append(program.results(plan.steps))
        for program, _ in both:
            tell("warming up", 0.2)
            program.turn(plan.turn_s)
        for turn in range(plan.turns):
            tell("timing", 0.3 + 0.7 * turn / plan.turns)
            for program, of in both if (turn + at) % 2 == 0 else reversed(both):
                of.turns.append(program.turn(plan.turn_s))


def _compared(before: _Seen, after: _Seen, tolerance: float) -> tuple[Equality, str]:
    """Equality of both results, and the reason if they differ."""
    first, other = before.results[0], after.results[0]
    if obstacle := _obstacle(before, after):
        return "not comparable", obstacle
    if first == other:
        return "equal", ""
    if len(first.losses) != len(other.losses) or len(first.sums) != len(other.sums):
        return "different", "The programs have different numbers of losses or parameters."
    worst = max(map(_distance, [*first.losses, *first.sums], [*other.losses, *other.sums]))
    differ = f"Losses or sums of parameters differ by up to {worst:.2g} of their value."
    return ("up to rounding" if worst <= tolerance else "different"), differ


def _obstacle(before: _Seen, after: _Seen) -> str:
    """The reason why results cannot be compared; empty if they can."""
    if not before.results[0].losses and not before.results[0].sums:
        return "The program has no parameters and calls no `backward`."
    if len({*before.initial, *after.initial}) > 1:
        return "The parameters before the first step differ. Set a seed before the model is created."
    if any(each != before.results[0] for each in before.results):
        return "The program before the change computes different results in each run."
    return ""


def _distance(old: float, new: float) -> float:
    return 0.0 if old == new else abs(old - new) / max(abs(old), abs(new))


def promises_in(report: Report, after: Path) -> list[Kept]:
    """Promises of a recording's findings whose fix is in the files under `after`."""
    profiles = [profile for run in report.runs for profile in run.profiles]
    found: dict[str, Kept] = {}
    for profile in profiles:
        for each in _promised(profile, after):
            found.setdefault(each.finding, each)
    return list(found.values())


def _promised(profile: ProfileReport, after: Path) -> list[Kept]:
    step_ns = profile.step_ns or 0
    return [
        Kept(
            finding=finding.id,
            rule=finding.rule,
            message=finding.message,
            expected=min(finding.saving.expected_ns / step_ns, 1.0),
            low=min(finding.saving.low_ns / step_ns, 1.0),
            high=min(finding.saving.high_ns / step_ns, 1.0),
        )
        for finding in profile.findings
        if step_ns and finding.saving is not None and finding.code_fixes is not None
        if any(_is_in(change.file, change.diff, after) for change in finding.code_fixes.changes)
    ]


def _is_in(name: str, diff: str, folder: Path) -> bool:
    """True if a file under `folder` has the lines that a diff adds, and not all that it removes."""
    from tb_tidy_plugin.sources.files import OwnFile, lines_of, own_file

    try:
        file = own_file(name if not Path(name).is_absolute() else Path(name).name, [folder])
    except OSError:
        return False
    if not isinstance(file, OwnFile):
        return False
    lines = set(lines_of(file.text))
    changed = [line for line in diff.splitlines()[2:] if line[:1] in {"+", "-"}]
    added = {line[1:] for line in changed if line[0] == "+"}
    removed = {line[1:] for line in changed if line[0] == "-"} - added
    return added <= lines and not (removed and removed <= lines)
