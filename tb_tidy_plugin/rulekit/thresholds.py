"""Numbers that a rule compares with, each with its reason, and settable in the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, overload

from tb_tidy_plugin.words.units import Bytes, Count, Nanoseconds, Share

_UNITS: Mapping[str, type[Bytes | Nanoseconds]] = {"bytes": Bytes, "ns": Nanoseconds}


class Configurable(Protocol):
    """A class with settings: a rule."""

    settings: Mapping[str, float]


class Threshold:
    """A number that a rule compares with; on a rule it reads as the number, on the class as the threshold itself.

    The attribute's name has the unit (`min_share`, `min_bytes`, `min_wait_ns`). Users set it in the configuration
    under the rule's name, with hyphens: `min-bytes = 4096`.

    Attributes:
        default: the number without a user's setting.
        reason: why this number: a sentence without its full stop, for the rule's page.
    """

    def __init__(self, default: float, reason: str) -> None:
        self.default = default
        self.reason = reason
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, rule: None, owner: type) -> Threshold: ...

    @overload
    def __get__(self, rule: Configurable, owner: type) -> float: ...

    def __get__(self, rule: Configurable | None, owner: type) -> Threshold | float:
        return self if rule is None else rule.settings.get(self.name, self.default)

    def in_unit(self, rule: Configurable) -> Bytes | Count | Nanoseconds | Share:
        """The number of `rule` in the unit at the end of its name; without one, fractions are shares, others counts."""
        number = rule.settings.get(self.name, self.default)
        if unit := _UNITS.get(self.name.rpartition("_")[2]):
            return unit(round(number))
        return Count(round(number)) if self.default == int(self.default) else Share(number)


def relaxed_settings(rule: Configurable) -> dict[str, float]:
    """Settings of the same rule with weaker limits: it then also finds what lies below its own, for whatever reason.

    Shares of time differ most between recordings of one program, so that those limits go. Limits in nanoseconds become
    an eighth, and numbers of things and bytes, which hardly differ, a half or twice as many. The direction is in the
    name: `min_`, `max_` or `most_`; other thresholds are no limits.
    """
    return {
        name: _relaxed(name, rule.settings.get(name, each.default), is_share=0 < each.default < 1)
        for name, each in thresholds_of(type(rule)).items()
    }


def _relaxed(name: str, number: float, *, is_share: bool) -> float:
    limit, _, rest = name.partition("_")
    if limit == "min":
        return 0.0 if is_share else number / (8 if rest.endswith("ns") else 2)
    if limit in {"max", "most"}:
        return max(number, 1.0) if is_share else 2 * number
    return number


def shown_name(attribute: str) -> str:
    """A threshold's name as users write it: `min-bytes` for `min_bytes`."""
    return attribute.replace("_", "-")


def thresholds_of(rule: type) -> dict[str, Threshold]:
    """The thresholds of a rule by attribute name, its own first, then those of every rule."""
    found: dict[str, Threshold] = {}
    for kind in rule.__mro__:
        for name, value in vars(kind).items():
            if isinstance(value, Threshold):
                found.setdefault(name, value)
    return found
