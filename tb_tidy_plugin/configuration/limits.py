"""From the table `[limits]` to the bounds of a trace and of its analysis."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import fields, replace

from tb_tidy_plugin.configuration.files import read_configuration
from tb_tidy_plugin.system.allowance import ScaledBound
from tb_tidy_plugin.trace.limits import GB, USUAL_LIMITS, Limits
from tb_tidy_plugin.words.errors import ConfigurationError

LARGEST_SETTING = sys.float_info.max  # TOML knows larger integers, infinity, and NaN
LIMITS: Mapping[str, Callable[[Limits, float], Limits]] = {
    "max-text-gb": lambda limits, value: replace(limits, text_bytes=value * GB),
    "max-inflation": lambda limits, value: replace(limits, inflation=value),
    "max-processor-s": lambda limits, value: replace(limits, processor_s=ScaledBound(value)),
    "max-wall-s": lambda limits, value: replace(limits, wall_s=ScaledBound(value)),
    "max-memory-gb": lambda limits, value: replace(limits, memory_bytes=ScaledBound(value * GB)),
}
"""The change of the limits by each key of the table."""


def limits_of(given: Mapping[str, float], where: str) -> Limits:
    """The limits, with those `given` by the keys of `[limits]`.

    Raises:
        ConfigurationError: there is no such key, or its value is not a limit; `where` names the file.
    """
    limits = USUAL_LIMITS
    for key, value in given.items():
        if key not in LIMITS:
            raise ConfigurationError(f"`limits` in `{where}` has no key `{key}`.", f"It has {', '.join(LIMITS)}.")
        if not 0 < value <= LARGEST_SETTING:
            raise ConfigurationError(f"`{key}` of `limits` must be a number above 0.", "Remove it for the default.")
        limits = LIMITS[key](limits, value)
    return limits


def limits_in(file: Path | None) -> Limits:
    """The limits from a configuration file; the defaults without one.

    Raises:
        ConfigurationError: it cannot be used.
    """
    return USUAL_LIMITS if file is None else limits_of(read_configuration(file).settings.limits, str(file))


def only_lowers(key: str, value: float) -> bool:
    """True if a value of the table does not raise any limit."""
    lowered = LIMITS[key](USUAL_LIMITS, value)
    pairs = ((getattr(lowered, each.name), getattr(USUAL_LIMITS, each.name)) for each in fields(Limits))
    return all(_at_once(now) <= _at_once(usual) for now, usual in pairs)


def _at_once(limit: ScaledBound | float) -> float:
    return limit.at_once if isinstance(limit, ScaledBound) else limit
