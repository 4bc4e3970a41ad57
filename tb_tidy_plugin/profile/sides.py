"""The side that limits work: the host, or the device that the work is launched on."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tb_tidy_plugin.profile.calls import rows_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.start_up import loading_calls


def slower_side(profile: Profile, operators: Iterable[int]) -> tuple[int, ...]:
    """`operators`, or the device work that they launch if that takes longer: the other side waits for it, or could.

    A host that takes 10 µs to launch 500 µs of work costs a step 500 µs; one that takes 10 µs to launch 2 µs costs 10.
    Operators that load kernels say nothing about the host of a warm step: then it is the device, if that works at all.
    """
    host = rows_of(operators)
    device = profile.device_activity_of_all(host)
    loading = np.sort(profile.launched_by[loading_calls(profile)])
    last = profile.tree.last_descendant[host]
    is_cold = np.searchsorted(loading, host) < np.searchsorted(loading, last, side="right")
    if is_cold.any():
        warm = host if is_cold.all() else host[~is_cold]
        return tuple((device if len(device) else warm).tolist())
    is_device = profile.covered(device).total_ns > profile.covered(host).total_ns
    return tuple((device if is_device else host).tolist())
