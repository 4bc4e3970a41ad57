"""Device idle because the host launches too slowly.

## What it finds
A GPU that spends a good part of the step in gaps between its kernels: whenever one ends, the host has not launched the
next one yet. The time is the ledger's entry "The host launches more slowly than the device works"; all devices of a
process count as one.

## Why it is slow
Each operator costs the host a few microseconds of Python and dispatch. If its kernel takes less than that, the device
finishes first and waits. The step then takes as long as the Python code, however fast the device is.

## Example
```python
for x, y in loader:
    loss = loss_fn(model(x), y)
    loss.backward()
```

Use instead:
```python
model = torch.compile(model, mode="reduce-overhead")
for x, y in loader:
    loss = loss_fn(model(x), y)
    loss.backward()
```

## How the saving is estimated
At best the gaps close and the step takes the sum of its device work. Recording itself slows the host and opens gaps
that the job does not have: by a factor of 1 to 2.7 with Python stacks and 1 to 2.3 without, on small training steps on
a CPU. The gaps that recording probably opened are subtracted, and a finding that recording alone could explain has low
confidence.

## When it stays quiet
Less than 15 % of the step, or of the steps after the warm-up. Time with another cause in the ledger: loading,
compilation, garbage collection, communication, a wait for the device, a kernel that was launched in time, the way of a
launch to the device, more than 500 µs in which no thread launches anything. Time that mostly lies before the first or
after the last work of the device.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.host.critical import clipped_to_steps, per_step
from tb_tidy_plugin.profile.serving.iterations import iterations_of
from tb_tidy_plugin.rules.launch.gpu_idle_host_bound.idle import HostBoundIdle, host_bound_idle

RECORDER = {True: (1.7, 2.7), False: (1.4, 2.3)}
"""Factors by which recording slows the host, likely and at most, with and without Python stacks."""

_BACKWARD, ANNOTATIONS = "autograd::engine::", ("Optimizer.", "## ", "enumerate(DataLoader)#")
EVIDENCE, _NAMED = 200, 3  # longest gaps whose events are shown; places in the text
_LEAST_NAMED = 0.01  # of the time, for a place in the text beside the first one
NO_LAUNCH = -1
_BETWEEN = 0.5
"""Least part of the time between two pieces of device work: before the first and after the last, no launch is late."""


class Evidence(msgspec.Struct, frozen=True):
    """The idle time.

    Attributes:
        idle: per step. share: that by the step.
        places: where most of it is, each with its part.
        gaps: their number per step. kernel: the median kernel's time.
        shallow: the part of the launches that find at most one other unfinished piece of work.
        has_stacks: True if Python stacks were recorded, which slows the host further.
        beyond: the part of the idle time that recording cannot explain, however slow it is.
        recorded: the part of the idle time that recording likely causes.
        serves: True if the steps are batches of an inference server.
    """

    idle: tt.Nanoseconds
    share: tt.Share
    places: tuple[tuple[str, tt.Share], ...]
    gaps: int
    kernel: tt.Nanoseconds
    shallow: tt.Share
    has_stacks: bool
    beyond: tt.Share
    recorded: tt.Share
    serves: bool = False

    @property
    def how(self) -> str:
        """The advice on graphs, for a server or a job."""
        if not self.serves:
            return '`torch.compile` with `mode="reduce-overhead"`, CUDA graphs'
        return "the server's CUDA graphs (vLLM without `--enforce-eager`, SGLang without `--disable-cuda-graph`)"

    @property
    def where(self) -> str:
        return ", ".join(f"{place} {share}" for place, share in self.places)

    @property
    def recorder(self) -> str:
        """The effect of recording on the host."""
        what = "Recording Python stacks" if self.has_stacks else "Recording"
        most = RECORDER[self.has_stacks][1]
        return f"{what} slows the host up to {most} times, which leaves {self.beyond} of this time"


class GpuIdleHostBound(tt.Rule[Evidence]):
    """Device idle because the host launches too slowly."""

    code = "TT901"
    needs = frozenset({"device"})
    reads_ledger = True
    action = "Launch fewer and larger kernels"
    message = (
        "For {share} of the step, {idle}, the device waits for the host to launch its next work, most of it for {where}"
    )
    why = (
        "Only launch overhead explains these {gaps} gaps per step. The median kernel takes {kernel}, and {shallow} "
        "of the launches find at most one other piece of work queued. {recorder}. Reported for {min_share} of the step "
        "or more"
    )
    fix = "Launch less: {how}, larger batches or fused operators"
    caveat = "`reduce-overhead` captures CUDA graphs, which need constant shapes and their own memory."

    min_share = tt.Threshold(
        0.15, "there are always small gaps between kernels; below this share they do not limit the step"
    )

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        idle = host_bound_idle(profile)
        if idle is None or idle.of_usual_steps < self.min_share or idle.between < _BETWEEN:
            return
        if places := idle.by_place(profile, _is_place):
            yield self._match(profile, idle, places)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Scale(match.events, factor=match.evidence.recorded, low=0.0, high=1.0)

    def not_applicable(self, profile: tt.Profile) -> str | None:
        known = (profile.launch != NO_LAUNCH).any()
        return None if known else "The profile does not show which call launched which device work."

    def _match(
        self, profile: tt.Profile, idle: HostBoundIdle, places: list[tuple[int, int, int]]
    ) -> tt.Match[Evidence]:
        time = idle.time
        total_ns, per_step_ns = time.total_ns, per_step(profile, clipped_to_steps(profile, time))
        share = profile.share_of_time(per_step_ns)
        has_stacks = "stacks" in profile.recorded
        likely, most = (idle.beyond_ns(slowdown) / total_ns for slowdown in RECORDER[has_stacks])
        own = [longest for place, _, longest in places if _frame(profile.name(place))]
        return tt.Match(
            anchor=own[0] if own else places[0][2],
            events=tuple(idle.longest(EVIDENCE)),
            evidence=Evidence(
                idle=tt.Nanoseconds(per_step_ns),
                share=tt.Share(share),
                places=_largest(profile, places, total_ns),
                gaps=round(len(idle.in_gap_ns) / max(len(profile.steps.items), 1)),
                kernel=tt.Nanoseconds(idle.median_kernel_ns),
                shallow=tt.Share(idle.shallow),
                has_stacks=has_stacks,
                beyond=tt.Share(most),
                recorded=tt.Share(1 - likely),
                serves=any(each.batch.phase != "diffusion" for each in iterations_of(profile)),
            ),
            confidence=self._confidence(has_stacks, likely * share, most * share),
            lost=tuple(zip(time.starts.tolist(), time.ends.tolist(), strict=True)),
        )

    def _confidence(self, has_stacks: bool, likely: float, at_least: float) -> tt.Confidence:
        """Confidence by the remaining part of the step if recording slowed the host as usual, and at most."""
        if at_least >= self.min_share:
            return "medium" if has_stacks else "high"
        return "medium" if likely >= self.min_share and not has_stacks else "low"


def _is_place(name: str) -> bool:
    """True if a reader would look there: a function of the user's own, an annotation, the backward pass."""
    return _frame(name) is not None or name.startswith((*ANNOTATIONS, _BACKWARD))


def _frame(name: str) -> str | None:
    frame = tt.parse_frame(name)
    return f"`{frame.function}` ({frame.file}:{frame.line})" if frame and frame.own_code else None


def _largest(
    profile: tt.Profile, places: list[tuple[int, int, int]], total_ns: int
) -> tuple[tuple[str, tt.Share], ...]:
    """The places with most of the time; the whole backward pass is one, whatever its operators."""
    shares: dict[str, int] = {}
    for place, time_ns, _ in places:
        name = profile.name(place)
        text = _frame(name) or ("the backward pass" if name.startswith(_BACKWARD) else f"`{name}`")
        shares[text] = shares.get(text, 0) + time_ns
    largest = sorted(shares.items(), key=lambda entry: -entry[1])[:_NAMED]
    telling = [each for at, each in enumerate(largest) if not at or each[1] >= _LEAST_NAMED * total_ns]
    return tuple((text, tt.Share(time_ns / total_ns)) for text, time_ns in telling)
