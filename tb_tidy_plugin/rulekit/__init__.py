"""All that a rule may import: the kit."""

from tb_tidy_plugin.profile.inputs import TORCH_DTYPES, Inputs, Shape, tensor_bytes
from tb_tidy_plugin.profile.products import Product
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.edits import Edit, Overlap, Remove, Scale, Unblock
from tb_tidy_plugin.rulekit.rule import Benchmark, Match, Rule
from tb_tidy_plugin.trace.columns import Category, Rows
from tb_tidy_plugin.units import Bytes, Fact, Nanoseconds, Share

__all__ = [
    "TORCH_DTYPES",
    "Benchmark",
    "Bytes",
    "Category",
    "Edit",
    "Fact",
    "Inputs",
    "Match",
    "Nanoseconds",
    "Overlap",
    "Product",
    "Profile",
    "Remove",
    "Rows",
    "Rule",
    "Scale",
    "Shape",
    "Share",
    "Unblock",
    "tensor_bytes",
]
