"""A rule's answers to a profile, from the package's helpers for rule authors."""

from tb_tidy_plugin.rulekit.testing.answers import findings, matches_of, reason_not_checked, saving_ns

__all__ = ["findings", "matches_of", "reason_not_checked", "saving_ns"]
