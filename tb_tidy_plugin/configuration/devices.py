"""From the table `[devices]` to the peak rates of unknown devices, or to other rates of known ones."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from tb_tidy_plugin.profile.device_models import FP8, GIGA, TERA, DeviceModel, Peak
from tb_tidy_plugin.words.errors import ConfigurationError

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
