"""All-reduce between copies.

## What it finds
An all-reduce in a separate buffer: right before it the tensor is copied into the buffer, and right after it the result
is copied out.

## Why it is slow
Symmetric memory and custom all-reduces work on registered buffers. In every layer, each copy reads and writes the whole
tensor and needs a launch.

## Example
```python
buffer.copy_(hidden)
torch.ops.symm_mem.multimem_all_reduce_(buffer, "sum", group)
hidden.copy_(buffer)
```

Use instead:
```python
torch.mm(x, weight, out=buffer)  # the product writes where the all-reduce reads
torch.ops.symm_mem.multimem_all_reduce_(buffer, "sum", group)
hidden = norm(buffer)  # or a fused all-reduce and norm
```

## How the saving is estimated
The copies go. At worst the first one remains.

## When it stays quiet
Fewer than 8 such collectives. Collectives with a copy on one side only, or with other work in between.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.kernels import collective_kernels
from tb_tidy_plugin.torchfacts.event_names import TO_DEVICE, TO_HOST
from tb_tidy_plugin.trace.sets import among

BESIDE_LEFT = 0.5
"""Largest remaining part of the copies: those in front."""


class Evidence(msgspec.Struct, frozen=True):
    """Collectives with copies around them.

    Attributes:
        kernel: the collective's. times: their number. time: of the copies. collective: of the collectives.
    """

    kernel: str
    times: int
    time: tt.Nanoseconds
    collective: tt.Nanoseconds


class AllReduceBetweenCopies(tt.Rule[Evidence]):
    """All-reduces in a buffer of their own, with copies into it and out of it."""

    code = "TT1504"
    needs = frozenset({"device"})
    action = "Remove the copies beside the collectives"
    message = "{times} collectives (`{kernel}`) have a copy right before and after them, which take {time}"
    why = "The collectives themselves take {collective}. Reported for {min_times} of them or more"
    fix = "Let the product write into the communication buffer, and use an all-reduce fused with the norm that follows"

    min_times = tt.Threshold(8, "collectives; layers repeat them, and set-up code does not")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        table = profile.table
        found: dict[str, list[tuple[int, int, int]]] = {}
        work = np.flatnonzero((table.category == tt.Category.KERNEL) | (table.category == tt.Category.COPY))
        work = work[np.lexsort((table.start_ns[work], table.stream[work], table.device[work]))]
        at = np.flatnonzero(among(work, collective_kernels(table)))
        for place in at[(at > 0) & (at < len(work) - 1)].tolist():
            before, kernel, behind = (int(row) for row in work[place - 1 : place + 2])
            if _is_copy(profile, before, kernel) and _is_copy(profile, behind, kernel):
                found.setdefault(table.names[table.name[kernel]], []).append((before, kernel, behind))
        for name, triples in found.items():
            if len(triples) >= self.min_times:
                yield from self._matches(profile, name, triples)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        before, behind = match.events
        yield tt.Remove((behind,))
        yield tt.Scale((before,), 0.0, 0.0, 1.0)

    def _matches(
        self, profile: tt.Profile, name: str, triples: list[tuple[int, int, int]]
    ) -> Iterator[tt.Match[Evidence]]:
        evidence = Evidence(
            kernel=_short(name),
            times=len(triples),
            time=tt.Nanoseconds(
                sum(profile.duration_ns(row) for before, _, behind in triples for row in (before, behind))
            ),
            collective=tt.Nanoseconds(sum(profile.duration_ns(kernel) for _, kernel, _ in triples)),
        )
        for before, kernel, behind in triples:
            cause = int(profile.launched_by[before])
            anchor = cause if cause >= 0 else before
            yield tt.Match(anchor, (before, behind), evidence, related=(kernel,))


def _is_copy(profile: tt.Profile, row: int, kernel: int) -> bool:
    """True if `row` copies within the memory of the device that runs `kernel`, on its stream."""
    table, name = profile.table, profile.name(row)
    if table.category[row] != tt.Category.COPY or TO_DEVICE.search(name) or TO_HOST.search(name):
        return False
    return bool(table.device[row] == table.device[kernel] and table.stream[row] == table.stream[kernel])


def _short(name: str) -> str:
    """The kernel's own name, without its return type, scopes and template arguments."""
    return name.partition("<")[0].rpartition("::")[2].rpartition(" ")[2] or name[:40]
