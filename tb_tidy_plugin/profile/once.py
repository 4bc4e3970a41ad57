"""Functions of higher layers that are computed once for each profile."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.profile import Profile

_Made = TypeVar("_Made")


def once(of: Callable[[Profile], _Made]) -> Callable[[Profile], _Made]:
    """`of`, computed once for each profile. The profile holds the answer, which may refer to it.

    Both are freed together. A thread that asks while another one computes the answer waits for it.
    """
    name, working = f"{of.__module__}.{of.__qualname__}", RLock()

    @wraps(of)
    def known(profile: Profile) -> _Made:
        kept: dict[str, _Made] = vars(profile)
        if name not in kept:
            with working:
                if name not in kept:
                    kept[name] = of(profile)
        return kept[name]

    return known
