"""Bytes that the experts of a served model read, from the model's `config.json` beside the recording."""

from __future__ import annotations

from tb_tidy_plugin.profile.iterations import iterations_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ExpertSizes


def expert_sizes(profile: Profile) -> ExpertSizes | None:
    """The sizes of the experts; None if they are unknown, or spread over ranks.

    The number of tokens from other ranks is not recorded.
    """
    return profile.table.experts if (profile.metadata.world_size or 1) == 1 else None


def experts_read(profile: Profile) -> int:
    """Bytes that the experts of all batches read; 0 if unknown, or if a batch does more than decode."""
    sizes, batches = expert_sizes(profile), [each.batch for each in iterations_of(profile)]
    if sizes is None or any(each.phase != "decode" for each in batches):
        return 0
    return sum(sizes.bytes_read(each.tokens or 0) for each in batches)
