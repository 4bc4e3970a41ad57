"""Device waits for a server's scheduler or sampler between iterations.

## What it finds
Python functions of the scheduler or the sampler that run on the engine's thread between two iterations, while no kernel
runs.

## Why it is slow
The next batch can be launched only after the scheduler has assembled it, and the scheduler waits for the tokens of the
previous batch. A decode iteration takes a few milliseconds, so one millisecond of Python between two iterations is a
large part.

## Example
```python
engine = LLM(model, async_scheduling=False)
engine.generate(prompts)  # schedules a batch when the last one has ended
```

Use instead:
```python
engine = LLM(model, async_scheduling=True)
engine.generate(prompts)
```

## How the saving is estimated
At best the next batch is scheduled while the device runs the current one, and all of the waiting goes; most likely half
of it goes, at worst nothing.

## When it stays quiet
Functions that run while the device works. Functions inside an iteration's mark, and the loop around all iterations.
Recordings of one iteration, without Python functions, or in which the device waits only a small part of the time.
"""

import tb_tidy_plugin.rulekit as tt

_PARTS = {
    "scheduler": r"(?:^|/)(?:scheduler\w*|schedule_batch|schedule_policy|kv_cache_manager|block_manager)\.py\(|"
    r"/sched/\w+\.py\(",
    "sampler": r"(?:^|/)(?:sampler|sampling\w*|rejection_sampler)\.py\(|/(?:sample|sampling)/(?:\w+/){0,4}\w+\.py\(",
}
"""Files of the scheduler's and the sampler's functions in vLLM and SGLang."""


class HostWorkBetweenIterations(tt.EngineFunctionRule):
    """Scheduling and sampling that the device waits for."""

    code = "TT1509"
    parts = _PARTS
    inside = False
    action = "Schedule the next batch while the device works"
    message = "Between iterations the device waits {time} for the {part}: `{function}`, {how_often}"
    why = "All functions of the {part} delay it for {share} of the time. Reported above {min_waiting}"
    fix = (
        "Let the server schedule ahead (vLLM: `--async-scheduling`; SGLang: without `--disable-overlap-schedule`), "
        "and keep the sampled tokens on the device"
    )
    left = (0.5, 0.0, 1.0)

    min_waiting = tt.Threshold(0.03, "of the time; shorter pauses between two batches are normal")
