"""RunRule: one anti-pattern that only several ranks of a run show together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Generic

import msgspec

from tb_tidy_plugin.profile.rank_summary import CollectiveSite
from tb_tidy_plugin.profile.run import Run
from tb_tidy_plugin.rulekit.evidence import E
from tb_tidy_plugin.rulekit.rule import AnyRule
from tb_tidy_plugin.vocabulary import Confidence


class RunMatch(msgspec.Struct, Generic[E], frozen=True):
    """One occurrence of a pattern among the ranks of a run.

    Attributes:
        ranks: the ranks whose doing it is.
        evidence: what the rule's texts are made from.
        cost_ns: what the pattern costs the run per step.
        saving_ns: what fixing it is expected to save the run per step; at most `cost_ns`.
        matches: how often it was seen in all steps together.
        steps: in how many steps was looked for it.
        place: where in the source, None where the recordings do not tell.
        subject, confidence: as those of `Match`.
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
    """An anti-pattern that shows only where several ranks are looked at together; `needs` is asked of each of them."""

    @abstractmethod
    def detect(self, run: Run) -> Iterator[RunMatch[E]]:
        """All occurrences in `run`, whose ranks all hold everything in `needs`."""

    def not_applicable(self, run: Run) -> str | None:
        """Why the question makes no sense for this run although it holds all `needs`; None where it does."""
        return None
