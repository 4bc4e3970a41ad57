"""The peak rates in the table `[devices]`, of unknown devices or instead of known rates; checks of devices' names."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from tb_tidy_plugin.profile.device_models import (
    FP8,
    GIGA,
    TERA,
    DeviceModel,
    Peak,
    device_names,
    known_device,
    plain_name,
)
from tb_tidy_plugin.words.errors import ConfigurationError

_NEAR, _LIKE = 3, 20  # similar names that are shown, and that these are chosen from by their beginning
SHOWN = 100  # characters of an unknown name
BANDWIDTH = "gigabytes-per-second"
_DTYPES: Mapping[str, tuple[str, ...]] = {
    "float64": ("double",),
    "float32": ("float",),
    "float16": ("c10::Half",),
    "bfloat16": ("c10::BFloat16",),
    "float8": FP8,
}
"""Keys with TFLOP/s, and the dtypes of a trace that they apply to."""


def configured_devices(given: Mapping[str, Mapping[str, float]], where: str) -> dict[str, DeviceModel]:
    """Devices by name, from `[devices]`.

    Raises:
        ConfigurationError: there is no such key, a value is not above 0, or the bandwidth is missing; `where` names the
            file.
    """
    return {name: _device(name, rates, where) for name, rates in given.items()}


def checked_device(name: str, devices: Collection[str], where: str) -> str:
    """`name`, if it is empty or the name of a device with known rates.

    Args:
        name: as a user gives it; makers' names may be missing.
        devices: names in `[devices]`.
        where: the option or the key with its file, as the start of a sentence.

    Raises:
        ConfigurationError: there is no such device; names similar ones.
    """
    if not name or name in devices or known_device(name) is not None:
        return name
    spelled = {plain_name(known): known for known in (*device_names(), *devices)}
    wanted = plain_name(name)
    near = sorted(get_close_matches(wanted, spelled, _LIKE), key=lambda each: -_alike(wanted, each))[:_NEAR]
    similar = f"Similar ones: {', '.join(f'`{spelled[each]}`' for each in near)}. " if near else ""
    advice = f"{similar}`nvidia-smi -L` and `rocminfo` show names; rates of your own are given in `[devices]`."
    raise ConfigurationError(f"{where} names a device without known rates: `{name[:SHOWN]}`.", advice)


def _alike(one: str, other: str) -> int:
    """Number of characters that both begin with."""
    same = [mine == theirs for mine, theirs in zip(one, other, strict=False)]
    return (*same, False).index(False)


def _device(name: str, rates: Mapping[str, float], where: str) -> DeviceModel:
    known = (BANDWIDTH, *_DTYPES)
    table = f'`devices."{name}"` in `{where}`'
    for key, value in rates.items():
        if key not in known:
            raise ConfigurationError(f"{table} has no key `{key}`.", f"It has {', '.join(known)}.")
        if not 0 < value <= sys.float_info.max / TERA:
            raise ConfigurationError(f"`{key}` of {table} must be a number above 0.", "Take it from the datasheet.")
    if BANDWIDTH not in rates:
        raise ConfigurationError(f"{table} lacks `{BANDWIDTH}`.", "Add the rate of the device's memory.")
    given = {key: Peak(rates[key] * TERA, rates[key] * TERA) for key in _DTYPES if key in rates}
    peaks = {dtype: peak for key, peak in given.items() for dtype in _DTYPES[key]}
    return DeviceModel(rates[BANDWIDTH] * GIGA, peaks)
