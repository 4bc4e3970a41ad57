"""Profiles drawn as text, from the package's helpers for rule authors."""

from tb_tidy_plugin.rulekit.testing.drawn import A100, MI300, V100, Gpu, draw, row_of

__all__ = ["A100", "MI300", "V100", "Gpu", "draw", "row_of"]
