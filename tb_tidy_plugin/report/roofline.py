"""Roofline: rates of operators and kernels by their operations per byte, with the limits of their device."""

from __future__ import annotations

from typing import Literal

from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.words.vocabulary import MachineSource


class RooflineCeiling(Model, frozen=True):
    """Peak operations per second of a device of this name: for a dtype, on ordinary cores or matrix units."""

    name: str
    flops_per_second: float


class RooflineDot(Model, frozen=True):
    """One operator with its shapes, or one kernel by name, with known work and time.

    Attributes:
        key: of its row among the operators by shape, or the kernels. detail: shapes; for kernels, the operator.
        total_ns: device time over the recording. share: of all device work.
        roofline: least time that the device needs, as a share of the time taken; null for unknown devices.
        bound: what limits that least time; null if unknown.
        findings: ids of the findings whose events are among its calls; only for operators.
    """

    kind: Literal["operator", "kernel"]
    key: str
    name: str
    detail: str
    total_ns: int
    share: float
    flops_per_second: float
    bytes_per_second: float
    roofline: float | None
    bound: Literal["compute", "memory"] | None
    findings: list[str]


class Roofline(Model, frozen=True):
    """The plot of one profile: dots by most device time, at most three hundred of each kind.

    Attributes:
        device: as the recording names it; empty without one, or with several kinds.
        bytes_per_second: to the device's own memory; null for unknown devices. ceilings: empty for them.
        source: how these limits are known; null for unknown devices.
        missing: the reason for missing dots, and the option that records them; null if there are dots.
    """

    device: str
    bytes_per_second: float | None
    ceilings: list[RooflineCeiling]
    dots: list[RooflineDot]
    missing: str | None
    source: MachineSource | None = None
