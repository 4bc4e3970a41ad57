"""RunRule: one anti-pattern that only several ranks of a run show together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Generic

import msgspec

from tb_tidy_plugin.profile.ranks.run import Run
from tb_tidy_plugin.profile.ranks.summary import CollectiveSite
from tb_tidy_plugin.rulekit.evidence import E
from tb_tidy_plugin.rulekit.rule import AnyRule
from tb_tidy_plugin.words.vocabulary import Confidence


class RunMatch(msgspec.Struct, Generic[E], frozen=True):
    """One occurrence of a pattern among the ranks of a run.

    Attributes:
        ranks: the ranks that cause it.
        evidence: facts for the rule's texts.
        cost_ns: cost of the pattern for the run per step.
        saving_ns: expected saving of its fix for the run per step; at most `cost_ns`.
        matches: number of occurrences in all steps together.
        steps: number of examined steps.
        place: its place in the source, None if the recordings do not show it.
        subject, confidence: as in `Match`.
    """

    ranks: tuple[int, ...]
    evidence: E
    cost_ns: int
    saving_ns: int
    matches: int
    steps: int
    place: CollectiveSite | None = None
    subject: str = ""
    confidence: Confidence = "high"


class RunRule(AnyRule[E]):
    """An anti-pattern that only several ranks together show; `needs` applies to each of them."""

    @abstractmethod
    def detect(self, run: Run) -> Iterator[RunMatch[E]]:
        """All occurrences in `run`, whose ranks all hold everything in `needs`."""

    def not_applicable(self, run: Run) -> str | None:
        """The reason if the rule makes no sense for this run although it holds all `needs`; else None."""
        return None
