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
MOVED = "trace alone, cache from before the source was moved"
VERDICTS = ("exact", "function", "wrong")
INTRODUCTION = """\
Kernels that `torch.compile` generates or chooses for the programs of `tests/lines/programs/compiled/`: perceptron,
attention, convolution with batch normalisation, `autograd.Function`, in-place operators, two graph breaks, dynamic and
changing sizes, two equal functions, nested helpers, products in a loop, DDP. Lines carry marks that the capture knows
nothing of: a constant that Inductor writes into each kernel that computes the line, or extents that only one product
has. A kernel is *exact* where the marked lines shown are those of its marks, all and no other; *function* where the
place is the function that was compiled; else *wrong*. Kernels without a mark are not judged. Constants prove no more
than the lines of operators that have one. Lines from Inductor's cache are shown as worked out, and counted as *exact*
here where they are true. They count only where the cache's graph is of the function that the trace names, and each line
says what it said then: after a move none does. Measured with `python -m tests.lines`."""


def recordings(folder: Path) -> Mapping[str, Sequence[Kernel]]:
    """The kernels of three recordings of all programs, made in `folder`, with and without what lies beside them."""
    cache, programs = folder / "cache", moved(folder / "programs")
    cold = recorded(PROGRAMS, folder / "cold", cache)
    plain = without_side_file(cold, folder / "plain")
    again = recorded(programs, folder / "moved", cache)
    traces = {
        "side file, cold cache": (cold, PROGRAMS),
        "side file, warm cache": (recorded(PROGRAMS, folder / "warm", cache), PROGRAMS),
        "side file, warm cache, source moved": (again, programs),
        WITH_CACHE: (plain, PROGRAMS),
        MOVED: (without_side_file(again, folder / "plain again"), programs),
        ALONE: (plain, PROGRAMS),
    }
    return {
        name: kernels(trace, of, cache, reads_cache=name in {WITH_CACHE, MOVED}) for name, (trace, of) in traces.items()
    }


def are_exact(found: Mapping[str, Sequence[Kernel]]) -> bool:
    """Whether the target is reached: no line is wrong, with a side file all are exact, without it as many as can be."""
    expected = {WITH_CACHE: {"exact", "function"}, MOVED: {"function"}, ALONE: {"function"}}
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
    beside = f"Of {number} kernels the side file holds {size_bytes / 1000:.1f} kB, gzipped."
    return f"{HEADING}\n\n{INTRODUCTION}\n\n{table}\n\n{beside}"


def _figures(every: Sequence[Kernel], *, is_backward: bool) -> list[str]:
    found = [kernel for kernel in every if kernel.is_backward is is_backward]
    counts = Counter(kernel.verdict for kernel in found)
    exact_ns = sum(kernel.time_ns for kernel in found if kernel.verdict == "exact")
    share = exact_ns / max(1, sum(kernel.time_ns for kernel in found))
    return [str(len(found)), *(str(counts[verdict] or "") for verdict in VERDICTS), f"{share:.1%}"]
