"""What is worked out of a profile once, and goes with it."""

from __future__ import annotations

import gc
import weakref

from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.profile.memory.allocations import memory_events
from tb_tidy_plugin.profile.once import once
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import draw

DRAWN = "ProfilerStep#1  0-900\n  aten::mm  100-800  dims=64x64,64x64  types=float,float"


@once
def name_and_profile(profile: Profile) -> tuple[list[str], Profile]:
    return [profile.name(0)], profile


def test_each_profile_is_asked_once() -> None:
    one, other = draw(DRAWN), draw(DRAWN)
    assert name_and_profile(one) is name_and_profile(one)
    assert name_and_profile(one)[1] is one
    assert name_and_profile(other)[1] is other


def test_what_refers_to_the_profile_does_not_keep_it() -> None:
    profile = draw(DRAWN)
    assert account_of(profile) is account_of(profile)
    assert memory_events(profile) is memory_events(profile)
    left = weakref.ref(profile)
    del profile
    gc.collect()
    assert left() is None
