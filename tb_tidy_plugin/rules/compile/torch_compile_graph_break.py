"""Graph breaks in compiled code.

## What it finds
A function under `torch.compile` in which Dynamo meets code that it cannot compile in each step: a number read back for
a decision, a `print`, a call into a library. The rest of the function runs in a frame `torch_dynamo_resume_in_…_at_…`,
whose line is the place of the break, and in a separate compiled region inside the broken one.

## Why it is slow
Each piece looks up and checks its guards, runs the prologues of its graph and adds a node to the backward pass.
Operators are fused only within a piece, and on a GPU reading a number back waits for the device.

## Example
```python
@torch.compile
def loss(x, limit):
    if x.abs().max() > limit:
        x = x.clamp(-limit, limit)
    return x.square().mean()
```

Use instead:
```python
@torch.compile
def loss(x, limit):
    x = torch.where(x.abs().max() > limit, x.clamp(-limit, limit), x)
    return x.square().mean()
```

## How the saving is estimated
The estimate counts the time of a piece beside its operators: guard look-ups, prologues, the code around its graph, and
the same around its node of the backward pass. It also counts operators between pieces, which would run inside a graph.
All of this is expected to go, at least half, since the remaining region may have to check the same guards. With torch
2.13 on a CPU, a piece cost 110 to 370 µs with AOTAutograd for forward and backward pass, 25 to 130 µs without
gradients, and 10 to 50 µs with the backend `eager`. The gain from fusion across pieces is not counted, nor is the wait
for a number.

## When it stays quiet
Intended breaks, by `torch.compiler.disable` or `torch._dynamo.graph_break`. Fewer than one break per step, or a single
one in the profile. Functions that Dynamo gave up as a whole, as it does for a break in a loop: they leave no trace.
Without stacks there are no lines, and intended breaks cannot be recognised: then the rule reports only calls that read
a number back, with medium confidence.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.compiled.compilations import BrokenCall, CodePiece, break_reasons, broken_calls, time_apart
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.transfers import READS

_LINE = re.compile(r"^.*torch_dynamo_resume_in_(?P<function>.{1,500})_at_(?P<line>\d{1,9})$")
DISABLED = re.compile(r"^torch/_dynamo/(?:eval_frame\.py\(\d+\): _fn|decorators\.py\(\d+\): graph_break)$")
_COMPILED = ("TorchDynamo Cache Lookup", "Torch-Compiled Region")
_FEWEST = 2  # in the profile


class Evidence(msgspec.Struct, frozen=True):
    """A break, and its cost in one call.

    Attributes:
        function, line: place of the break; an empty name if it was not recorded.
        more: number of further pieces.
        time: of the pieces, outside the work in them.
        reads_back: True if a value is read between them.
        reason: Dynamo's, empty if it was not captured.
    """

    function: str
    line: int
    more: int
    time: tt.Nanoseconds
    reads_back: bool
    reason: str = ""

    @property
    def because(self) -> str:
        """Dynamo's reason, as a sentence of its own."""
        return f". Dynamo's reason: {self.reason}" if self.reason else ""

    @property
    def where(self) -> str:
        """The function in which it breaks."""
        return f" in `{self.function}` at line {self.line}" if self.function else ""

    @property
    def pieces(self) -> str:
        return "one more piece" if self.more == 1 else f"{self.more} more pieces"

    @property
    def reads(self) -> str:
        return "; the break reads a value back" if self.reads_back else ""


class TorchCompileGraphBreak(tt.Rule[Evidence]):
    """Graph breaks in compiled code."""

    code = "TT1001"
    action = "Remove the graph breaks from the compiled code"
    message = "`torch.compile` breaks the graph{where}: {pieces} per call, with {time} of overhead"
    why = (
        "Compiled regions lie inside the called region, and each looks up its guards and runs its own "
        "prologue{reads}{because}. Reported for {min_breaks} breaks per step or more"
    )
    fix = (
        "Keep the decision on the device (`torch.where`, `torch.cond`), move `print` and `.item()` out of the compiled "
        "code, and look for others with `TORCH_LOGS=graph_breaks`"
    )
    left = (0.0, 0.0, 0.5)

    min_breaks = tt.Threshold(1, "per step; rarer breaks are outside of the loop")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        by_cause: dict[str, list[tt.Match[Evidence]]] = {}
        reasons = break_reasons(profile)
        for call in broken_calls(profile):
            for cause, pieces in _by_cause(profile, call).items():
                match = self._match(profile, cause, pieces, reasons)
                if match.confidence == "high" or match.evidence.reads_back:
                    by_cause.setdefault(match.evidence.where, []).append(match)
        for matches in by_cause.values():
            rate = profile.per_step_count(rows_of(match.anchor for match in matches))
            if len(matches) >= _FEWEST and rate >= self.min_breaks:
                yield from matches

    def _match(
        self, profile: tt.Profile, cause: CodePiece, pieces: Sequence[CodePiece], reasons: Mapping[tuple[str, int], str]
    ) -> tt.Match[Evidence]:
        events = tuple(row for piece in pieces for row in (*piece.overhead, *piece.eager))
        lost = profile.covered(rows_of(events)).plus(time_apart(profile, pieces))
        line = _LINE.match(profile.name(cause.resumed)) if cause.resumed >= 0 else None
        frame = tt.parse_frame(profile.name(cause.resumed)) if line else None
        reads_back = any(profile.name(row) in READS for piece in pieces for row in piece.gap)
        return tt.Match(
            anchor=cause.resumed if line else cause.region,
            events=events,
            evidence=Evidence(
                function=line["function"] if line else "",
                line=int(line["line"]) if line else 0,
                more=len(pieces),
                time=tt.Nanoseconds(lost.total_ns),
                reads_back=reads_back,
                reason=reasons.get((frame.file, frame.line), "") if frame else "",
            ),
            confidence="high" if line else "medium",
            lost=lost.spans,
        )


def _by_cause(profile: tt.Profile, call: BrokenCall) -> Mapping[CodePiece, list[CodePiece]]:
    """The pieces of a call by the break that caused them, without requested breaks.

    Each piece belongs to the first break inside it, else to the break before it, else to the next one.
    """
    causes = call.causes
    regions = [cause.region for cause in causes]
    found: dict[CodePiece, list[CodePiece]] = {}
    for piece in call.pieces:
        at = bisect_left(regions, piece.region)
        is_inside = at < len(causes) and regions[at] in profile.subtree(piece.region)
        found.setdefault(causes[at if is_inside or at == 0 else at - 1], []).append(piece)
    return {cause: pieces for cause, pieces in found.items() if not _is_asked_for(profile, cause)}


def _is_asked_for(profile: tt.Profile, cause: CodePiece) -> bool:
    """True if a function excluded from compilation ran in the gap, or `graph_break` itself."""
    for row in cause.gap:
        if profile.category(row) is tt.Category.PYTHON and DISABLED.match(profile.name(row)):
            names = [profile.name(below) for below in profile.subtree(row)]
            if names[0].endswith("graph_break"):
                return True
            frames = [frame for name in names if (frame := tt.parse_frame(name)) is not None]
            if any(frame.own_code for frame in frames) and not any(name.startswith(_COMPILED) for name in names):
                return True
    return False
