"""All that a rule may import: the kit."""

from tb_tidy_plugin import aten
from tb_tidy_plugin.ledger.host_work import HostWait, loading_functions, waits_for_host_work
from tb_tidy_plugin.profile.attention import Attention, attentions, left_of_products
from tb_tidy_plugin.profile.biases import BIAS, bias_handed_over, bias_work
from tb_tidy_plugin.profile.calls import rows_of
from tb_tidy_plugin.profile.casts import Cast, casts
from tb_tidy_plugin.profile.collectives import ExposedKind, exposed_collectives
from tb_tidy_plugin.profile.compiled import BrokenCall, Compilation, Piece, broken_calls, compilations, time_apart
from tb_tidy_plugin.profile.constants import Constant, constants_made_again
from tb_tidy_plugin.profile.copies import copied_input, copying_operator, exposed_copies, pinned_bytes_per_ns
from tb_tidy_plugin.profile.critical import device_idle
from tb_tidy_plugin.profile.debug_modes import blocked_time, blocking_launches, formatted_stacks, nan_checks
from tb_tidy_plugin.profile.decoder import DecoderPiece, decoder_pieces
from tb_tidy_plugin.profile.float32 import float32_kernels, has_matrix_units
from tb_tidy_plugin.profile.gradients import first_additions, gradients_of
from tb_tidy_plugin.profile.growth import Join, growing_tensors, is_read_between
from tb_tidy_plugin.profile.idle import HostBoundIdle, host_bound_idle
from tb_tidy_plugin.profile.inputs import TORCH_DTYPES, Inputs, Shape, tensor_bytes
from tb_tidy_plugin.profile.intervals import Intervals
from tb_tidy_plugin.profile.lanes import devices_of
from tb_tidy_plugin.profile.layouts import LayoutCopy, layout_copies
from tb_tidy_plugin.profile.loading import batches_by_place, is_first_batch, waits_for_workers
from tb_tidy_plugin.profile.loops import Loop, movement_of
from tb_tidy_plugin.profile.model_work import function_of
from tb_tidy_plugin.profile.optimizers import WITH_FOREACH, Update, updates_one_by_one
from tb_tidy_plugin.profile.overhead import HostWork, host_work
from tb_tidy_plugin.profile.parameter_costs import ParameterCosts, costs_of_parameters
from tb_tidy_plugin.profile.pieces import PICKS, falls, loops_over_pieces, time_of_loop
from tb_tidy_plugin.profile.pointwise import Chain, is_passing, is_pointwise, part_left, pointwise_chains
from tb_tidy_plugin.profile.products import Product
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.readbacks import READS, device_readbacks, idle_after, read_loops
from tb_tidy_plugin.profile.recorded_nodes import UnusedPass, unused_passes
from tb_tidy_plugin.profile.recurring import recurring
from tb_tidy_plugin.profile.run import Run
from tb_tidy_plugin.profile.sides import slower_side
from tb_tidy_plugin.profile.stragglers import Straggler, comparable_steps, straggler_of
from tb_tidy_plugin.rulekit.edits import Edit, Overlap, Remove, Scale, Unblock
from tb_tidy_plugin.rulekit.rule import AnyRule, Benchmark, Confidence, DeviceKind, Match, Rule, sizes_in
from tb_tidy_plugin.rulekit.run_rule import RunMatch, RunRule
from tb_tidy_plugin.rulekit.statements import chain_of, fitting
from tb_tidy_plugin.rulekit.thresholds import Threshold
from tb_tidy_plugin.sources.frames import parse_frame
from tb_tidy_plugin.trace.columns import Category, Rows
from tb_tidy_plugin.units import Bytes, Fact, Nanoseconds, Share

__all__ = [
    "BIAS",
    "PICKS",
    "READS",
    "TORCH_DTYPES",
    "WITH_FOREACH",
    "AnyRule",
    "Attention",
    "Benchmark",
    "BrokenCall",
    "Bytes",
    "Cast",
    "Category",
    "Chain",
    "Compilation",
    "Confidence",
    "Constant",
    "DecoderPiece",
    "DeviceKind",
    "Edit",
    "ExposedKind",
    "Fact",
    "HostBoundIdle",
    "HostWait",
    "HostWork",
    "Inputs",
    "Intervals",
    "Join",
    "LayoutCopy",
    "Loop",
    "Match",
    "Nanoseconds",
    "Overlap",
    "ParameterCosts",
    "Piece",
    "Product",
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
    "Straggler",
    "Threshold",
    "Unblock",
    "UnusedPass",
    "Update",
    "aten",
    "attentions",
    "batches_by_place",
    "bias_handed_over",
    "bias_work",
    "blocked_time",
    "blocking_launches",
    "broken_calls",
    "casts",
    "chain_of",
    "comparable_steps",
    "compilations",
    "constants_made_again",
    "copied_input",
    "copying_operator",
    "costs_of_parameters",
    "decoder_pieces",
    "device_idle",
    "device_readbacks",
    "devices_of",
    "exposed_collectives",
    "exposed_copies",
    "falls",
    "first_additions",
    "fitting",
    "float32_kernels",
    "formatted_stacks",
    "function_of",
    "gradients_of",
    "growing_tensors",
    "has_matrix_units",
    "host_bound_idle",
    "host_work",
    "idle_after",
    "is_first_batch",
    "is_passing",
    "is_pointwise",
    "is_read_between",
    "layout_copies",
    "left_of_products",
    "loading_functions",
    "loops_over_pieces",
    "movement_of",
    "nan_checks",
    "parse_frame",
    "part_left",
    "pinned_bytes_per_ns",
    "pointwise_chains",
    "read_loops",
    "recurring",
    "rows_of",
    "sizes_in",
    "slower_side",
    "straggler_of",
    "tensor_bytes",
    "time_apart",
    "time_of_loop",
    "unused_passes",
    "updates_one_by_one",
    "waits_for_host_work",
    "waits_for_workers",
]
