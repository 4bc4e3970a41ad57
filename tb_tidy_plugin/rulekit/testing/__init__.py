"""Helpers for tests of rules: profiles drawn as text, and a rule's answers to them. Needs only this package."""

from tb_tidy_plugin.rulekit.testing.answers import findings, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rulekit.testing.drawn import A100, MI300, V100, Gpu, draw, row_of

__all__ = [
    "A100",
    "MI300",
    "V100",
    "Gpu",
    "draw",
    "findings",
    "matches_of",
    "reason_not_checked",
    "row_of",
    "saving_ns",
]
