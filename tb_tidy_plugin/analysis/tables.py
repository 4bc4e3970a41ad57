"""All tables of one profile, from the questions that `profile` answers."""

from __future__ import annotations

from collections.abc import Sequence

from tb_tidy_plugin.analysis.checker import MISSING, NO_HOST_EVENTS, without_device
from tb_tidy_plugin.analysis.cpu_table import cpu_figures
from tb_tidy_plugin.analysis.device_kernels import device_kernels
from tb_tidy_plugin.analysis.findings import TracedFinding
from tb_tidy_plugin.analysis.flame import flame_of
from tb_tidy_plugin.analysis.idle import idle_gaps
from tb_tidy_plugin.analysis.memory_table import memory_rows, snapshot_rows
from tb_tidy_plugin.analysis.module_table import module_rows
from tb_tidy_plugin.analysis.operator_rows import Parts, linked_calls, operator_rows
from tb_tidy_plugin.analysis.roofline import roofline_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.serving.paged_attention import with_decode_attention
from tb_tidy_plugin.profile.work.cpu_work import cpu_work_of
from tb_tidy_plugin.profile.work.flops import estimates_of
from tb_tidy_plugin.profile.work.modules import ModuleTree, modules_of
from tb_tidy_plugin.report.figures import Figures, OperatorGroup
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.places import Places, places_of
from tb_tidy_plugin.trace.columns import ABSENT

GROUPS: tuple[OperatorGroup, ...] = ("name", "shape", "line", "module")
NO_MODULES = "No `nn.Module` was called in this recording, or its stacks do not name modules; record with "
NO_MODULES += "`with_stack=True` of torch 2.0 or later."


def figures_of(profile: Profile, traced: Sequence[TracedFinding] = (), aligner: Aligner | None = None) -> Figures:
    """All tables of a profile.

    Args:
        profile: one trace.
        traced: the findings and their events, to link them with rows.
        aligner: finds the lines inside functions for operators by line; without it, lines are those of definitions.
    """
    modules, places, estimates = modules_of(profile), places_of(profile), estimates_of(profile)
    cpu = cpu_work_of(profile, estimates)
    missing = missing_in(profile, modules, places)
    snapshots, problem = snapshot_rows(profile)
    if problem is not None:
        missing["snapshot"] = problem
    parts = Parts(profile, estimates, modules, cpu, linked_calls(profile, traced), aligner)
    families, kernels = device_kernels(profile, with_decode_attention(profile, estimates))
    operators = {by: operator_rows(parts, by) for by in GROUPS if by not in missing}
    return Figures(
        operators={by: rows for by, (rows, _) in operators.items()},
        left_out={by: more for by, (_, more) in operators.items() if more},
        modules=module_rows(profile, modules),
        memory=[*memory_rows(profile, places), *snapshots],
        cpu=cpu_figures(profile, cpu, places),
        flame=flame_of(profile, traced),
        roofline=roofline_of(profile, operators["shape"][0] if "shape" in operators else None, kernels),
        idle=idle_gaps(profile),
        missing=missing,
        families=families,
        kernels=kernels,
    )


def missing_in(profile: Profile, modules: ModuleTree, places: Places) -> dict[str, str]:
    """The reason why a table is missing, and the profiler option that records it; by table or grouping."""
    recorded, found = profile.recorded, dict[str, str]()
    if "memory" not in recorded:
        found["memory"] = MISSING["memory"]
    if "device" not in recorded:
        found["kernels"] = without_device(profile)
    if not len(profile.nested):
        found["name"] = NO_HOST_EVENTS
    if not profile.tree.size:
        return found | dict.fromkeys((*GROUPS[1:], "modules"), NO_HOST_EVENTS)
    if "shapes" not in recorded:
        found["shape"] = MISSING["shapes"]
    if (places.number == ABSENT).all():  # a `Call stack` may be present but empty
        found["line"] = MISSING["stacks"]
    if not modules.modules:
        found["module"] = found["modules"] = MISSING["stacks"] if "line" in found else NO_MODULES
    return found
