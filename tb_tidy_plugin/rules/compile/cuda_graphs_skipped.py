"""CUDA graphs skipped in a compiled function.

## What it finds
Functions compiled with `mode="reduce-overhead"` or `"max-autotune"` that launch their kernels one by one, because
Inductor found a reason not to use CUDA graphs. A trace does not show this; the reason is in the capture's side file.

## Why it is slow
A graph needs one launch for all of its kernels. Without it, the host runs the generated code and launches each kernel,
at 5 to 10 µs each, and the device waits if its kernels are shorter than that. Inductor only writes the reason to a log
and goes on.

## Example
```python
@torch.compile(mode="reduce-overhead")
def decode(x, cache):
    cache[:, position] = x @ w  # writes to an input: no CUDA graphs
    return attend(x, cache)
```

Use instead:
```python
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(shape))
        torch._dynamo.mark_static_address(self.cache)

    def forward(self, x):
        self.cache[:, position] = x @ w
        return attend(x, self.cache)
```

## How the saving is estimated
The estimate counts the time in which the device has nothing to do while the function launches kernels. At best one
launch remains; two are expected, since inputs may have to be copied. At most half of the time remains.

## When it stays quiet
Recordings without a side file of `tb_tidy_plugin.capture`, which must be imported before the function is compiled.
Functions compiled without CUDA graphs. Calls of fewer than 8 kernels. Calls in which the device is always busy.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.compiled.compilations import skip_reasons
from tb_tidy_plugin.profile.compiled.graphs import compiled_graphs_of, region_id
from tb_tidy_plugin.profile.events.calls import rows_of

_CURES: Mapping[str, str] = {
    r"mutat": (
        "Return the new value instead of writing to an input, or write to a buffer marked with "
        "`torch._dynamo.mark_static_address`"
    ),
    r"cpu device|multiple devices": "Move all tensors of the function to the device before it is called",
    r"dynamic|symbolic|shape": "Pad inputs to a few sizes, each of which gets its own graph",
    r"re-record": "Use the same tensors as inputs in each call, or copy into them",
    r"data dependent|unbacked|nonzero|item|scalar": "Move code that depends on values of tensors out of the function",
    r"override|annotation": "Remove the annotation that turns CUDA graphs off",
}
OTHERWISE = "Move the cause that Inductor names out of the function"


class Evidence(msgspec.Struct, frozen=True):
    """A function without CUDA graphs.

    Attributes:
        function: its name, empty if unknown. reason: Inductor's.
        file, line: the line that Inductor names for it; an empty file without one.
        launches: kernels of a call. idle: idle time of the device in a call.
    """

    function: str
    reason: str
    file: str
    line: int
    launches: int
    idle: tt.Nanoseconds

    @property
    def what(self) -> str:
        """The function in a sentence."""
        return f"`{self.function}`" if self.function else "a compiled function"

    @property
    def where(self) -> str:
        """The line that Inductor names."""
        return f" ({self.file}:{self.line})" if self.file else ""

    @property
    def cure(self) -> str:
        """The change that removes the reason."""
        return next((cure for pattern, cure in _CURES.items() if re.search(pattern, self.reason)), OTHERWISE)


class CudaGraphsSkipped(tt.Rule[Evidence]):
    """CUDA graphs skipped in a compiled function."""

    code = "TT1005"
    needs = frozenset({"device"})
    action = "Remove what keeps {what} from using CUDA graphs"
    message = "{what} runs without CUDA graphs: {launches} launches per call, with the device idle for {idle} of it"
    why = "Inductor's reason: {reason}{where}. Reported for {min_launches} launches per call or more"
    fix = "{cure}"
    caveat = "CUDA graphs need constant shapes and keep their own memory."

    min_launches = tt.Threshold(8, "per call; inputs are copied for a graph, so fewer launches gain little")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        if not (skips := skip_reasons(profile)):
            return
        code = profile.metadata.captured.compiled
        functions = {region.id: region.function for region in (code.regions if code else ())}
        for call in compiled_graphs_of(profile).calls:
            skip = skips.get(region_id(profile, call.region))
            if skip is None or not call.key:
                continue
            launches = len(profile.device_activity_of(call.row))
            idle = profile.covered(rows_of([call.row])).minus(profile.device_busy)
            if launches >= self.min_launches and idle.total_ns:
                evidence = Evidence(
                    function=functions.get(skip.id, ""),
                    reason=skip.reason,
                    file=skip.file,
                    line=skip.line,
                    launches=launches,
                    idle=tt.Nanoseconds(idle.total_ns),
                )
                yield tt.Match(call.row, (call.row,), evidence, skip.id, lost=idle.spans)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        launches = match.evidence.launches
        yield tt.Scale(match.events, factor=2 / launches, low=1 / launches, high=0.5)
