"""The section of `docs/lines.md` on compiled programs."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lines.compiled_truth import PROGRAMS, Kernel, kernels, moved, recorded, without_side_file

HEADING = "## Compiled programs"
ALONE, WITH_CACHE = "trace alone", "trace alone, Inductor's cache on the machine"
LATE = "side file, capture imported after the compilation"
MOVED = "trace alone, cache from before the source was moved"
NOTED = ("side file, cold cache", "side file, warm cache", "side file, warm cache, source moved")
VERDICTS = ("exact", "function", "wrong")
INTRODUCTION = """\
The table counts kernels that `torch.compile` generates or chooses for the programs of `tests/lines/programs/compiled/`:
perceptron, attention, convolution with batch normalisation, `autograd.Function`, in-place operators, two graph breaks,
dynamic and changing sizes, two equal functions, nested helpers, products in a loop, DDP. Lines carry marks that the
capture does not know: a constant that Inductor writes into each kernel that computes the line, or extents that only one
product has. A kernel is *exact* if TorchTidy shows exactly the lines of its marks, *function* if the place is the
compiled function, and *wrong* otherwise. Kernels without a mark do not count. Constants prove only the lines of
operators that have one. Lines from Inductor's cache are labelled as derived, and count as *exact* here if they are
correct. TorchTidy uses them only if the cache's graph belongs to the function in the trace and each line is unchanged;
after the code is moved, it uses none. A capture imported after the compilation stores the lines, so the cache is not
needed later. Measured with `python -m tests.lines`."""

ELSEWHERE = (
    ("trace and cache, Triton", "at least 90% exact", "not measured, as it needs a GPU; drawn graphs only"),
    (
        "breaks and recompilations, with a side file",
        "all with line and reason",
        "all, in `tests/lines/test_compiled.py`",
    ),
    ("breaks, trace alone, with stacks", "all with their line", "all drawn ones, in the tests of the rule"),
    ("capture, share of the compile time", "below 0.1%", "0.07% ([capture](capture.md#what-it-costs))"),
    (
        "capture, in a recorded step",
        "nothing",
        "nothing: wrapped functions run during compilation or Inductor's logging",
    ),
    ("capture, after the export", "below 0.3 s", "0.001 s; 0.14 s if imported after the compilation"),
    ("operators that `annotate` lists, in autograd functions and spans", "all", "all drawn ones, in its tests"),
)
"""What `python -m tests.lines` does not measure."""


def recordings(folder: Path) -> Mapping[str, Sequence[Kernel]]:
    """The kernels of four recordings of all programs, made in `folder`, with and without what lies beside them."""
    cache, programs = folder / "cache", moved(folder / "programs")
    cold = recorded(PROGRAMS, folder / "cold", cache)
    plain = without_side_file(cold, folder / "plain")
    warm, again = recorded(PROGRAMS, folder / "warm", cache), recorded(programs, folder / "moved", cache)
    traces = {
        **dict(zip(NOTED, ((cold, PROGRAMS), (warm, PROGRAMS), (again, programs)), strict=True)),
        LATE: (recorded(PROGRAMS, folder / "late", cache, is_late=True), PROGRAMS),
        WITH_CACHE: (plain, PROGRAMS),
        MOVED: (without_side_file(again, folder / "plain again"), programs),
        ALONE: (plain, PROGRAMS),
    }
    return {
        name: kernels(trace, of, cache, reads_cache=name in {WITH_CACHE, MOVED}) for name, (trace, of) in traces.items()
    }


def are_exact(found: Mapping[str, Sequence[Kernel]]) -> bool:
    """Whether the target is reached: no line is wrong, with a side file all are exact, without it as many as can be."""
    worked_out, none = {"exact", "function"}, {"function"}
    expected = {LATE: worked_out, WITH_CACHE: worked_out, MOVED: none, ALONE: none}
    verdicts = {name: {kernel.verdict for kernel in each} for name, each in found.items()}
    return all(each == expected.get(name, {"exact"}) for name, each in verdicts.items())


def size_of(folder: Path) -> tuple[int, int]:
    """Kernels that the side file of a recording names, and the gzipped bytes of what it says of compiled code."""
    (path,) = folder.glob("*.tidy.json.gz")
    compiled = json.loads(gzip.decompress(path.read_bytes()))["compiled"]
    number = sum(len(graph["launches"] or ()) for region in compiled["regions"] for graph in region["graphs"])
    return number, len(gzip.compress(json.dumps(compiled, separators=(",", ":")).encode("ascii"), mtime=0))


def section(found: Mapping[str, Sequence[Kernel]], size: tuple[int, int]) -> str:
    """The whole section."""
    rows = [
        f"| {name} | {'backward' if of else 'forward'} | {' | '.join(_figures(each, is_backward=of))} |"
        for name, each in found.items()
        for of in (False, True)
    ]
    headings = ["recording", "pass", "kernels", *VERDICTS, "exact, of their time"]
    table = "\n".join([f"| {' | '.join(headings)} |", f"| {' | '.join(['---'] * len(headings))} |", *rows])
    number, size_bytes = size
    beside = f"For {number} kernels the side file holds {size_bytes / 1000:.1f} kB, gzipped."
    return f"{HEADING}\n\n{INTRODUCTION}\n\n{table}\n\n{beside}\n\n{_musts(found, size)}"


def _musts(found: Mapping[str, Sequence[Kernel]], size: tuple[int, int]) -> str:
    """What was asked for, with what is measured here, and where the rest is shown."""
    noted = [kernel for name, each in found.items() if name in NOTED for kernel in each]
    wrong = sum(kernel.verdict == "wrong" for each in found.values() for kernel in each)
    passes = [[kernel for kernel in found[WITH_CACHE] if kernel.is_backward is of] for of in (False, True)]
    per_thousand_kb = size[1] / max(1, size[0])
    rows = [
        ("side file, both passes, cold, warm and moved", "at least 99.5% exact", _exact(noted)),
        ("wrong lines, in all recordings", "none", str(wrong or "none")),
        ("trace and cache, on a CPU, forward", "at least 80% exact", _exact(passes[0])),
        ("trace and cache, on a CPU, backward", "at least 55% exact", _exact(passes[1])),
        ("side file of 1,000 kernels, gzipped", "below 100 kB", f"{per_thousand_kb:.0f} kB"),
        *ELSEWHERE,
    ]
    lines = [f"| {' | '.join(row)} |" for row in (("property", "goal", "measured"), ("---",) * 3, *rows)]
    return "\n".join(lines)


def _exact(kernels: Sequence[Kernel]) -> str:
    return f"{sum(kernel.verdict == 'exact' for kernel in kernels) / max(1, len(kernels)):.1%} of {len(kernels)}"


def _figures(every: Sequence[Kernel], *, is_backward: bool) -> list[str]:
    found = [kernel for kernel in every if kernel.is_backward is is_backward]
    counts = Counter(kernel.verdict for kernel in found)
    exact_ns = sum(kernel.time_ns for kernel in found if kernel.verdict == "exact")
    share = exact_ns / max(1, sum(kernel.time_ns for kernel in found))
    return [str(len(found)), *(str(counts[verdict] or "") for verdict in VERDICTS), f"{share:.1%}"]
