"""The allow-listed part of a trace's top-level keys.

Real traces contain environment dumps, access tokens, job and user names beside the events: keys that are not named here
are neither kept nor shown.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.columns import DeviceProperties, Metadata, ShortText, Small
from tb_tidy_plugin.trace.recover import NOT_JSON, mended

LATEST_NS = 1 << 62  # the year 2116
NOTHING = msgspec.Raw(b"")
OPTIONS = ("record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops")
VERSIONS = ("cupti_version", "cuda_runtime_version", "cuda_driver_version", "roctracer_version", "hip_runtime_version",
            "hip_driver_version")  # fmt: skip

_Value = TypeVar("_Value")


_KEYS = (*OPTIONS, *VERSIONS, "distributedInfo", "deviceProperties", "baseTimeNanoseconds")
MAX_DEVICES_BYTES = 1 << 20  # eight devices take 3 kB

_Texts = msgspec.defstruct("_Texts", [(key, msgspec.Raw, NOTHING) for key in _KEYS])
"""The values of these keys, undecoded. All others are skipped."""


class _Distributed(msgspec.Struct):
    rank: Small | None = None
    world_size: Small | None = None
    backend: ShortText | None = None


def parse_metadata(document: bytes) -> Metadata | None:
    """The metadata in `document` (the trace with an empty list of events); empty for a bare list of events.

    Returns None if the metadata is malformed: then only the events are known.
    """
    if not document:
        return Metadata()
    for mend in (bytes, mended):
        try:
            found = decode(mend(document), _Texts)
        except NOT_JSON:
            continue
        return _allowed({key: text for key in _KEYS if (text := getattr(found, key))})
    return None


def _allowed(keys: dict[str, msgspec.Raw]) -> Metadata:
    distributed = _decoded(keys.get("distributedInfo"), _Distributed) or _Distributed()
    devices = keys.get("deviceProperties", NOTHING)
    known_devices = _decoded(devices, list[DeviceProperties]) if len(devices) <= MAX_DEVICES_BYTES else None
    return Metadata(
        options=frozenset(option for option in OPTIONS if bytes(keys.get(option, NOTHING)) in {b"1", b"true"}),
        keys=frozenset(version for version in VERSIONS if version in keys),
        devices=tuple(known_devices or ()),
        rank=distributed.rank,
        world_size=distributed.world_size,
        backend=distributed.backend,
        base_ns=_base_ns(keys.get("baseTimeNanoseconds")),
    )


def _base_ns(text: msgspec.Raw | None) -> int:
    base_ns = _decoded(text, int) or 0
    return base_ns if 0 <= base_ns <= LATEST_NS else 0


def _decoded(text: msgspec.Raw | None, kind: type[_Value]) -> _Value | None:
    if text is None:
        return None
    try:
        return decode(text, kind, strict=False)
    except NOT_JSON:
        return None
