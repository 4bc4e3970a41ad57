"""Duration of a step if neither the marks on the host nor the recording itself can be trusted."""

from __future__ import annotations

import msgspec
import numpy as np

from tb_tidy_plugin.profile.steps.bounds import DeviceWork, StepSpan
from tb_tidy_plugin.profile.steps.steps import UNMARKED, ProfileSteps, median_ns_of
from tb_tidy_plugin.trace.columns import ABSENT

LEAST_BEHIND = 0.05
"""Least part of a step by which devices must be late after the last step to count as falling behind."""


class Pace(msgspec.Struct, frozen=True):
    """The duration of a step.

    Attributes:
        recorded_ns: the median step with the device work that it launches; None without steps.
        mean_ns: the average of the same.
        true_ns: a step without the profiler; None if that is unknown, or was timed on a host that ran ahead.
        behind_ns: extra time per step that devices need beyond their host, which then only runs ahead; else 0.
        done_ns: when the last step has ended and all work that the steps launched is done; 0 without steps.
    """

    recorded_ns: int | None
    mean_ns: int | None
    true_ns: int | None
    behind_ns: int
    done_ns: int

    @property
    def step_ns(self) -> int | None:
        """The step that savings refer to: the recorded one, or the true one if that is known and shorter."""
        return min(self.recorded_ns, self.true_ns) if self.recorded_ns and self.true_ns else self.recorded_ns

    @property
    def stretch(self) -> float:
        """Factor by which recording lengthens a step, at least 1; 1 if unknown."""
        return max(self.recorded_ns / self.true_ns, 1.0) if self.recorded_ns and self.true_ns else 1.0


def pace_of(steps: ProfileSteps, bounds: StepSpan, work: DeviceWork, true_ns: int | None) -> Pace:
    """The pace of `steps`; devices fall behind by their extra lateness after the last step over the first.

    `true_ns` is a step without the profiler, None if unknown.
    """
    if steps.median_ns is None:
        return Pace(None, None, true_ns, 0, 0)
    # Costs count per marked step, or for the whole trace, but not per repeating unit.
    whole = [bounds.window[1] - bounds.window[0]]
    lengths = whole if steps.basis in UNMARKED else np.diff(bounds.bounds).tolist()
    median_ns, mean_ns = median_ns_of(lengths), sum(lengths) // len(lengths)
    end_ns = int(steps.ends.max())
    of_steps = steps.index_of(work.launched_ns) != ABSENT
    if not of_steps.any():
        return Pace(median_ns, mean_ns, true_ns, 0, end_ns)
    first_ns, last_ns = int(work.starts[of_steps].min()), int(work.ends[of_steps].max())
    late_ns = (last_ns - end_ns) - max(first_ns - int(steps.starts.min()), 0)
    behind_ns = late_ns // len(steps.items)
    if behind_ns <= LEAST_BEHIND * steps.median_ns:
        return Pace(median_ns, mean_ns, true_ns, 0, max(last_ns, end_ns))
    return Pace(median_ns, mean_ns, None, behind_ns, last_ns)
