"""The page `docs/accuracy-gpu.md` of a run, and its sample runs."""

from __future__ import annotations

import gzip
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from sample_runs.record import anonymised
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.ledger.model import Ledger
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.rules import catalogue
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.words.visible import visible
from tests.accuracy.page import Proof, errors_in_all, percent, proof_row, table
from tests.accuracy.proof import promised
from tests.accuracy.turns import StepSeconds
from tests.accuracy.verdicts import Answer, merged
from tests.gpu_proof.corpus import REHEARSED, SIZES, Pair, pairs
from tests.gpu_proof.pieces import GPU_SAMPLES
from tests.gpu_proof.state import Result, State
from tests.support.recordings import ROOT

PAGE = ROOT / "docs" / "accuracy-gpu.md"
ERROR_TARGET = 0.05
MOST_SAMPLE_BYTES = 256 << 20
TRACE = re.compile(r"workstation\.\d{1,20}\.pt\.trace\.json\.gz")
NOTHING = "–"

INTRODUCTION = """# Accuracy on a GPU

This page measures TorchTidy's predictions, rules and ledger on a GPU. Each pattern has a *slow* program and a *fixed*
one with the same results (`tests/gpu_proof/pairs/`), at three sizes: at the small one the host is the bottleneck, at
the large one the device. [gpu-proof.md](gpu-proof.md) explains how to measure. `make gpu-proof-report` writes this
page.
"""

UNMEASURED = "**Nothing has been measured yet**: these programs have no recording on a GPU.\n"


@dataclass(frozen=True)
class Seen:
    """What a recording says: of the rules, and of its step."""

    answer: Answer
    ledger: Ledger | None


@dataclass(frozen=True)
class Measured:
    """A pair at one size: its result, and what is seen in the recordings of the slow and the fixed program."""

    pair: Pair
    size: str
    result: Result
    slow: Seen
    fixed: Seen

    @property
    def name(self) -> str:
        """Pair and size."""
        return f"`{self.pair.name}`, {self.size}"

    @property
    def proof(self) -> Proof:
        """Steps by turn, against what the report on the slow program promises by the pair's rule."""
        turns = [(StepSeconds(*slow), StepSeconds(*fixed)) for slow, fixed in self._turns()]
        promise = promised(self.slow.answer, self.pair.rule) if self.pair.rule else None
        return Proof(f"{self.pair.name}, {self.size}", turns, [promise] * len(turns))

    def _turns(self) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
        for slow, fixed in zip(self.result.slow, self.result.fixed, strict=True):
            yield (slow, slow), (fixed, fixed)

    @property
    def device_share(self) -> float | None:
        """The part of the slow program's step in which its device is busy."""
        steps = self.slow.ledger.steps if self.slow.ledger else ()
        length = sum(step.end_ns - step.start_ns for step in steps)
        return sum(step.device_ns for step in steps) / length if length else None

    @property
    def shrunk(self) -> str | None:
        """The ledger's cause that the fix takes most off, per step; None where it takes off nothing."""
        if self.slow.ledger is None or self.fixed.ledger is None:
            return None
        less = Counter({entry.cause.word: 0 for entry in self.slow.ledger.entries})
        for entry in self.slow.ledger.entries:
            less[entry.cause.word] += entry.ns_per_step
        for entry in self.fixed.ledger.entries:
            less[entry.cause.word] -= entry.ns_per_step
        cause, most = max(less.items(), key=lambda each: each[1], default=("", 0))
        return cause if most > 0 else None


def page(state: State | None) -> str:
    """The whole page of a run; without one it says that nothing has been measured."""
    if state is None or state.machine is None:
        return f"{INTRODUCTION}\n{UNMEASURED}\n{_programs()}"
    found, failed = _measured(state)
    sections = [INTRODUCTION, _where(state), _predictions(found), _rules(found), _causes(found), _benchmarks(state)]
    return "\n".join([*sections, _rest(failed), _programs()])


def take_samples(state: State, into: Path) -> Iterator[Path]:
    """Puts the sample runs of a run below `into`: the scripts of this checkout, and the traces of the run.

    A trace that names the machine, an absolute path or anything but a sample's script is left where it is.

    Raises:
        ValueError: a trace names an absolute path, or is larger than a sample's.
    """
    for sample in GPU_SAMPLES:
        for trace in sorted(state.piece(f"sample/{sample.name}").glob("*.pt.trace.json.gz")):
            if TRACE.fullmatch(trace.name):
                with gzip.open(trace) as file:
                    text = file.read(MOST_SAMPLE_BYTES + 1)
                if len(text) > MOST_SAMPLE_BYTES:
                    raise ValueError(f"{trace.name} is larger than a sample's trace")
                checked = anonymised(text.decode("utf-8"), trace.name)
                folder = into / sample.name
                if folder.resolve() != sample.resolve():
                    shutil.copytree(sample, folder, dirs_exist_ok=True)
                for old in folder.glob("*.pt.trace.json.gz"):
                    old.unlink()
                (folder / trace.name).write_bytes(gzip.compress(checked.encode(), compresslevel=9, mtime=0))
                yield folder / trace.name


def seen(folder: Path) -> Seen:
    """What is seen in the recording below a folder, nothing where it cannot be read."""
    if not folder.is_dir() or not find_traces(folder):
        return Seen(Answer(), None)  # the archive had no room for it
    report = analyze_path(folder, Job())
    profiles: list[ProfileReport] = [profile for run in report.runs for profile in run.profiles]
    return Seen(merged(profiles), profiles[0].ledger if profiles else None)


def _measured(state: State) -> tuple[list[Measured], list[tuple[str, str]]]:
    """The pairs that have figures; names of the other ones with the reason."""
    found, failed = [], []
    for pair in pairs():
        for size in (REHEARSED, *SIZES):
            name = f"pair/{pair.name}/{size}"
            result = state.result(name)
            if result is None:
                if size != REHEARSED:
                    failed.append((f"`{pair.name}`, {size}", "was not run"))
            elif result.error or not result.slow or len(result.slow) != len(result.fixed):
                failed.append((f"`{pair.name}`, {size}", _plain(result.error) or "has no times"))
            elif not result.is_equal:
                failed.append(
                    (f"`{pair.name}`, {size}", f"results differ by {result.difference}, so its times do not count")
                )
            else:
                folder = state.piece(name)
                found.append(Measured(pair, size, result, seen(folder / "slow"), seen(folder / "fixed")))
    return found, failed


def _where(state: State) -> str:
    machine = state.machine
    assert machine is not None
    results = [state.result(f"pair/{pair.name}/{size}") for pair in pairs() for size in (REHEARSED, *SIZES)]
    clocks = [_plain(line) for result in results if result for line in result.clocks if line]
    middle = sorted(clocks)[len(clocks) // 2] if clocks else "unknown"
    return (
        f"{_plain(machine.name)}, torch {_plain(machine.torch)}, Python {_plain(machine.python)}, "
        f"{machine.cores} cores.\n"
        f"Clocks, state, temperature and power, the middle of {len(clocks)} readings: {middle}.\n"
    )


def _predictions(found: Sequence[Measured]) -> str:
    header = (
        "pair, size", "device busy", "times faster", "range", "predicted, ms", "fixed, ms", "error", "saved",
        "expected", "at most", "held",
    )  # fmt: skip
    rows = []
    for each in found:
        _, faster, span, _, *rest = proof_row(each.proof)
        own = NOTHING if each.pair.rule else "no rule"
        rows.append(
            (each.name, percent(each.device_share), faster, span, rest[0] if each.proof.promise else own, *rest[1:7])
        )
    promises = [each.proof for each in found if each.proof.promise]
    held = Counter(proof.verdict for proof in promises)
    by_size = [_error_at(size, found) for size in (REHEARSED, *SIZES)]
    summary = (
        f"By size: {', '.join(filter(None, by_size)) or NOTHING}. "
        f"Bounds held in {held['yes']} of {len(promises)}, {held['unsteady']} unsteady."
    )
    return f"""## Do the fixes help?

Both programs run in turns, each in its own process, without the profiler. Then each is recorded. *Predicted* is the
share of the step that remains according to the report on the slow recording, times the slow step without the profiler.

{errors_in_all(promises, ERROR_TARGET)}
{summary}

{table(header, rows)}"""


def _error_at(size: str, found: Sequence[Measured]) -> str:
    """The median error of the pairs of one size, empty where nothing was predicted."""
    errors = [each.proof.error for each in found if each.size == size]
    sizes = [abs(error) for error in errors if error is not None]
    return f"{size} {percent(median(sizes))} of {len(sizes)}" if sizes else ""


def _rules(found: Sequence[Measured]) -> str:
    """For each rule with a pair: where it was found, and where it must not be."""
    rows = []
    for rule in (each.name() for each in catalogue()):
        own = [each for each in found if each.pair.rule == rule]
        if own:
            hit = sum(rule in each.slow.answer.findings for each in own)
            alarms = sum(rule in each.fixed.answer.findings for each in own)
            others = sum(rule in each.slow.answer.findings for each in found if each.pair.rule != rule)
            recall, precision = hit / len(own), hit / (hit + alarms) if hit + alarms else None
            rows.append(
                (f"`{rule}`", f"{hit} of {len(own)}", str(alarms), percent(recall), percent(precision), str(others))
            )
    missed = [
        f"- {each.name}: `{each.pair.rule}` {_missed(each)}"
        for each in found
        if each.pair.rule and each.pair.rule not in each.slow.answer.findings
    ]
    fixed = [
        f"- {each.name}, fixed: `{finding.rule}`, {_plain(finding.message)}"
        for each in found
        for group in each.fixed.answer.findings.values()
        for finding in group
    ]
    broken = [
        f"- {each.name}: `{rule}`: {_plain(error)}"
        for each in found
        for kind in (each.slow, each.fixed)
        for rule, error in sorted(kind.answer.failed.items())
    ]
    header = ("rule", "found in slow", "found in fixed", "recall", "precision", "found in other slow programs")
    return f"""## Rules

Each rule is judged on its own pairs. *Recall* is the share of their slow programs in which the rule found its pattern.
*Precision* is the share of its findings that are in slow programs. A pattern may cost too little to report at one size.

{table(header, rows)}
### Not found

{chr(10).join(missed) or "None."}

### Found in fixed programs

Review each one: it is true, or a false alarm.

{chr(10).join(fixed) or "None."}

### Rules that failed

{chr(10).join(broken) or "None."}
"""


def _missed(each: Measured) -> str:
    reason = each.slow.answer.not_checked.get(each.pair.rule)
    return f"was not checked: {_plain(reason)}" if reason else "found nothing"


def _causes(found: Sequence[Measured]) -> str:
    rows, right = [], 0
    known = [
        each
        for each in found
        if each.slow.ledger is not None and not (each.pair.cpu and each.slow.ledger.recording == "no-device")
    ]
    for each in known:
        assert each.slow.ledger is not None
        largest = each.slow.ledger.entries[0]
        unnamed = each.slow.ledger.unnamed_ns / max(
            each.slow.ledger.window.end_ns - each.slow.ledger.window.start_ns, 1
        )
        right += each.shrunk == each.pair.cause
        rows.append(
            (
                each.name,
                each.pair.cause,
                each.shrunk or NOTHING,
                f"{largest.id}, {percent(largest.share)}",
                percent(unnamed),
            )
        )
    header = ("pair, size", "cause of the pattern", "cause that shrank most", "largest entry of slow", "unnamed")
    return f"""## The ledger's causes

The pattern's cause is known. The ledgers of both recordings show which cause shrank most after the fix: the known one
in {right} of {len(known)}.

{table(header, rows)}"""


def _benchmarks(state: State) -> str:
    rows = []
    folder = state.piece("benchmark")
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        result = state.result(f"benchmark/{path.name}")
        if result is None:
            continue
        name, measured = f"`{_plain(path.name)}`", result.benchmark
        if measured is None:
            rows.append((name, NOTHING, NOTHING, _plain(result.error)))
        else:
            ratio = f"{measured.ratio:.2f} ({measured.low:.2f} to {measured.high:.2f})"
            rows.append(
                (
                    name,
                    _plain(measured.on.kind),
                    ratio,
                    "yes" if measured.trusted else _plain(" ".join(measured.doubts)),
                )
            )
    return f"""## Micro-benchmarks

The statements of each rule for the CPU corpus' shapes: the time without the pattern divided by the time with it, and
the 95 % interval.

{table(("rule", "device", "ratio", "trusted"), rows)}"""


def _rest(failed: Iterable[tuple[str, str]]) -> str:
    return "## Without figures\n\n" + ("\n".join(f"- {name}: {reason}" for name, reason in failed) or "None.") + "\n"


def _programs() -> str:
    rows = [
        (f"`{pair.name}`", pair.title, f"`{pair.rule}`" if pair.rule else NOTHING, pair.cause, pair.cpu or "yes")
        for pair in pairs()
    ]
    return f"""## Programs

*On a CPU* says whether the two programs differ in a rehearsal on a CPU. Rules over several GPUs have no pair here.

{table(("pair", "the slow program", "rule", "cause", "on a CPU"), rows)}"""


def _plain(text: str) -> str:
    """One line of untrusted text that is neither markup nor a cell's end."""
    line = visible(" ".join(text.split()))[:300]
    return re.sub(r"([|`<>\[\]*_\\])", r"\\\1", line)
