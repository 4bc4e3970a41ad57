"""The operators that replayed kernels come from, as they were captured."""

from __future__ import annotations

from tb_tidy_plugin.profile.events.inputs import Inputs
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts.event_names import MODULE
from tb_tidy_plugin.trace.columns import ABSENT


def operator_name(profile: Profile, row: int) -> str | None:
    """Name of the operator of replayed device work, None for other rows."""
    at = int(profile.replayed.operator[row])
    return None if at == ABSENT else profile.name(at)


def inputs_of(profile: Profile, row: int) -> Inputs:
    """Inputs of that operator; empty for other rows."""
    at = int(profile.replayed.operator[row])
    return Inputs() if at == ABSENT else profile.inputs(at)


def module_of(profile: Profile, row: int) -> str | None:
    """Name of the innermost module around that operator, None if none was recorded."""
    at = int(profile.replayed.operator[row])
    names = [] if at == ABSENT else map(profile.name, profile.ancestors(at))
    return next((name.removeprefix(MODULE) for name in names if name.startswith(MODULE)), None)
