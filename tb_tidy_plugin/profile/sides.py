"""The side that limits work: the host, or the device that the work is launched on."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tidy_plugin.profile.calls import rows_of
from tb_tidy_plugin.profile.profile import Profile


def slower_side(profile: Profile, operators: Iterable[int]) -> tuple[int, ...]:
    """`operators`, or the device work that they launch if that takes longer: the other side waits for it, or could.

    A host that takes 10 µs to launch 500 µs of work costs a step 500 µs; one that takes 10 µs to launch 2 µs costs 10.
    """
    host = rows_of(operators)
    device = profile.device_activity_of_all(host)
    is_device = profile.covered(device).total_ns > profile.covered(host).total_ns
    return tuple((device if is_device else host).tolist())
