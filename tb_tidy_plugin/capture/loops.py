"""A recording that the callbacks of a trainer drive."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tb_tidy_plugin.capture.guarded import unless_it_fails
from tb_tidy_plugin.capture.marked_steps import tidy_profile
from tb_tidy_plugin.capture.profiling import NOTHING_RECORDED, TidyProfile


class RecordedLoop:
    """Records one training after the other, each from its beginning; never raises.

    It is created with the callback and begins with the training, possibly in another process.
    """

    def __init__(self, dir_name: str, arguments: dict[str, Any]) -> None:
        self._dir_name = dir_name
        self._arguments = arguments
        self._open = ExitStack()
        self._profile: TidyProfile | None = None

    def begin(self) -> None:
        """Before the first step; ends the recording of a training that broke off."""
        self.end()

        def enter() -> TidyProfile:
            return self._open.enter_context(tidy_profile(self._dir_name, **self._arguments))

        self._profile = unless_it_fails("the training", enter, NOTHING_RECORDED)

    def step(self) -> None:
        """After each step."""
        if self._profile is not None:
            self._profile.step()

    def end(self) -> None:
        """After the last step, however it ended."""
        self._profile = None
        self._open.close()
