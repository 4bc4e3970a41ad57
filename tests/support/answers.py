"""What a rule answers to a profile, where the package has it for all who write rules."""

from tb_tidy_plugin.rulekit.testing.answers import findings, matches_of, reason_not_checked, saving_ns

__all__ = ["findings", "matches_of", "reason_not_checked", "saving_ns"]
