"""RMSNorm, rotary embedding or gated activation written out.

## What it finds
Pieces of decoder models that your code or a library runs operator by operator: RMSNorm (`pow`, `mean`, `add`, `rsqrt`,
`mul`, with its casts), rotary embedding (`mul`, `neg`, `cat`, `mul`, `add`) and gated activation (`silu` or `gelu`,
then `mul`, as in SwiGLU). The rule recognises them by their operators and shapes.

## Why it is slow
Each operator reads its tensors from memory and writes a new one, often in float32. One kernel reads a row once, keeps
it in registers and writes the result. It moves a ninth of the bytes for RMSNorm with casts, a fifth for the rotary
embedding, and three fifths for the gated activation. Every layer has two or three of these pieces.

## Example
```python
variance = x.float().pow(2).mean(-1, keepdim=True)
y = weight * (x * torch.rsqrt(variance + eps)).to(x.dtype)
```

Use instead:
```python
y = F.rms_norm(x, weight.shape, weight, eps)
```

## How the saving is estimated
The time is scaled by the bytes that one kernel must move divided by those that the operators move, plus a quarter; so
are gradients. At best the quarter is not needed. If launching takes longer than the work, one launch remains. At worst
nothing is gained.

## When it stays quiet
Less than 1 % of the step for one kind of piece in one function. Recordings without a device, since PyTorch has fused
kernels only for devices. Compiled code. Other forms: handwritten LayerNorm, norms with `x.norm()`, rotary embeddings
with complex numbers or for a part of each head.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.host.critical import slower_side
from tb_tidy_plugin.profile.work.pointwise import DecoderPiece, decoder_pieces
from tb_tidy_plugin.profile.work.training import gradients_of, their_backward

BEYOND_BYTES = 1.25  # times as long as its bytes alone allow for one kernel; it also reduces, or computes sines
COMPILE = "`torch.compile` the model, or use the Liger kernels (`apply_liger_kernel_to_…`)"
_FIXES = {
    "RMSNorm": f"Call `F.rms_norm`, which has a kernel of its own in newer versions of PyTorch, or {COMPILE}",
    "Rotary embedding": COMPILE,
    "Gated activation": COMPILE,
}


class Evidence(msgspec.Struct, frozen=True):
    """A piece of a decoder.

    Attributes:
        piece: its kind, a key of `_FIXES`. operators: those it is written out as. shape: of their tensors.
        gradients: number of operators of the backward pass that belong to it.
        time: of all of them.
        bytes_ratio: the bytes that they move, by those of one kernel.
        expected, best: parts of the time that one kernel leaves, most likely and at least.
    """

    piece: str
    operators: tuple[str, ...]
    shape: tt.Sizes
    gradients: int
    time: tt.Nanoseconds
    bytes_ratio: float
    expected: tt.Share
    best: tt.Share

    @property
    def count(self) -> int:
        return len(self.operators)

    @property
    def backward(self) -> str:
        """The number of operators of the backward pass that belong to it, if any."""
        return their_backward(self.gradients)

    @property
    def names(self) -> str:
        """The operators as users write them."""
        return ", ".join(f"`{name.rpartition('::')[2]}`" for name in self.operators)

    @property
    def ratio(self) -> str:
        """The bytes that they move, by those of one kernel."""
        return f"{self.bytes_ratio:.2g}"

    @property
    def fix(self) -> str:
        return _FIXES[self.piece]


class DecoderPiecesWrittenOut(tt.Rule[Evidence]):
    """RMSNorm, rotary embedding or gated activation written out."""

    code = "TT704"
    needs = frozenset({"shapes", "device"})
    reads_operators = True
    action = "Fuse operators of the decoder into one kernel"
    message = "{piece} is written out as {count} operators on {shape}, which take {time} a call: {names}"
    why = (
        "Together they move {ratio} times the bytes of one kernel, which should take {expected} of the "
        "time{backward}. Reported for {min_share} of a step or more"
    )
    fix = "{fix}"
    caveat = "One kernel rounds less often, so results differ in their last bits."

    min_share = tt.Threshold(0.01, "less is not worth compiling a model or replacing its functions")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        for piece in decoder_pieces(profile):
            yield self._match(profile, piece)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, match.evidence.expected, match.evidence.best, 1.0)

    def _match(self, profile: tt.Profile, piece: DecoderPiece) -> tt.Match[Evidence]:
        gradients = gradients_of(profile, piece.operators)
        events = slower_side(profile, (*piece.operators, *gradients))
        is_on_device = events[0] >= profile.tree.size
        best = piece.least_bytes / piece.moved_bytes if is_on_device else 1 / len(piece.operators)
        expected = min(BEYOND_BYTES * best, 1.0) if is_on_device else best
        return tt.Match(
            anchor=piece.operators[0],
            events=events,
            evidence=Evidence(
                piece=piece.name,
                operators=tuple(profile.name(row) for row in piece.operators),
                shape=tt.Sizes(piece.shape),
                gradients=len(gradients),
                time=tt.Nanoseconds(profile.covered(rows_of(events)).total_ns),
                bytes_ratio=piece.moved_bytes / piece.least_bytes,
                expected=tt.Share(expected),
                best=tt.Share(best),
            ),
            subject=piece.name,
        )
