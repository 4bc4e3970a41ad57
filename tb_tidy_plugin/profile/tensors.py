"""Which tensors are the same, where the capture kept that: a trace itself holds shapes only."""

from __future__ import annotations

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import TensorIds

UNKNOWN = TensorIds((), ())


def tensors_of(profile: Profile, row: int) -> TensorIds:
    """Ids of the inputs of an operator; none where they were not captured."""
    return profile.metadata.captured.tensors.get(int(profile.table.file_order[row]), UNKNOWN)
