"""The modules as the report shows them."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.ledger.account import passes_of
from tb_tidy_plugin.ledger.model import OWNER_PASSES
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.modules import Cost, Module, ModuleTree
from tb_tidy_plugin.report.figures import ModuleRow
from tb_tidy_plugin.sources.frames import parse_frame
from tb_tidy_plugin.trace.columns import ABSENT, Times
from tb_tidy_plugin.words.vocabulary import KnownBy


def module_rows(profile: Profile, modules: ModuleTree) -> list[ModuleRow]:
    """One row per module, in pre-order."""
    on_device = any(_allocated(module, on_device=True) for module in modules.modules)
    rows = np.flatnonzero(modules.module != ABSENT)
    known_by = profile.replayed.least_by_group(rows, modules.module[rows], len(modules.modules))
    return [
        _row(profile, module, known, of_steps, on_device=on_device)
        for module, known, of_steps in zip(modules.modules, known_by, _by_pass(profile, modules).tolist(), strict=True)
    ]


def _by_pass(profile: Profile, modules: ModuleTree) -> Times:
    """Time of the ledger's steps by module, with the modules inside, and pass."""
    count = len(modules.modules)
    found = np.zeros((count + 1, len(OWNER_PASSES)), np.int64)
    if not count:
        return found[:0]
    times = passes_of(profile)
    np.add.at(found, (np.append(modules.module, ABSENT)[times.event], times.pass_), times.ns)
    before = np.zeros_like(found)  # of each module, the time of those before it
    np.cumsum(found[:-1], axis=0, out=before[1:])
    last = np.array([module.last_descendant for module in modules.modules], np.int64)
    inside: Times = before[last + 1] - before[:count]
    return inside


def _row(
    profile: Profile, module: Module, known_by: KnownBy | None, of_steps: list[int], *, on_device: bool
) -> ModuleRow:
    by_pass = dict(zip(OWNER_PASSES, of_steps, strict=True))
    table, frame = profile.table, None
    if module.forward_frame != ABSENT:
        frame = parse_frame(table.names[table.name[module.forward_frame]])
    return ModuleRow(
        name=module.name,
        class_name=module.class_name,
        parent=None if module.parent == ABSENT else module.parent,
        last=module.last_descendant,
        depth=module.depth,
        calls=module.calls,
        places=module.places,
        file=frame.file if frame else "",
        line=frame.line if frame else None,
        forward_ns=module.forward.host_ns,
        forward_self_ns=module.forward_self.host_ns,
        backward_ns=module.backward.host_ns,
        backward_self_ns=module.backward_self.host_ns,
        device_forward_ns=module.forward.device_ns,
        device_backward_ns=module.backward.device_ns,
        allocated_bytes=_allocated(module, on_device=on_device),
        known_by=known_by,
        step_ns=sum(of_steps),
        step_forward_ns=by_pass["forward"],
        step_backward_ns=by_pass["backward"],
        step_optimizer_ns=by_pass["optimizer"] or None,
    )


def _allocated(module: Module, *, on_device: bool) -> int | None:
    """Bytes allocated in both passes: on devices if modules allocate there at all, else on the host."""
    amounts = [_of(cost, on_device=on_device) for cost in (module.forward, module.backward)]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _of(cost: Cost, *, on_device: bool) -> int | None:
    return cost.device_allocated_bytes if on_device else cost.host_allocated_bytes
