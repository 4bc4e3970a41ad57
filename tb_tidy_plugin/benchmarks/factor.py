"""Effect of a measurement on a saving: the part of the matched events' time that a fix leaves."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.rulekit import Benchmark, Edit, Remove, Scale


class Factor(msgspec.Struct, frozen=True):
    """The remaining part of the events' time: most likely, at least, at most; 0 to 1."""

    most_likely: float
    low: float
    high: float

    def applied(self, edits: Iterable[Edit]) -> list[Edit]:
        """The edits with this factor instead of the rule's own; waits and work beside the step stay the same."""
        return [
            Scale(edit.events, self.most_likely, self.low, self.high) if isinstance(edit, Remove | Scale) else edit
            for edit in edits
        ]


def factor_of(measurement: Measurement | None, pair: Benchmark | None, kind: str) -> Factor | None:
    """The measured factor, None without a usable one.

    A measurement counts if it is trusted, was made on the recording's `kind` of device, and its `before` does exactly
    what the matched events do. A fix that was measured to be slower saves nothing.
    """
    if measurement is None or pair is None or not pair.of_events:
        return None
    if not measurement.trusted or measurement.on.kind != kind:
        return None
    return Factor(*(min(each, 1.0) for each in (measurement.ratio, measurement.low, measurement.high)))
