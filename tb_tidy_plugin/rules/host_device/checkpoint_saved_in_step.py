"""Checkpoint written while the step waits.

## What it finds
`torch.save` or `torch.distributed.checkpoint.save` in at least half of the recorded steps, by their frames.

## Why it is slow
Saving copies each tensor to the host, serialises it and writes it to disk. Meanwhile the training thread launches
nothing, so the device idles.

## Example
```python
for batch in loader:
    train_step(batch)
    torch.save(model.state_dict(), path)
```

Use instead:
```python
for number, batch in enumerate(loader):
    train_step(batch)
    if number % 1000 == 0:
        pending = torch.distributed.checkpoint.async_save(model.state_dict(), checkpoint_id=path)
```

## How the saving is estimated
Writing overlaps with the next steps. The copy to the host remains: a tenth of the time, since disks write at about 1
GB/s and copies run at 10 GB/s or more.

## When it stays quiet
Checkpoints in fewer than half of the steps, and recordings of one step. `async_save`, which returns after the copy.
Small states that take less than 1 % of the steps. Recordings without marked steps.
"""

from collections.abc import Iterator

import tb_tidy_plugin.rulekit as tt

_COPY = 0.1  # of the time, which stays in line


class CheckpointSavedInStep(tt.LibraryCallRule):
    """Checkpoint written while the step waits."""

    code = "TT250"
    frames = r"^torch/(?:serialization|distributed/checkpoint/state_dict_saver)\.py\(\d+\): save$"
    action = "Save checkpoints less often, and in the background"
    message = "Saving checkpoints in the step takes {time} per step"
    why = (
        "`save` runs {count} times in {steps} steps and blocks the training thread. Reported if half of the steps save"
    )
    fix = "Save every few hundred steps, and write in the background with `torch.distributed.checkpoint.async_save`"
    caveat = "A background write needs memory for a copy of the state, and a crash loses the steps since the last save."

    min_share = tt.Threshold(0.01, "below this share the state is small and a change is not worth it")

    def remedy(self, profile: tt.Profile, match: tt.Match[tt.LibraryCalls]) -> Iterator[tt.Edit]:
        yield tt.Overlap(match.events, left=_COPY)
