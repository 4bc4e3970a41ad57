"""Every multiplication is too slow.

## What it finds
Any multiplication.

## Why it is slow
It is made up.

## Example
```python
c = a @ b
```

Use instead:
```python
c = d
```

## How the saving is estimated
All of it goes.

## When it stays quiet
Never.
"""

from collections.abc import Iterator

import msgspec

from tb_tidy_plugin.profile.events.inputs import tensor_bytes
from tb_tidy_plugin.rulekit import Bytes, Match, Nanoseconds, Profile, Rule


class Evidence(msgspec.Struct, frozen=True):
    op: str
    size: Bytes
    threshold: Nanoseconds


class SlowMultiplication(Rule[Evidence]):
    code = "TT999"
    needs = frozenset({"shapes"})
    message = "`{op}` multiplies {size}"
    why = "It ran for longer than {threshold}."
    fix = "Add instead"
    caveat = "Changes the result"

    def detect(self, profile: Profile) -> Iterator[Match[Evidence]]:
        for row in profile.named("aten::mm").tolist():
            yield Match(row, (row,), self.evidence_of(profile, row))

    def evidence_of(self, profile: Profile, row: int) -> Evidence:
        inputs = profile.inputs(row)
        size = tensor_bytes(inputs.shape(0) or (), inputs.dtype(0)) or 0
        return Evidence(profile.name(row), Bytes(size), Nanoseconds(1000))
