"""Tensor grown by repeated cat calls.

## What it finds
A tensor that a loop extends repeatedly with `torch.cat`, `torch.stack`, `torch.hstack` or `torch.vstack`, and that is
read only when it is complete.

## Why it is slow
Each call creates a new tensor and copies everything from the previous one into it. With n pieces of one size, n(n +
1)/2 pieces are copied instead of n.

## Example
```python
scores = torch.empty(0, classes)
for batch in batches:
    scores = torch.cat([scores, model(batch)])
```

Use instead:
```python
scores = torch.cat([model(batch) for batch in batches])
```

## How the saving is estimated
One call that copies each element once remains. It takes the share of the time of all calls that the last result has of
the size of all results. At best one call of n remains, at worst twice that share, because many small pieces copy more
slowly than a few large ones.

## When it stays quiet
Fewer than 5 growing calls within one step. A tensor that is read between the calls, such as the keys and values of a
decoder or the features of a densely connected network: each of its states is needed. (If the maximum length is known, a
static cache, allocated once and written in place, saves the copies.) A tensor that grows once per step. Calls made by
libraries.
"""

from collections.abc import Iterator, Sequence
from math import prod

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import Change, Spot
from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.events.products import Join
from tb_tidy_plugin.rules.python_loops.cat_in_loop.growth import growing_tensors, is_read_between


class Evidence(msgspec.Struct, frozen=True):
    """A tensor that grows.

    Attributes:
        calls: number of calls that extend it. operator: theirs. dim: the dimension that grows.
        piece, result: the last piece and the last result. again: the part of the copied data that was copied before.
        time: of the calls.
    """

    calls: int
    operator: str
    dim: int
    piece: tt.Sizes
    result: tt.Sizes
    again: tt.Share
    time: tt.Nanoseconds


class CatInLoop(tt.Rule[Evidence]):
    """Tensor grown by repeated cat calls."""

    code = "TT602"
    needs = frozenset({"shapes"})
    reads_operators = True
    action = "Join the pieces once, after the loop"
    message = "A tensor grows by {calls} × `{operator}`: {again} of what they copy is a copy of earlier pieces"
    why = (
        "In one step, {calls} calls each take the previous result and add a piece; the last piece is {piece} and the "
        "final result is {result}. They take {time}, and nothing reads the tensor in between. Reported for {min_calls} "
        "or more"
    )
    fix = "Append the pieces to a list and call `torch.cat` once after the loop"
    caveat = "All pieces stay in memory until the final call."

    min_calls = tt.Threshold(
        5, "with n calls, 2/(n + 1) of the copies are needed; with fewer calls, less than two thirds can go"
    )

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        for series in growing_tensors(profile, round(self.min_calls), tt.is_own_code):
            if not is_read_between(profile, series):
                yield self._match(profile, series)

    def _match(self, profile: tt.Profile, series: Sequence[Join]) -> tt.Match[Evidence]:
        rows, last = [join.row for join in series], series[-1]
        all_elements, needed = sum(prod(join.result) for join in series), prod(last.result)
        return tt.Match(
            anchor=rows[0],
            events=(*rows, *profile.device_activity_of_all(rows_of(rows)).tolist()),
            evidence=Evidence(
                calls=len(rows),
                operator=profile.name(rows[0]),
                dim=last.dim,
                piece=tt.Sizes(last.piece),
                result=tt.Sizes(last.result),
                again=tt.Share(1 - needed / all_elements),
                time=tt.Nanoseconds(sum(map(profile.duration_ns, rows))),
            ),
        )

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        needed = 1 - match.evidence.again
        yield tt.Scale(match.events, needed, low=min(needed, 1 / match.evidence.calls), high=min(2 * needed, 1.0))

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        pieces, dim, extents = evidence.calls + 1, evidence.dim, tuple(evidence.piece)
        if not extents or tt.fitting(pieces, 16 * prod(extents)) < pieces:
            return None
        setup = f"import torch\npieces = [torch.zeros({extents}, device=device) for _ in range({pieces})]"
        before = f"result = pieces[0]\nfor piece in pieces[1:]:\n    result = torch.cat([result, piece], {dim})"
        return tt.Benchmark(before, f"result = torch.cat(pieces, {dim})", setup, of_events=True)

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        from tb_tidy_plugin.fixes.growing import collected

        return collected(code, spot)
