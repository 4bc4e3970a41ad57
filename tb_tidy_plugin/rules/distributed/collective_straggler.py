"""One rank that all others wait for.

## What it finds
In a run with recordings of several ranks: a rank that arrives last at the
collectives in nearly every step, and other ranks that arrive as late, such as
all ranks of a slow host.

## Why it is slow
A collective completes only after its last rank has arrived. Every other rank waits, and so does its device: one slow
rank makes the whole job as slow as itself.

## Example
```python
shards = sorted(samples, key=len)
mine = shards[rank * count : (rank + 1) * count]
```

Use instead:
```python
shards = sorted(samples, key=len)
mine = shards[rank::world_size]
```

## How the saving is estimated
Clocks of different machines differ, so they are aligned by the ends of the
collectives, which no rank leaves before the last one has arrived. The others
wait from their own start to that of the last rank. Without that rank they would
still wait for the second to last one. So the saving is the time between these
two if the cause goes. If the work is only redistributed, the others become
slower: with two ranks half of that time remains, with eight an eighth. This is
what the estimate assumes.

## When it stays quiet
Lateness that alternates between ranks, that comes from a few steps only, or
that is within the clocks' error; the warm-up; fewer than three steps;
recordings of one rank.
"""

from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt
from tb_tidy_plugin.profile.ranks.stragglers import Straggler, comparable_steps, straggler_of
from tb_tidy_plugin.words.causes import Cause, Kind

SHOWN_SHARE = 0.1  # work below this share of the lateness do not explain it
SHOWN_RANKS, SHOWN_ENTRIES = 8, 2


class Evidence(msgspec.Struct, frozen=True):
    """Late ranks, and their cost for the others.

    Attributes:
        ranks: all late ones. kind: of the collective.
        lost: waiting time of the others per step. share: that by the step.
        last, steps: number of steps in which they come last, and of all. by_chance: the same number by chance.
        late: after the middle one of the others, in ns.
        more_on: entries of the ledger on which they spend more time than the others, and the difference, largest first.
        error: of the clocks. meetings: number of collectives that align them.
    """

    ranks: tuple[int, ...]
    kind: str
    lost: tt.Nanoseconds
    share: tt.Share
    last: int
    steps: int
    by_chance: float
    late: tt.Nanoseconds
    more_on: tuple[tuple[str, tt.Nanoseconds], ...]
    error: tt.Nanoseconds
    meetings: int

    @property
    def who(self) -> str:
        """The ranks, the first of them by number."""
        names = ", ".join(map(str, self.ranks[:SHOWN_RANKS]))
        more = f" and {len(self.ranks) - SHOWN_RANKS} more" if len(self.ranks) > SHOWN_RANKS else ""
        return f"Rank {names} is" if len(self.ranks) == 1 else f"Ranks {names}{more} are"

    @property
    def chance(self) -> str:
        """The number of steps in which chance makes them last."""
        return f"{self.by_chance:.1f}"

    @property
    def extra(self) -> str:
        """The work on which they spend more time than the others."""
        work = " and ".join(f"{by} more on {_words(entry)}" for entry, by in self.more_on)
        return f"Per step it spends {work}" if work else "Its steps show no work that the others lack"

    @property
    def advice(self) -> str:
        """The place to look at."""
        if not self.more_on:
            return "its host or its device may be slower"
        return f"it spends more time on {_words(self.more_on[0][0])}"


class CollectiveStraggler(tt.RunRule[Evidence]):
    """A rank that comes last step after step."""

    code = "TT1302"
    action = "Give each rank as much work as the others"
    message = "{who} late to `{kind}`: the other ranks wait for {lost} of each step ({share})"
    why = (
        "Last in {last} of {steps} steps (by chance {chance}), and {late} after the median of the others. {extra}. "
        "Clocks are aligned to {error} by the ends of {meetings} collectives"
    )
    fix = "Give each rank as much work as the others, or find what slows this one down: {advice}"
    caveat = "Distributing samples differently changes the batches of each rank."

    min_share = tt.Threshold(0.05, "ranks of a balanced job that shared their cores differed by 3.4 % over eight steps")
    min_steps = tt.Threshold(3, "fewer steps cannot show a pattern")
    min_steadiness = tt.Threshold(
        5, "standard errors; in four steps, chance alone reaches this in less than one run in a hundred"
    )

    def not_applicable(self, run: tt.Run) -> str | None:
        steps, needed = comparable_steps(run), max(self.min_steps, 2)  # one step has no spread
        if steps >= needed:
            return None
        if len(run.steps) >= needed:
            where = f"in only {steps} of them" if steps else "in none of them"
            return (
                f"The ranks share {len(run.steps)} steps besides the warm-up, but recorded the same collectives "
                f"{where}: only these show which rank comes late."
            )
        return (
            f"The ranks share too few steps besides the warm-up: {steps}. Record at least {self.min_steps:.0f}, "
            "the same ones on all ranks, with a `schedule` and `prof.step()`."
        )

    def detect(self, run: tt.Run) -> Iterator[tt.RunMatch[Evidence]]:
        found = straggler_of(run, steadiness=self.min_steadiness)
        if found is None or found.last_in < _clearly_more(found):
            return
        yield tt.RunMatch(
            ranks=found.ranks,
            evidence=_evidence(run, found),
            cost_ns=found.lost_ns,
            saving_ns=min(found.shared_ns, found.lost_ns),
            matches=found.last_in,
            steps=found.steps,
            place=found.operation.site,
            confidence="high" if found.last_in == found.steps else "medium",
        )


def _evidence(run: tt.Run, found: Straggler) -> Evidence:
    entries = [entry for entry, by_ns in found.extra_ns.items() if by_ns >= SHOWN_SHARE * found.lost_ns]
    return Evidence(
        ranks=found.ranks,
        kind=found.operation.kind,
        lost=tt.Nanoseconds(found.lost_ns),
        share=tt.Share(min(found.lost_ns / run.step_ns, 1.0) if run.step_ns else 0),
        last=found.last_in,
        steps=found.steps,
        by_chance=_chance(found) * found.steps,
        late=tt.Nanoseconds(found.late_ns),
        more_on=tuple((entry, tt.Nanoseconds(found.extra_ns[entry])) for entry in entries[:SHOWN_ENTRIES]),
        error=tt.Nanoseconds(run.clock_error_ns),
        meetings=len(run.meetings),
    )


def _chance(found: Straggler) -> float:
    return len(found.ranks) / (len(found.ranks) + found.others)


def _clearly_more(found: Straggler) -> float:
    """Half way between the result of chance and always."""
    return found.steps * (1 + _chance(found)) / 2


def _words(entry: str) -> str:
    cause, _, kind = entry.partition(":")
    titles = (each.title for each in Kind if each.word == kind)
    doing = (each.doing for each in Cause if each.word == cause and each.doing)
    return next(titles, None) or next(doing, cause)
