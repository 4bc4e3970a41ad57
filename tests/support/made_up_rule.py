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

from collections.abc import Iterator, Mapping

from tb_tidy_plugin.profile.inputs import tensor_bytes
from tb_tidy_plugin.rulekit import Bytes, Fact, Match, Nanoseconds, Profile, Rule


class SlowMultiplication(Rule):
    code = "TT999"
    needs = frozenset({"shapes"})
    message = "`{op}` multiplies {size}"
    why = "It ran for longer than {threshold}."
    fix = "Add instead"
    caveat = "Changes the result"

    def detect(self, profile: Profile) -> Iterator[Match]:
        for row in profile.named("aten::mm").tolist():
            yield Match(row, (row,), self.facts(profile, row))

    def facts(self, profile: Profile, row: int) -> Mapping[str, Fact]:
        inputs = profile.inputs(row)
        size = tensor_bytes(inputs.shape(0) or (), inputs.dtype(0)) or 0
        return {"op": profile.name(row), "size": Bytes(size), "threshold": Nanoseconds(1000)}
