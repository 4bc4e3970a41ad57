"""What a rank's step is spent on, in the few parts by which ranks are compared, whatever they run on.

A device's step and a host's are cut into parts of their own (`profile/lanes.py`); here each of them belongs to one of
six, so that ranks stand side by side in one table and each rank's parts still add up to its step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tb_tidy_plugin.profile.lanes import Part
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.report.rank_model import RankPart

RANK_PARTS: tuple[RankPart, ...] = ("loading", "host", "compute", "copies", "communication", "idle")

RANK_PART: Mapping[Part, RankPart] = {
    "data_loading": "loading",
    "idle_data_loading": "loading",
    "python": "host",
    "idle_launch_bound": "host",
    "idle_garbage_collection": "host",
    "idle_compilation": "host",
    "forward": "compute",
    "backward": "compute",
    "optimizer": "compute",
    "matrix": "compute",
    "attention": "compute",
    "convolution": "compute",
    "normalisation": "compute",
    "reduction": "compute",
    "elementwise": "compute",
    "other_compute": "compute",
    "host_to_device": "copies",
    "device_to_host": "copies",
    "device_copy": "copies",
    "communication": "communication",
    "communication_exposed": "communication",
    "idle_communication_wait": "communication",
    "idle_synchronisation": "idle",
    "idle_unknown": "idle",
    "other": "idle",
}


def typical_step(report: ProfileReport) -> tuple[int | None, dict[str, int]]:
    """The median step besides the warm-up, and the median of each part in these steps; a mean over several devices.

    Where all steps are warm-up all of them count, and where there are no steps the whole recording is one, without a
    duration of its own.
    """
    ordinary = [at for at, item in enumerate(report.steps.items) if item.oddity != "warmup"]
    ordinary = ordinary or list(range(len(report.steps.items))) or [0]
    durations = [report.steps.items[at].duration_ns for at in ordinary if report.steps.items]
    parts: dict[str, int] = {}
    for name in RANK_PARTS:
        columns = [part.steps_ns for lane in report.lanes for part in lane.parts if RANK_PART[part.part] == name]
        if columns:
            parts[name] = _median(np.array(columns, np.float64).sum(axis=0)[ordinary] / len(report.lanes))
    return (_median(durations) if durations else None), parts


def _median(values: Sequence[float] | np.typing.NDArray[np.float64]) -> int:
    return round(float(np.median(values)))
