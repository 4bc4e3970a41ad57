"""Recording in one line of a job that marks its steps, or what `tb-tidy verify` does with such a job instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tb_tidy_plugin.capture.handler import CaptureOptions
from tb_tidy_plugin.capture.profiling import Cycle, Output, TidyProfile


@contextmanager
def tidy_profile(  # noqa: PLR0913 - each can be left out
    dir_name: str,
    *,
    wait: int = 5,
    warmup: int = 2,
    active: int = 5,
    repeat: int = 1,
    steps: int | None = None,
    worker_name: str | None = None,
    use_gzip: bool = True,
    sources: bool = True,
    tensors: bool = False,
    **profiler_arguments: Any,
) -> Iterator[TidyProfile]:
    """Records a few steps of a job and times the steps around them; under `tb-tidy verify` only times them.

    Args:
        dir_name, worker_name, use_gzip, sources, tensors: as in `tidy_trace_handler`.
        wait, warmup, active, repeat: as in `torch.profiler.schedule`. Steps of `wait` and those after the last cycle
            are timed and not recorded.
        steps: number of steps of a short job: `wait`, `active` and `warmup` are shortened to fit.
        profiler_arguments: for `torch.profiler.profile`; shapes and stacks are recorded by default.

    Example::

        with tidy_profile("runs/baseline") as profiler:
            for batch in loader:
                train_step(batch)
                profiler.step()
    """
    cycle = Cycle(wait, warmup, active, repeat)
    output = Output(worker_name, use_gzip, CaptureOptions(sources=sources, tensors=tensors))
    from tb_tidy_plugin.capture.verified import VerifiedProfile, is_verified

    kind = VerifiedProfile if is_verified() else TidyProfile
    profile = kind(dir_name, cycle if steps is None else cycle.within(steps), output, profiler_arguments)
    profile.start()
    try:
        yield profile
    finally:
        profile.stop()
