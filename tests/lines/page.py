"""The page `docs/lines.md`: how often the line is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.accuracy.corpus import Program
from tests.lines.corpus import METHODS, TORCHTIDY, Result
from tests.lines.judged import VERDICTS, Judged, Verdict, counted

EXACT_TARGET, BARE_TARGET, WRONG_LIMIT = 0.97, 0.95, 0.003
SHARED_HEADING = "## Recordings made elsewhere"
LISTED_IN_FULL: tuple[Verdict, ...] = ("wrong", "declined", "tie", "range")

COMPILED = (
    "Without a side file and Inductor's cache, the place of compiled code is the compiled function, in both passes, "
    "never the file that `torch.compile` generated."
)

INTRODUCTION = """# Lines

A recording shows where a function is defined, but not which of its lines was running. TorchTidy reads the function's
source and finds the path through it that explains the recorded events. This page shows how often that line is correct.

**Method.** Each program of `tests/lines/programs/`, and the clean and slow ones of `tests/accuracy/`, runs one step
twice: once to warm up, and once under torch's profiler with shapes and stacks. In the second run a trace function puts
a marker event with the line in front of every bytecode instruction. Python suspends profiling while a trace function
runs, so it adds only the markers; `tests/lines/test_lines.py` checks that without them the tree of events equals that
of a plain recording. TorchTidy then derives the lines without the markers. The page counts every operator of the
program that does not run inside another operator. *Bare* ones are operators and subscripts (`a + b`, `x[0]`), which
leave no Python call in the recording.

- **exact**: the line of the instruction, as Python reports it.
- **range**: another line of the same instruction, if it spans several lines.
- **tie**: several lines fit equally well; TorchTidy names all of them, including the true one.
- **declined**: TorchTidy shows the line of the function's definition, and labels it as such.
- **wrong**: another line, or a tie without the true one.

The authors of the alignment also wrote the programs and fixed the errors that these revealed. So the counts cannot rule
out unknown errors.
"""


@dataclass(frozen=True)
class Score:
    """What one method makes of some operators."""

    counts: Counter[Verdict]

    @property
    def total(self) -> int:
        return self.counts.total()

    def share(self, verdict: Verdict) -> float:
        """Part of all; 0 of none."""
        return self.counts[verdict] / self.total if self.total else 0.0


def score(results: Iterable[Result], method: str = TORCHTIDY, *, only_bare: bool = False) -> Score:
    """The counts over all programs."""
    return Score(
        counted([each for result in results for each in result.judged[method] if each.is_bare or not only_bare])
    )


def mean_exact(results: Sequence[Result]) -> float:
    """Exact ones, where each program counts alike."""
    shares = [score([result]).share("exact") for result in results]
    return sum(shares) / len(shares) if shares else 0.0


def is_met(results: Sequence[Result]) -> bool:
    """Whether the targets are reached."""
    everything, bare = score(results), score(results, only_bare=True)
    return (
        everything.share("exact") >= EXACT_TARGET
        and bare.share("exact") >= BARE_TARGET
        and everything.share("wrong") <= WRONG_LIMIT
    )


def page(results: Sequence[Result], left_out: Sequence[Program], torch_version: str, compiled: str, shared: str) -> str:
    """The whole page; `compiled` is a section, and so is `shared`, on recordings that not everybody has."""
    names = ", ".join(f"`{program.name}`" for program in left_out)
    sections = [
        INTRODUCTION,
        f"## Summary\n\nRecorded with torch {torch_version}.\n\n{_targets(results)}\n\n{_methods(results)}",
        f"Not counted, because their code runs compiled or in several processes: {names}. {COMPILED}",
        compiled,
        "## Programs\n\n" + _programs(results),
        "## Inexact lines\n\n" + _listed(results),
        shared,
    ]
    return "\n".join(section.strip() + "\n" for section in sections if section)


def shared_section(results: Sequence[Result]) -> str:
    """The section on recordings that came with their true lines."""
    parts = [
        SHARED_HEADING,
        "Programs by others, recorded once with the same kind of markers. Their traces are not in this repository.",
        _targets(results), _methods(results), _programs(results), "Inexact lines:", _listed(results),
    ]  # fmt: skip
    return "\n\n".join(parts)


def shared_in(text: str) -> str:
    """The section on shared recordings of a page that is there; empty where there is none."""
    _, heading, rest = text.partition(SHARED_HEADING)
    return heading + rest


def _targets(results: Sequence[Result]) -> str:
    everything, bare = score(results), score(results, only_bare=True)
    rows = [
        ("exact", f"{everything.share('exact'):.2%}", f"at least {EXACT_TARGET:.0%}"),
        ("exact, mean over the programs", f"{mean_exact(results):.2%}", ""),
        ("exact, bare ones", f"{bare.share('exact'):.2%}", f"at least {BARE_TARGET:.0%}"),
        ("wrong", f"{everything.share('wrong'):.2%}", f"at most {WRONG_LIMIT:.1%}"),
    ]
    return _table(["", "operators", "target"], rows)


def _methods(results: Sequence[Result]) -> str:
    """The same counts for what other tools can show: the recording's own line, or a name that occurs once."""
    rows = []
    for method in METHODS:
        everything, bare = score(results, method), score(results, method, only_bare=True)
        rows.append((method, *(f"{everything.share(each):.2%}" for each in VERDICTS), f"{bare.share('exact'):.2%}"))
    return _table(["method", *VERDICTS, "bare exact"], rows)


def _programs(results: Sequence[Result]) -> str:
    rows = []
    for result in results:
        everything, bare = score([result]), score([result], only_bare=True)
        counts = (str(everything.counts[each] or "") for each in VERDICTS)
        rows.append((f"`{result.name}`", str(everything.total), *counts, str(bare.total), str(bare.counts["exact"])))
    return _table(["program", "operators", *VERDICTS, "bare", "bare exact"], rows)


def _listed(results: Sequence[Result]) -> str:
    rows = [row for result in results for row in _rows_of(result)]
    return _table(["program", "operator", "verdict", "times", "true line", "shown"], rows) if rows else "Nothing."


def _rows_of(result: Result) -> Iterator[tuple[str, ...]]:
    missed = Counter(
        (LISTED_IN_FULL.index(each.verdict), each.line, each.operator, _shown(each))
        for each in result.judged[TORCHTIDY]
        if each.verdict != "exact"
    )
    for (verdict, line, operator, shown), times in sorted(missed.items()):
        code = result.source[line - 1].strip().replace("|", "\\|")
        yield (
            f"`{result.name}`", f"`{operator}`", LISTED_IN_FULL[verdict], str(times), f"{line}: `{code}`", shown,
        )  # fmt: skip


def _shown(judged: Judged) -> str:
    if judged.place is None:
        return "nothing"
    return " or ".join(map(str, judged.place.ties)) or str(judged.place.line)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
