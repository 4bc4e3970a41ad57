"""The calls of one profile merged by path: modules, functions, operators, and the kernels that they launch."""

from __future__ import annotations

from typing import Literal, TypeAlias

from tb_tidy_plugin.ledger.model import LedgerGroup
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.words.causes import AtWork, Cause, CauseGroup

FlameKind: TypeAlias = Literal[
    "root", "module", "function", "operator", "annotation", "call", "kernel", "cpu", "idle", "others"
]


class FlameFrame(Model, frozen=True):
    """Kind and name of nodes.

    Attributes:
        kind: `call` is a runtime call. `kernel`, `cpu` and `idle` hold time of the account: work of the device, of a
            host without a device, and time that the device waits. `others` are the nodes too small to be listed.
        name: as shown. file, line: of functions, where they are defined.
        entry: position in `Flame.entries` of the entry that the time belongs to; null for all other kinds.
    """

    kind: FlameKind
    name: str
    file: str = ""
    line: int | None = None
    entry: int | None = None


class FlameEntry(Model, frozen=True):
    """An entry of the ledger, and its time in the window; `at_work` is what works in it."""

    id: str
    title: str
    cause: Cause
    group: CauseGroup
    at_work: AtWork
    ns: int


class Flame(Model, frozen=True):
    """A tree in columns, one entry per node; node 0 is the root and parents come before their children.

    Amounts are each node's own, over the window of the ledger: those of a subtree add up to its total.

    Attributes:
        frames: `frame` holds positions in it. entries: those of the ledger, in its order. groups: theirs, in the order
            of a bar.
        parent: of the root -1.
        account_ns: time of the account: all of it adds up to the ledger's window. host_ns: of all host threads.
        bytes: allocated on devices, or on the host if no device allocates; frees are not subtracted.
        steps: number of steps in the window. findings: by id, the nodes of a finding's events, most events first.
    """

    frames: list[FlameFrame]
    entries: list[FlameEntry]
    groups: list[LedgerGroup]
    parent: list[int]
    frame: list[int]
    account_ns: list[int]
    host_ns: list[int]
    bytes: list[int]
    steps: int
    findings: dict[str, list[int]]
