"""A drawn step of compiled code, with what a capture stores about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import draw
from tb_tidy_plugin.trace.columns import Captured
from tb_tidy_plugin.trace.compiled_code import CodeFrame, CompiledCode, CompiledGraph, CompiledRegion, KernelLines

FORWARD_KEY, BACKWARD_KEY = "fforward", "fbackward"
STACKS = [
    [CodeFrame("model.py", 8, "forward")],
    [CodeFrame("model.py", 9, "forward"), CodeFrame("layers.py", 3, "gate"), CodeFrame("torch/nn/f.py", 5, "silu")],
    [CodeFrame("torch/optim/adam.py", 7, "step")],
]
STEP = f"""
train.py(20): step                                        0-990
  Torch-Compiled Region: 0/0                              10-300
    model.py(7): forward                                  11-299
      torch/_dynamo/eval_frame.py(9): _fn                 12-298
        CompiledFunction                                  20-290 seq=7
          ## Call CompiledFxGraph {FORWARD_KEY} ##        30-280
            /tmp/torchinductor_me/ab/cab.py(134): call    31-279
              aten::mm                                    40-100
                aten::resolve_conj                        41-42
              graph_3_cpp_fused_sin_0                     110-200
  torch/_tensor.py(5): backward                           400-900
    CompiledFunctionBackward                              410-890 seq=7 fwd=1
      ## Call CompiledFxGraph {BACKWARD_KEY} ##           420-880
        /tmp/torchinductor_me/cd/ccd.py(9): call          421-879
          aten::addmm                                     430-600
"""

Kernels: TypeAlias = Sequence[tuple[str, list[int]]]


def compiled_step() -> Profile:
    return draw(STEP)


def captured(
    profile: Profile,
    *,
    launches: Kernels | None = (),
    backward: Kernels = (),
    again: Kernels | None = None,
    region: str = "0/0",
) -> Profile:
    """`profile` with the kernels that the capture noted for a region's graphs; `again`: also for the forward graph."""
    graphs = [CompiledGraph(FORWARD_KEY, False, _lines(each)) for each in (launches, again) if each or each is launches]
    graphs.append(CompiledGraph(BACKWARD_KEY, True, _lines(backward)))
    return with_compiled(profile, CompiledCode(STACKS, [CompiledRegion(region, "forward", graphs)]))


def with_compiled(profile: Profile, code: CompiledCode) -> Profile:
    """`profile` with what a capture noted of compiled code."""
    metadata = replace(profile.metadata, captured=Captured(compiled=code))
    return Profile(replace(profile.table, metadata=metadata))


def _lines(kernels: Kernels | None) -> list[KernelLines] | None:
    return None if kernels is None else [KernelLines(name, stacks) for name, stacks in kernels]
