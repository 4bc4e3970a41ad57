"""Copy to the GPU from memory that is not pinned.

## What it finds
Copies from ordinary (pageable) host memory to the GPU in every step, for example of batches.

## Why it is slow
The GPU can read only memory that cannot be moved. The driver first copies pageable memory piece by piece into a pinned
buffer, which is slower than the bus, and blocks the Python thread until the end, even with `non_blocking=True`.
Meanwhile the thread launches nothing, and the GPU runs out of work.

## Example
```python
loader = DataLoader(dataset, num_workers=4)
for batch in loader:
    batch = batch.to("cuda")
```

Use instead:
```python
loader = DataLoader(dataset, num_workers=4, pin_memory=True)
for batch in loader:
    batch = batch.to("cuda", non_blocking=True)
```

## How the saving is estimated
The estimate counts the time of the copy during which no kernel runs, and the time of the call during which no device
runs. The time that the same bytes take from pinned memory remains, at the speed of other copies in the recording or at
the device's usual speed. At most all of it goes, if the next batch is copied while the current step runs.

## When it stays quiet
Copies of less than 64 KiB, and copies hidden behind kernels. Copies that do not repeat in another step, such as those
of loading a model. Pinned memory. Recordings on ROCm, which do not show the source of a copy, and recordings without
steps.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.fixes.change import SAME_RESULTS, Change, Spot, Unfixable
from tb_tidy_plugin.profile.host.callers import recurring
from tb_tidy_plugin.profile.host.transfers import copied_input, copying_operator, exposed_copies, pinned_bytes_per_ns

PAGEABLE = r"(?:HtoD|HostToDevice).{0,100}\(Pageable"
NO_STEPS = {"whole_trace", "none"}


class Evidence(msgspec.Struct, frozen=True):
    """A copy, and the rate of pinned memory.

    Attributes:
        operator: the copying one. size, shape, dtype: of the copied tensor; no shape if unknown.
        time: time that the step waits. host: time that the Python thread waits.
        bytes_per_ns: of this copy; None if it has no duration. pinned_bytes_per_ns: of pinned memory.
        is_measured: True if the latter was measured on other copies of the profile.
        remains: the part of all copies' cost that pinned memory leaves.
    """

    operator: str
    size: tt.Bytes
    shape: tt.Sizes
    dtype: str
    time: tt.Nanoseconds
    host: tt.Nanoseconds
    bytes_per_ns: float | None
    pinned_bytes_per_ns: float
    is_measured: bool
    remains: float

    @property
    def speed(self) -> str:
        return "an unknown speed" if self.bytes_per_ns is None else f"{self.bytes_per_ns:.1f} GB/s"

    @property
    def pinned(self) -> str:
        return f"{self.pinned_bytes_per_ns:.1f} GB/s"

    @property
    def source(self) -> str:
        """The source of the rate of pinned memory."""
        return "as other copies here do" if self.is_measured else "typical of this device"


class PageableH2dCopy(tt.Rule[Evidence]):
    """Copy to the GPU from memory that is not pinned."""

    code = "TT203"
    needs = frozenset({"device"})
    # A tensor created where it is used is not copied, from pageable memory or any other.
    yields_to = ("tensor-created-on-cpu-then-moved",)
    action = "Pin the memory that `{operator}` copies from"
    message = "`{operator}` copies {size} to the GPU from pageable memory, and the step waits {time} for it"
    why = (
        "The copy runs at {speed}, while pinned memory reaches {pinned} ({source}), and blocks the Python thread for "
        "{host}. Reported for {min_bytes} or more if it happens in every step"
    )
    fix = "Pin the memory (`pin_memory=True` of the `DataLoader`) and copy with `non_blocking=True`"
    caveat = (
        "Pinned memory cannot be swapped out. With `non_blocking=True` the source must stay unchanged until the copy "
        "is done. Calling `tensor.pin_memory()` right before the copy only moves the cost: let the loader pin."
    )

    min_bytes = tt.Threshold(65_536, "smaller copies take as long as their launch from either kind of memory")

    def not_applicable(self, profile: tt.Profile) -> str | None:
        if profile.platform == "rocm":
            return "ROCm's traces do not say whether the memory of a copy was pinned."
        if profile.steps.basis in NO_STEPS:
            return (
                "Without steps, copies of batches look like those of loading a model; record with a `schedule` and "
                "call `prof.step()` after each step."
            )
        return None

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        table = profile.table
        rows = profile.matching(PAGEABLE, tt.Category.COPY)
        rows = rows[(table.bytes[rows] >= self.min_bytes) & (profile.launched_by[rows] >= 0)]
        causes = profile.launched_by[rows]
        again = set(recurring(profile, causes).tolist())
        copies = rows[[cause in again for cause in causes.tolist()]]
        exposed = exposed_copies(profile, copies)
        speed, is_measured = pinned_bytes_per_ns(profile)
        lost_ns, needed_ns = sum(time.total_ns for time in exposed), int(table.bytes[copies].sum()) / speed
        for row, time in zip(copies.tolist(), exposed, strict=True):
            if time.total_ns:
                cause = int(profile.launched_by[row])
                operator = copying_operator(profile, cause) or cause
                size, time_ns = int(table.bytes[row]), profile.duration_ns(row)
                shape, dtype = copied_input(profile, operator)
                evidence = Evidence(
                    operator=profile.name(operator),
                    size=tt.Bytes(size),
                    shape=tt.Sizes(shape if shape != (0,) else ()),
                    dtype=tt.TORCH_DTYPES.get(dtype, dtype),
                    time=tt.Nanoseconds(time.total_ns),
                    host=tt.Nanoseconds(profile.duration_ns(operator)),
                    bytes_per_ns=size / time_ns if time_ns else None,
                    pinned_bytes_per_ns=speed,
                    is_measured=is_measured,
                    remains=min(needed_ns / lost_ns, 1.0),
                )
                yield tt.Match(operator, (operator,), evidence, lost=time.spans)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, factor=match.evidence.remains, low=0.0, high=1.0)

    def benchmark(self, evidence: Evidence) -> tt.Benchmark | None:
        dtype, shape = tt.known_dtype(evidence.dtype), tuple(evidence.shape)
        if not dtype or not shape or not tt.fitting(1, 4 * evidence.size):
            return None
        made = f"torch.zeros({shape}, dtype=torch.{dtype}"
        return tt.Benchmark(
            before="result = pageable.to(device)\ntorch.cuda.synchronize()",
            after="result = pinned.to(device, non_blocking=True)\ntorch.cuda.synchronize()",
            setup=f"import torch\npageable = {made})\npinned = {made}, pin_memory=True)",
            devices=("cuda",), of_events=True,
        )  # fmt: skip

    def made_by(self, evidence: Evidence) -> tt.Made:
        return tt.made.loader("dataloader_pin_memory=True")

    def fixer(self, code: tt.Code, spot: Spot, evidence: Evidence) -> Change:
        copies = [call for method in ("to", "cuda") for call in code.methods_on(spot.lines, method)]
        if not copies:
            raise Unfixable("The lines do not call `to` or `cuda`.")
        loader = code.constructor(code.iterated_on(spot.lines), self.made_by(evidence))
        splices = code.with_arguments(loader, {"pin_memory": "True"}, instead_of="False")
        for call in copies:
            splices += code.with_arguments(call, {"non_blocking": "True"}, instead_of="False")
        return Change(tuple(splices), SAME_RESULTS, "The copied tensors come from this `DataLoader`.")
