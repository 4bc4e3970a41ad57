"""Result of measuring a pair of statements, which is stored, shown and, if allowed, used in a saving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec

from tb_tidy_plugin.words.vocabulary import Verdict

if TYPE_CHECKING:
    from tb_tidy_plugin.rulekit import Benchmark

_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=512)]
_Statement: TypeAlias = Annotated[str, msgspec.Meta(max_length=20_000)]
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e12)]

MOST_SAMPLES = 100
Samples: TypeAlias = Annotated[list[Positive], msgspec.Meta(max_length=MOST_SAMPLES)]


class MeasuredOn(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Device and versions of a measurement.

    `kind` is `cuda`, `rocm`, `mps`, `xpu` or `cpu`; `address` is the value of `device` in the statements (`cuda:0`).
    `runtime` is `CUDA 12.8`, `ROCm 6.4` or empty; `threads` is the number that torch may use on the host.
    """

    kind: _Text
    address: _Text
    name: _Text
    torch: _Text
    runtime: _Text
    threads: int


class Measurement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Two statements measured in turns, in blocks of calls; times are those of one call.

    Attributes:
        rule: the rule that made the statements.
        before: the statement with the pattern, as it was run.
        after: the one without.
        setup: the code that ran before both, after `device = "<address>"`.
        on: device and versions.
        before_ns: time of one call of `before`: the median over the blocks, up to the factor by which the ratio of both
            medians differs from `ratio`, half of it on each side.
        after_ns: the same for `after`; `after_ns` divided by `before_ns` is `ratio`.
        ratio: median over pairs of blocks of `after` divided by `before`.
        low: lower end of the 95 % interval of `ratio`, from resampled pairs of blocks.
        high: its upper end.
        blocks: pairs of blocks.
        before_samples_ns: time of a call in each block, at most 100 blocks evenly chosen.
        after_samples_ns: the same for `after`, block by block.
        verdict: comparison of `after` with `before`.
        equal: true if both computed the same; null if the statements leave nothing to compare.
        trusted: false if `doubts` says why not to rely on it.
        doubts: sentences.
        measured_at: UTC, as in ISO 8601.
    """

    rule: _Text
    before: _Statement
    after: _Statement
    setup: _Statement
    on: MeasuredOn
    before_ns: Positive
    after_ns: Positive
    ratio: Positive
    low: Positive
    high: Positive
    blocks: int
    before_samples_ns: Samples
    after_samples_ns: Samples
    verdict: Verdict
    equal: bool | None
    trusted: bool
    doubts: Annotated[list[_Text], msgspec.Meta(max_length=10)]
    measured_at: _Text

    def is_of(self, rule: str, pair: Benchmark) -> bool:
        """True if exactly these statements were measured."""
        return (self.rule, self.before, self.after, self.setup) == (rule, pair.before, pair.after, pair.setup)

    def is_sound(self) -> bool:
        """True if the numbers are consistent; those from another machine may not be."""
        return self.low <= self.ratio <= self.high and self.trusted == (not self.doubts)


class NotMeasured(msgspec.Struct, frozen=True, tag="not_measured"):
    """Why there is no measurement, and what to do about it."""

    error: str
    advice: str
