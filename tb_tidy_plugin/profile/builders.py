"""Compilers and tuners that Python code runs beside `torch.compile`: Triton, TorchScript, Numba and others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from tb_tidy_plugin.profile.calls import rows_of
from tb_tidy_plugin.profile.compiled import compilations
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import Category, Rows
from tb_tidy_plugin.trace.sets import common

Builder: TypeAlias = Literal["Triton", "Triton's autotuner", "TorchScript", "NVRTC", "Numba", "a C++ extension"]

BUILDERS: Mapping[Builder, str] = {
    "Triton": r"(?:^|/)triton/compiler/compiler\.py\(\d+\): compile$",
    "Triton's autotuner": r"(?:^|/)triton/runtime/autotuner\.py\(\d+\): _bench$",
    "TorchScript": r"(?:^|/)torch/jit/(?:_script\.py\(\d+\): script|_trace\.py\(\d+\): trace)$",
    "NVRTC": r"(?:^|/)torch/cuda/_utils\.py\(\d+\): _nvrtc_compile$",
    "Numba": r"(?:^|/)numba/(?:core|cuda)/dispatcher\.py\(\d+\): (?:_compile_for_args|compile)$",
    "a C++ extension": r"(?:^|/)torch/utils/cpp_extension\.py\(\d+\): _jit_compile$",
}
"""Frames of each builder. Lookups in a cache of earlier builds are excluded: they take less than a millisecond."""

BUILDS = re.compile("|".join(BUILDERS.values()))


def builds(profile: Profile) -> Mapping[Builder, Rows]:
    """The outermost frames of each builder, in row order, without those that `torch.compile` runs."""
    frames = profile.matching(BUILDS.pattern, Category.PYTHON)
    if not len(frames):
        return {}
    compiling = profile.covered(rows_of(each.row for each in compilations(profile)))
    is_own = ~profile.inside(frames)[frames] & ~compiling.containing(profile.table.start_ns[frames])
    outermost = frames[is_own]
    found = dict[Builder, Rows]()
    for builder, frame in BUILDERS.items():
        if len(rows := common(outermost, profile.matching(frame, Category.PYTHON))):
            found[builder] = rows
    return found
