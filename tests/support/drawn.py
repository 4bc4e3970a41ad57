"""Profiles drawn as text, where the package has them for all who write rules."""

from tb_tidy_plugin.rulekit.testing.drawn import A100, MI300, V100, Gpu, draw, row_of

__all__ = ["A100", "MI300", "V100", "Gpu", "draw", "row_of"]
