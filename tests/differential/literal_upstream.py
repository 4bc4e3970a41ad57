"""Upstream's eight matchers with their literal semantics, defects included, over our rebuilt tree.

They say whether the tree carries all that upstream sees; the product's rules differ on purpose. What each matches:
https://github.com/pytorch/pytorch/blob/v2.13.0/torch/profiler/_pattern_matcher.py.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import Category

FILLS = {"aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_"}
LOADER = "torch/utils/data/dataloader.py"
REPEATS = 10


def count_all(profile: Profile) -> dict[str, int]:
    """Matches of each upstream pattern, by upstream's names."""
    rows = range(profile.tree.size)
    return {name: sum(map(match(profile), rows)) for name, match in MATCHERS.items()} | {
        "ForLoopIndexingPattern": sum(1 for _ in _loops(profile))
    }


def _extra_copy(profile: Profile) -> Callable[[int], bool]:
    def match(row: int) -> bool:
        at = row
        for name in ("aten::to", "aten::_to_copy", "aten::copy_"):
            if profile.name(at) != name:
                return False
            children = profile.children(at)
            if name == "aten::copy_":
                break
            if not children:
                return False
            at = children[-1]
        dtypes = profile.inputs(at).dtypes
        above = profile.parent(row)
        if len(dtypes) < 2 or not dtypes[0] or dtypes[0] != dtypes[1] or above is None:
            return False
        before = _siblings(profile, above)[0]
        if not before:
            return False
        last = before[-1]
        while children := profile.children(last):
            last = children[-1]
            if profile.name(last) in FILLS:
                return True
        return profile.name(last) in FILLS

    return match


def _siblings(profile: Profile, row: int) -> tuple[list[int], list[int]]:
    above = profile.parent(row)
    if above is None:
        thread = profile.table.thread[row]
        level = [at for at in _roots(profile) if profile.table.thread[at] == thread]
    else:
        level = profile.children(above)
    at = level.index(row)
    return level[:at], level[at + 1 :]


def _roots(profile: Profile) -> Iterator[int]:
    row = 0
    while row < profile.tree.size:
        yield row
        row = int(profile.tree.last_descendant[row]) + 1


def _loops(profile: Profile) -> Iterator[int]:
    """Breadth first, so that one loop matches once."""
    visited: set[int] = set()
    queue = deque(_roots(profile))
    while queue:
        row = queue.popleft()
        queue.extend(profile.children(row))
        if profile.name(row) == "aten::select" and row not in visited and _repeats(profile, row, visited) >= REPEATS:
            yield row


def _repeats(profile: Profile, row: int, visited: set[int]) -> int:
    after = _siblings(profile, row)[1]
    names = [profile.name(at) for at in after]
    if len(after) <= 1 or "aten::select" not in names:
        return 0
    length = names.index("aten::select") + 1
    group = ["aten::select", *names[: length - 1]]
    count = 1
    for at in range(length - 1, len(after), length):
        if names[at : at + length] != group:
            break
        count += 1
        visited.add(after[at])
    return count


def _named(test: Callable[[str], object]) -> Callable[[Profile], Callable[[int], bool]]:
    return lambda profile: lambda row: bool(test(profile.table.names[profile.table.name[row]]))


def _loader(profile: Profile) -> Callable[[int], bool]:
    def is_frame(row: int, function: str) -> bool:
        name: str = profile.table.names[profile.table.name[row]]
        return name.startswith(LOADER) and name.endswith(function)

    def match(row: int) -> bool:
        at = row
        for function in ("__iter__", "_get_iterator"):
            children = profile.children(at)
            if not is_frame(at, function) or not children:
                return False
            at = children[0]
        return not is_frame(at, "check_worker_number_rationality")

    return match


def _zeroed(profile: Profile) -> Callable[[int], bool]:
    def match(row: int) -> bool:
        if not profile.name(row).endswith(": zero_grad"):
            return False
        below = (at for at in profile.subtree(row) if at != row and profile.name(at) == "aten::zero_")
        return any(profile.name(profile.parent(at) or 0) != "aten::zeros" for at in below)

    return match


def _conv_bias(profile: Profile) -> Callable[[int], bool]:
    def match(row: int) -> bool:
        if profile.name(row) != "aten::conv2d" or not profile.inputs(row).dtype(2):
            return False
        at = row
        while (above := profile.parent(at)) is not None and not profile.name(at).startswith("nn.Module: Conv2d"):
            at = above
        after = _siblings(profile, at)[1]
        return bool(after) and profile.name(after[0]).startswith("nn.Module: BatchNorm2d")

    return match


def _misaligned(profile: Profile) -> Callable[[int], bool]:
    def match(row: int) -> bool:
        if profile.name(row) not in {"aten::mm", "aten::bmm", "aten::addmm"}:
            return False
        inputs = profile.inputs(row)
        sizes = [size for shape in inputs.dims for size in shape[-2:] if isinstance(size, int)]
        return inputs.dtype(0) in {"c10::Half", "c10::BFloat16"} and any(size % 8 for size in sizes)

    return match


def _multiplications(profile: Profile) -> Callable[[int], bool]:
    """The TF32 flag is not in the JSON; on a CPU build upstream matches every `mm`."""
    return lambda row: profile.name(row) == "aten::mm" and profile.category(row) is Category.OPERATOR


MATCHERS = {
    "ExtraCUDACopyPattern": _extra_copy,
    "FP32MatMulPattern": _multiplications,
    "OptimizerSingleTensorPattern": _named(re.compile(r"_single_tensor_(adam|sgd|adamw)$").search),
    "SynchronizedDataLoaderPattern": _loader,
    "GradNotSetToNonePattern": _zeroed,
    "Conv2dBiasFollowedByBatchNorm2dPattern": _conv_bias,
    "MatMulDimInFP16Pattern": _misaligned,
    "NamePattern(aten::mm$)": _named(re.compile(r"aten::mm$").search),
    "NamePattern(aten::b?mm$)": _named(re.compile(r"aten::b?mm$").search),
}
