"""The page `docs/accuracy.md`: how often the rules are right, and whether their fixes help."""

from __future__ import annotations

import ast
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from tb_tidy_plugin.report.model import Finding
from tb_tidy_plugin.report.value import Severity
from tests.accuracy.corpus import CLEAN, Program
from tests.accuracy.turns import StepSeconds
from tests.accuracy.verdicts import Count, Verdict, count, total

PROOF_HEADING = "## Do the fixes help?"
RECALL_TARGET, PRECISION_TARGET = 1.0, 0.95
ERROR_TARGET, WITHIN = 0.08, 0.3
REAL_HEADINGS = {
    "library": "## Do the fixes help, with the C library's own allocation threshold?",
    "cores": "## Do the fixes help, on all cores?",
}
REAL_INTRODUCTIONS = {
    "library": "The same, on one core, with the C library's own setting: freed memory of large tensors is used again.",
    "cores": "The same with all cores, shared among ranks, and with the C library's own setting.",
}
REAL_ERROR_TARGET = 0.1
REAL_HEADER = ("rule", "times faster", "predicted, ms", "fixed, ms", "error", "saved", "expected", "at most", "held")
REAL_COLUMNS = (0, 1, 4, 5, 6, 7, 8, 9, 10)
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")

INTRODUCTION = """# Accuracy

This page measures the rules on a corpus of programs with known faults (`tests/accuracy/`). Each rule has a *slow*
program with its pattern, a *fixed* one that does the same work without it, and *near* ones that look similar but are
correct. *Clean* programs are complete, well-written pieces of training and inference. Torch's profiler records each
program, and all rules check each recording, as they check a user's. Patterns that need a GPU are drawn by hand
instead: they test the rule, but not the recording of a real device. The programs are small, and the authors of the
rules wrote them. So the counts cannot rule out unknown errors.

- **found** of **present**: slow programs in which the rule found its pattern. *Recall* is found / present.
- **false alarms**: programs in which the rule found an absent pattern. *Precision* is true / (true + false). True
  findings are in slow programs, and in other programs that are declared to contain the pattern, with the reason.
- **unsteady**: a wrong result is recorded again a few times. If it is then correct, it counts neither as a miss, nor
  as a false alarm, nor as found. Its cost is near the rule's threshold.
- A program counts once per rule, with any number of findings.
"""


@dataclass(frozen=True)
class Promise:
    """What the report on the slow program's recording says of all findings of a rule together, per step.

    `step_ns` is the step that this is saved of: the true one where it was captured and is shorter, else the recorded.
    """

    step_ns: int
    expected_ns: int
    most_ns: int

    @property
    def left(self) -> float:
        """Which part of the step is expected to remain."""
        return max(1 - self.expected, 0.0)

    @property
    def expected(self) -> float:
        """Which part of the step is expected to be saved."""
        return self.expected_ns / self.step_ns

    @property
    def most(self) -> float:
        """Which part of the step is saved at most."""
        return self.most_ns / self.step_ns


@dataclass(frozen=True)
class Proof:
    """The steps of the slow and the fixed program without the profiler, a pair per round, and what was promised.

    Each round's slow program was recorded in the process that timed it, so a promise belongs to its round.
    `benchmarked` are the promises of the same recordings with the rule's statements measured.
    """

    rule: str
    rounds: Sequence[tuple[StepSeconds, StepSeconds]]
    promises: Sequence[Promise | None]
    benchmarked: Sequence[Promise | None] = ()

    @property
    def with_benchmark(self) -> Proof:
        """The same with what the reports say once the rule's statements were measured; nothing where none can be."""
        return replace(self, promises=self.benchmarked or [None] * len(self.rounds))

    @property
    def best(self) -> Proof:
        """With the benchmark where there is one."""
        return self.with_benchmark if self.with_benchmark.promise else self

    @property
    def promise(self) -> Promise | None:
        """The promise in the middle by what is left, None where no round found anything."""
        known = sorted((promise for promise in self.promises if promise), key=lambda promise: promise.left)
        return known[len(known) // 2] if known else None

    @property
    def errors(self) -> list[float]:
        """By which part of itself the fixed program's step was predicted too long, by round."""
        return [
            promise.left * slow.wall / fixed.wall - 1
            for promise, (slow, fixed) in zip(self.promises, self.rounds, strict=True)
            if promise
        ]

    @property
    def error(self) -> float | None:
        """That in the middle, None where no round found anything."""
        return median(self.errors) if self.errors else None

    @property
    def ratios(self) -> list[float]:
        """How many times faster the fixed program's step is, by wall time."""
        return [slow.wall / fixed.wall for slow, fixed in self.rounds]

    @property
    def cpu_ratio(self) -> float:
        """The same in the middle by CPU time of the processes, which a busy machine disturbs less."""
        return median(slow.cpu / fixed.cpu for slow, fixed in self.rounds)

    @property
    def saved(self) -> list[float]:
        """By which part of itself the step gets shorter, by wall time."""
        return [1 - fixed.wall / slow.wall for slow, fixed in self.rounds]

    @property
    def verdict(self) -> str:
        """Whether the bounds held: no loss, and no more than promised; `unsteady` where rounds disagree."""
        if self.promise is None:
            return "–"
        if 0 <= median(self.saved) <= self.promise.most:
            return "yes"
        may_have = min(self.saved) <= self.promise.most and max(self.saved) >= 0
        return "unsteady" if may_have else "no"


def page(verdicts: Sequence[Verdict], rules: Sequence[str], torch_version: str, proof: str) -> str:
    """The whole page; `proof` is its last section, which is measured apart."""
    sections = [
        INTRODUCTION,
        _summary(verdicts, rules, torch_version),
        _by_rule(verdicts, rules),
        _section("Misses", _misses(verdicts), "None."),
        _section("False alarms", _findings(verdicts, lambda verdict: verdict.false_alarms), "None."),
        _section("Unsteady", _findings(verdicts, lambda verdict: verdict.unsteady), "None."),
        _section("Declared findings that no longer occur", _stale(verdicts), "None."),
        _section("Rules that failed", _failures(verdicts), "None."),
        _clean(verdicts),
        _also(verdicts),
        proof,
    ]
    return "\n".join(section.strip() + "\n" for section in sections if section)


def proof_in(text: str) -> str:
    """The section on the fixes in a page that is there, which the counts leave alone; empty where there is none."""
    _, heading, rest = text.partition(PROOF_HEADING)
    return heading + rest


def proof_section(proofs: Iterable[Proof], rounds: int) -> str:
    """The section on the fixes, largest effect first."""
    ordered = sorted(proofs, key=lambda each: (-median(each.ratios), each.rule))
    header = (
        "rule", "times faster", "range", "CPU time", "predicted, ms", "fixed, ms", "error", "saved", "expected",
        "at most", "held", "benchmarked", "held",
    )  # fmt: skip
    return f"""{PROOF_HEADING}

How many times faster a step of the fixed program is than one of the slow one, without the profiler, on one core: the
median of {rounds} rounds, with the smallest and largest. In each round both run in fresh processes, in turns of a
fraction of a second: one is held while the other one runs. *CPU time* is the same ratio of the processes' CPU time,
without what loaders' workers take. Just before, another process has recorded a few steps of the slow program with
`tidy_profile`, as a user's would.
*Predicted* is the part of the step that remains by the report on that recording, times the slow program's own step
without the profiler; *error* is by how much that is longer than the *fixed* step: in each round, then the median.
*Saved* is by which part of itself the step gets shorter, *expected* and *at most* are what the report says of that,
*held* whether what is saved lies between nothing and that bound. *Benchmarked* is the error where `tb-tidy bench` has
measured the rule's own statements, whose factor then stands for the one that the rule expects. `make proof` measures
it again.

{errors_in_all(ordered)}
With the benchmarks: {errors_in_all([each.best for each in ordered])}

{table(header, map(proof_row, ordered))}"""


def real_section(name: str, proofs: Sequence[Proof], rounds: int, note: str) -> str:
    """The section on one of the conditions of `record.REAL`; `note` says what was special about the machine."""
    ordered = sorted(proofs, key=lambda each: each.rule)
    rows = [tuple(proof_row(each)[at] for at in REAL_COLUMNS) for each in ordered]
    return f"""{REAL_HEADINGS[name]}

{REAL_INTRODUCTIONS[name]}
Rounds: {rounds}{note}.

{errors_in_all(ordered, REAL_ERROR_TARGET)}

{table(REAL_HEADER, rows)}"""


def with_section(text: str, section: str) -> str:
    """The page with a section in the place of the one that begins with the same heading, or at its end."""
    heading = section.partition("\n")[0] + "\n"
    before, found, rest = text.partition(heading)
    _, following, after = rest.partition("\n## ")
    kept = f"\n{following.lstrip()}{after}" if found and following else ""
    return f"{before.rstrip()}\n\n{section.strip()}\n{kept}"


def errors_in_all(proofs: Sequence[Proof], target: float = ERROR_TARGET) -> str:
    """Median and worst error, and how many lie within `WITHIN`."""
    sizes = sorted((abs(each.error), each.rule) for each in proofs if each.error is not None)
    if not sizes:
        return "Nothing was predicted."
    near = sum(size <= WITHIN for size, _ in sizes)
    return (
        f"Of {len(sizes)} predictions the median error is {percent(median(size for size, _ in sizes))} (aim: ≤ "
        f"{percent(target)}), {near} are within {percent(WITHIN)} (aim: nine in ten), and the worst is "
        f"{percent(sizes[-1][0])} (`{sizes[-1][1]}`)."
    )


def proof_row(proof: Proof) -> tuple[str, ...]:
    """One line of that section's table."""
    ratios, promise, error = proof.ratios, proof.promise, proof.error
    fixed_ms = median(fixed.wall for _, fixed in proof.rounds) * 1e3
    predicted, expected, most = "–", "–", "–"
    benchmarked = proof.with_benchmark
    if promise is not None and error is not None:
        predicted, expected, most = f"{fixed_ms * (1 + error):.2f}", percent(promise.expected), percent(promise.most)
    return (
        f"`{proof.rule}`",
        f"{median(ratios):.2f}",
        f"{min(ratios):.2f} to {max(ratios):.2f}",
        f"{proof.cpu_ratio:.2f}",
        predicted,
        f"{fixed_ms:.2f}",
        _signed(error),
        percent(median(proof.saved)),
        expected,
        most,
        proof.verdict,
        _signed(benchmarked.error),
        benchmarked.verdict,
    )


def _signed(error: float | None) -> str:
    return "–" if error is None else f"{100 * error:+.0f} %"


def _summary(verdicts: Sequence[Verdict], rules: Sequence[str], torch_version: str) -> str:
    all_of_them = total(count(verdicts, rule) for rule in rules)
    clean = _in_clean(verdicts)
    loud = sum(finding.severity == "high" for _, finding in clean)
    recall = f"{percent(all_of_them.recall)} ({all_of_them.found} of {all_of_them.present})"
    said = all_of_them.true + all_of_them.false_alarms
    precision = f"{percent(all_of_them.precision)} ({all_of_them.true} of {said})"
    drawn = sum(verdict.program.is_drawn for verdict in verdicts)
    rows = [
        ("recall", percent(RECALL_TARGET), recall),
        ("precision", f"≥ {percent(PRECISION_TARGET)}", precision),
        ("findings of high severity in clean programs", "0", str(loud)),
        ("findings of any severity in clean programs", "", str(len(clean))),
        ("unsteady", "", str(all_of_them.unsteady)),
    ]
    machine = f"{platform.system()} on {platform.machine()}, Python {platform.python_version()}"
    return f"""## Summary

{table(("", "target", "measured"), rows)}
{len(verdicts)} programs: {len(verdicts) - drawn} recorded, {drawn} drawn. torch {torch_version}, one thread,
{machine}, no GPU. `make accuracy` records everything again and writes this page; `make test` and
`make proof` fail on a miss or a false alarm.
"""


def _by_rule(verdicts: Sequence[Verdict], rules: Sequence[str]) -> str:
    rows = [_rule_row(rule, count(verdicts, rule), verdicts) for rule in rules]
    header = ("rule", "programs", "found", "severity", "false alarms", "unsteady", "recall", "precision", "checked in")
    return f"""## By rule

*Programs* is slow + fixed + near. *Severity* is that of the largest finding in the slow program. *Checked in* counts
the programs whose recording has the data that the rule needs.

{table(header, rows)}"""


def _rule_row(rule: str, counted: Count, verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    own = [verdict for verdict in verdicts if verdict.program.rule == rule]
    kinds = [sum(verdict.program.kind == kind for verdict in own) for kind in ("slow", "fixed", "near")]
    drawn = ", drawn" if own and all(verdict.program.is_drawn for verdict in own) else ""
    slow = [verdict for verdict in own if verdict.program.kind == "slow"]
    found = {finding.severity for verdict in slow for finding in verdict.answer.findings.get(rule, ())}
    return (
        f"`{rule}`",
        " + ".join(map(str, kinds)) + drawn if own else "none",
        f"{counted.found} of {counted.present}",
        min(found, key=SEVERITIES.index, default="–"),
        str(counted.false_alarms),
        str(counted.unsteady),
        percent(counted.recall),
        percent(counted.precision),
        str(counted.checked),
    )


def _misses(verdicts: Sequence[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        for rule in sorted(verdict.missed):
            reason = verdict.answer.not_checked.get(rule)
            yield f"- {verdict.program}" + (f": not checked. {reason}" if reason else "")


def _findings(verdicts: Sequence[Verdict], rules: Callable[[Verdict], frozenset[str]]) -> Iterator[str]:
    for verdict in verdicts:
        for rule in sorted(rules(verdict)):
            for finding in verdict.answer.findings.get(rule, ()):
                yield f"- {verdict.program}: `{rule}`, {_said(finding)}: {finding.message}"


def _stale(verdicts: Sequence[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        for rule in sorted(verdict.stale):
            yield f"- {verdict.program}: `{rule}`"


def _failures(verdicts: Sequence[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        for rule, error in sorted(verdict.answer.failed.items()):
            yield f"- {verdict.program}: `{rule}`: {error}"


def _clean(verdicts: Sequence[Verdict]) -> str:
    rows = []
    for verdict in verdicts:
        if verdict.program.kind == CLEAN:
            found = [f"`{finding.rule}` ({_said(finding)})" for _, finding in _in_clean([verdict])]
            rows.append((verdict.program.path.stem, _title(verdict.program), ", ".join(found) or "nothing"))
    return f"## Clean programs\n\n{table(('program', 'content', 'found'), rows)}"


def _also(verdicts: Sequence[Verdict]) -> str:
    rows = [
        (str(verdict.program), f"`{rule}`", reason, "yes" if rule in verdict.answer.findings else "no")
        for verdict in verdicts
        for rule, reason in sorted(verdict.program.also.items())
    ]
    return f"""## Other true findings

The authors of the programs declare these findings as true.

{table(("program", "rule", "why", "found"), rows)}"""


def _in_clean(verdicts: Sequence[Verdict]) -> list[tuple[Program, Finding]]:
    return [
        (verdict.program, finding)
        for verdict in verdicts
        if verdict.program.kind == CLEAN
        for _, findings in sorted(verdict.answer.findings.items())
        for finding in findings
    ]


def _said(finding: Finding) -> str:
    share = "no step" if finding.share is None else f"{finding.share:.0%} of the step".replace("%", " %")
    return f"{finding.severity}, {share}"


def _title(program: Program) -> str:
    text = program.path.read_text(encoding="utf-8")
    return (
        (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0].rstrip(".") if not program.is_drawn else "drawn"
    )


def _section(heading: str, lines: Iterable[str], nothing: str) -> str:
    return f"## {heading}\n\n" + ("\n".join(lines) or nothing)


def percent(share: float | None) -> str:
    """The share as it is shown, a dash where it is not known."""
    return "–" if share is None else f"{100 * share:.1f} %".replace(".0 %", " %")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
