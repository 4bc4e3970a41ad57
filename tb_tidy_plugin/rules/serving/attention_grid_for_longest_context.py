"""Attention grid for the longest context.

## What it finds
Attention in a decode step whose kernel has so many thread blocks along each sequence that each would read fewer than 16
tokens of the cache. The grid was fixed at the capture of the graph, for the longest context that the server allows.

## Why it is slow
A replay launches the grid of the capture. Blocks beyond the end of a sequence exit at once, but each is still scheduled
on the device and delays the blocks that read.

## Example
```python
server = launch(model, context_length=40960)  # requests have 1,000 tokens, each sequence gets 160 blocks of 256
```

Use instead:
```python
server = launch(model, context_length=4096)  # 16 blocks; or an attention back end that splits by the batch's lengths
```

## How the saving is estimated
At best the attention reads its cache at 0.8 of the device's memory bandwidth, which good kernels reach; at worst
nothing is gained. The middle is expected, since only a measurement shows how much the empty blocks delay the others.

## When it stays quiet
Batches whose annotation does not give the number of tokens in the cache, and prefills. Kernels with an unknown grid:
CUDA recordings give it with the kernel, HIP recordings with its launch, which for a replay is only in the capture.
Devices with an unknown bandwidth. Attention that reads at more than 0.7 of the bandwidth.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.graphs.records import grids_of
from tb_tidy_plugin.profile.kernels import kernel_kind
from tb_tidy_plugin.profile.serving.iterations import Iteration, iterations_of
from tb_tidy_plugin.profile.serving.paged_attention import cached_heads, decode_attention
from tb_tidy_plugin.profile.work.flops import device_of
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.words.units import plural

_GOOD = 0.8
"""Part of the manufacturers' stated bandwidth that the fastest kernels reach when they read a large cache once."""


class Evidence(msgspec.Struct, frozen=True):
    """The attention of one decode step.

    Attributes:
        blocks: along each sequence. tokens: of each sequence, the mean.
        kernels: number with such a grid. time: of all of them. share: of the bandwidth at which they read.
        kept: the least part of the time that remains.
    """

    blocks: int
    tokens: int
    kernels: int
    time: tt.Nanoseconds
    share: tt.Share
    kept: tt.Share

    @property
    def which(self) -> str:
        """The kernels, as the subject of a sentence."""
        return plural(self.kernels, "attention kernel")

    @property
    def length(self) -> str:
        """Tokens of a sequence."""
        return f"{self.tokens:,}"


class AttentionGridForLongestContext(tt.Rule[Evidence]):
    """Attention of decode steps with most thread blocks behind the ends of its sequences."""

    code = "TT1512"
    needs = frozenset({"shapes", "device"})
    reads_operators = True
    action = "Size attention's grid for the contexts that are served"
    message = "{which} of a decode step: {blocks} thread blocks for each sequence of {length} tokens, {time} in all"
    why = (
        "Each block would read fewer than {min_tokens_per_block} tokens if all of them worked, and the cache is read "
        "at {share} of the memory bandwidth. The graph was captured with a grid for the longest context"
    )
    fix = (
        "Start the server with a shorter maximum context (`--context-length`, `--max-model-len`), or use an attention "
        "back end that splits by the lengths in the batch"
    )
    caveat = "The server then refuses requests with longer contexts."

    min_tokens_per_block = tt.Threshold(16, "kernels split a sequence into parts of 64 tokens or more")
    min_blocks = tt.Threshold(8, "along each sequence; fewer empty blocks take next to no time")
    max_rate = tt.Threshold(0.7, "of the device's memory bandwidth; the fastest kernels reach 0.8 of it")

    def not_applicable(self, profile: tt.Profile) -> str | None:
        if device_of(profile) is None:
            return "The peak rates of this device are not known."
        return None if _decodes(profile) else "No decode batch says how many tokens its cache holds."

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        table = profile.table
        rows = np.flatnonzero(table.is_named(lambda name: kernel_kind(name) == "attention"))
        rows = rows[(table.category[rows] == tt.Category.KERNEL) & (profile.launched_by[rows] != ABSENT)]
        grids = np.where(profile.replayed.grid[rows] > 0, profile.replayed.grid[rows], grids_of(table, rows))
        starts = table.start_ns[rows]
        for each in _decodes(profile):
            here = np.flatnonzero((starts >= each.start_ns) & (starts < each.end_ns))
            match = self._match(profile, each, rows[here].tolist(), grids[here].tolist())
            if match is not None:
                yield match

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        kept = match.evidence.kept
        yield tt.Scale(match.events, (1 + kept) / 2, kept, 1.0)

    def _match(
        self, profile: tt.Profile, iteration: Iteration, rows: Sequence[int], grids: Sequence[Sequence[int]]
    ) -> tt.Match[Evidence] | None:
        """The attention of one batch; None if its grid fits, or if it reads the cache as fast as possible."""
        batch, device = iteration.batch, device_of(profile)
        requests, tokens = batch.requests or 0, batch.kv_tokens or 0
        found, blocks, moved = [], 0, 0
        for row, grid in zip(rows, grids, strict=True):
            inputs = profile.inputs(int(profile.launched_by[row]))
            along = _blocks_along(grid, (requests, batch.padded or requests), cached_heads(inputs))
            work = decode_attention(inputs, tokens)
            if work and along >= self.min_blocks and tokens < self.min_tokens_per_block * along * requests:
                found.append(row)
                blocks, moved = max(blocks, along), moved + (work.bytes or 0)
        time_ns = sum(map(profile.duration_ns, found))
        if not found or device is None or moved >= self.max_rate * device.bytes_per_second * time_ns / 1e9:
            return None
        share = moved / time_ns * 1e9 / device.bytes_per_second
        evidence = Evidence(
            blocks=blocks,
            tokens=round(tokens / requests),
            kernels=len(found),
            time=tt.Nanoseconds(time_ns),
            share=tt.Share(share),
            kept=tt.Share(share / _GOOD),
        )
        anchor = max(found, key=profile.duration_ns)
        return tt.Match(int(profile.launched_by[anchor]), tuple(found), evidence, confidence="medium")


def _decodes(profile: tt.Profile) -> list[Iteration]:
    """The batches that only decode, with a known number of requests and tokens."""
    every = iterations_of(profile)
    return [each for each in every if each.batch.phase == "decode" and each.batch.requests and each.batch.kv_tokens]


def _blocks_along(grid: Sequence[int], requests: Sequence[int], heads: int | None) -> int:
    """Blocks along each sequence: the remaining axis beside one for the requests and one for the heads; else 0."""
    left = [each for each in grid if each > 1]
    for wanted in (requests, () if heads is None else (heads,)):
        axis = next((each for each in left if each in wanted), None)
        if axis is None:
            return 0
        left.remove(axis)
    return left[0] if len(left) == 1 else 0
