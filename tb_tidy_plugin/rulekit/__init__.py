"""Tools that every rule needs, as `tt`. For other queries on a profile, a rule imports from `profile`."""

from typing import TYPE_CHECKING

from tb_tidy_plugin.profile.events.inputs import TORCH_DTYPES, Inputs, Shape
from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.ranks.run import Run
from tb_tidy_plugin.rulekit import made
from tb_tidy_plugin.rulekit.edits import Edit, Overlap, Remove, Scale, Unblock
from tb_tidy_plugin.rulekit.library_calls import CallRule, EngineFunctionRule, LibraryCallRule, LibraryCalls
from tb_tidy_plugin.rulekit.rule import AnyRule, Benchmark, DeviceKind, Match, Rule, known_dtype
from tb_tidy_plugin.rulekit.run_rule import RunMatch, RunRule
from tb_tidy_plugin.rulekit.statements import chain_of, fitting
from tb_tidy_plugin.rulekit.thresholds import Threshold
from tb_tidy_plugin.sources.constructors import Made
from tb_tidy_plugin.sources.frames import is_own_code, parse_frame
from tb_tidy_plugin.trace.columns import Category, Rows
from tb_tidy_plugin.words.units import Bytes, Nanoseconds, Share, Sizes
from tb_tidy_plugin.words.vocabulary import Confidence

if TYPE_CHECKING:
    from tb_tidy_plugin.fixes.code import Call, Code
else:
    Call = Code = "what an annotation names; the classes need LibCST"

__all__ = [
    "TORCH_DTYPES",
    "AnyRule",
    "Benchmark",
    "Bytes",
    "Call",
    "CallRule",
    "Category",
    "Code",
    "Confidence",
    "DeviceKind",
    "Edit",
    "EngineFunctionRule",
    "Inputs",
    "Intervals",
    "LibraryCallRule",
    "LibraryCalls",
    "Made",
    "Match",
    "Nanoseconds",
    "Overlap",
    "Profile",
    "Remove",
    "Rows",
    "Rule",
    "Run",
    "RunMatch",
    "RunRule",
    "Scale",
    "Shape",
    "Share",
    "Sizes",
    "Threshold",
    "Unblock",
    "chain_of",
    "fitting",
    "is_own_code",
    "known_dtype",
    "made",
    "parse_frame",
]
