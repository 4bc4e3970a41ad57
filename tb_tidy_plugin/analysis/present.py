"""Recorded ranks of a job, and contradictions between their recordings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tb_tidy_plugin.profile.ranks.summary import RankSummary

MOST_RANGES = 12


def world_size_of(summaries: Sequence[RankSummary]) -> int | None:
    """The job's number of ranks; None if no recording states it, or if they disagree."""
    sizes = _sizes(summaries)
    return next(iter(sizes)) if len(sizes) == 1 else None


def missing_of(summaries: Sequence[RankSummary]) -> int:
    """The number of the job's ranks that were not recorded; 0 if unknown."""
    world = world_size_of(summaries)
    return 0 if world is None else world - len({each.rank for each in summaries if 0 <= each.rank < world})


def present_text(summaries: Sequence[RankSummary]) -> str:
    """A sentence on which ranks are present and which are missing."""
    ranks, world = sorted({each.rank for each in summaries}), world_size_of(summaries)
    here = f"{_ranks_are(ranks)} here"
    if world is None:
        return f"{here[0].upper()}{here[1:]}; how many there should be is not known."
    gaps = list(_gaps(ranks, world))
    if not gaps:
        return f"World size {world}: all ranks are here."
    one = missing_of(summaries) == 1
    return f"World size {world}: {here}, {_listed(gaps)} {'is' if one else 'are'} missing."


def doubts_about(summaries: Sequence[RankSummary]) -> list[str]:
    """Reasons to doubt that these are the ranks of one job, recorded together."""
    return [*_disagreements(summaries), *_beyond(summaries), *_twice(summaries)]


def ranges_text(ranks: Sequence[int]) -> str:
    """`0–3, 7`."""
    return _listed(list(_ranges(sorted(set(ranks)))))


def _sizes(summaries: Sequence[RankSummary]) -> dict[int, list[int]]:
    """The ranks that state each world size."""
    sizes: dict[int, list[int]] = {}
    for each in summaries:
        if each.world_size is not None and each.world_size > 0:
            sizes.setdefault(each.world_size, []).append(each.rank)
    return sizes


def _disagreements(summaries: Sequence[RankSummary]) -> Iterator[str]:
    sizes = _sizes(summaries)
    if len(sizes) > 1:
        said = ", ".join(f"{size} by {_named(ranks)}" for size, ranks in sorted(sizes.items()))
        yield (
            f"The recordings disagree about the world size: {said}. They are from different jobs; "
            "give each job its own folder."
        )


def _beyond(summaries: Sequence[RankSummary]) -> Iterator[str]:
    world = world_size_of(summaries)
    beyond = [each.rank for each in summaries if world is not None and not 0 <= each.rank < world]
    if beyond:
        yield f"A job of world size {world} has no {_named(beyond)}: another job may have been recorded here, too."


def _twice(summaries: Sequence[RankSummary]) -> Iterator[str]:
    workers: dict[int, list[str]] = {}
    for each in summaries:
        workers[each.rank] = [*workers.get(each.rank, []), *({each.worker} - set(workers.get(each.rank, [])))]
    twice = sorted(rank for rank, names in workers.items() if len(names) > 1)
    if twice:
        names = " and ".join(f"`{name}`" for name in workers[twice[0]][:2])
        more = f", rank {twice[0]} by {names}" if len(twice) > 1 else f", {names}"
        yield (
            f"{_ranks_of(twice)} recorded by more than one worker{more}: two jobs may lie in this folder. "
            "Give each job a folder of its own."
        )


def _ranks_of(ranks: Sequence[int]) -> str:
    return f"Rank {ranks[0]} was" if len(ranks) == 1 else f"Ranks {ranges_text(ranks)} were"


def _ranks_are(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]} is" if len(ranks) == 1 else f"ranks {ranges_text(ranks)} are"


def _named(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(set(ranks)) == 1 else f"ranks {ranges_text(ranks)}"


def _ranges(ranks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last rank of each stretch without a gap."""
    ends = [at for at, (one, other) in enumerate(pairwise(ranks)) if other != one + 1] + [len(ranks) - 1]
    first = 0
    for last in ends if ranks else ():
        yield ranks[first], ranks[last]
        first = last + 1


def _gaps(ranks: Sequence[int], world: int) -> Iterator[tuple[int, int]]:
    """First and last of each stretch missing below `world`; counts no ranks, as a damaged trace may state any size."""
    inside = [rank for rank in ranks if 0 <= rank < world]
    for before, after in pairwise([-1, *inside, world]):
        if after > before + 1:
            yield before + 1, after - 1


def _listed(ranges: Sequence[tuple[int, int]]) -> str:
    dashes = {0: "", 1: ", "}
    texts = [
        f"{first}{dashes.get(last - first, '–')}{last if last > first else ''}" for first, last in ranges[:MOST_RANGES]
    ]
    return ", ".join(texts) + (" and more" if len(ranges) > MOST_RANGES else "")
