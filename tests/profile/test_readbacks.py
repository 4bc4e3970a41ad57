"""Reads of values of a device, and loops of reads."""

from __future__ import annotations

from tb_tidy_plugin.profile.readbacks import device_readbacks, read_loops
from tests.support.drawn import A100, draw, row_of

TWO_READS = """
aten::mm                       0-10     kernel=gemm@20-400
aten::is_nonzero               20-420
  aten::item                   21-419
    aten::_local_scalar_dense  22-418   wait=30-410 copy=DtoH@400-405:1
aten::mm                       500-510  kernel=gemm@510-600
aten::to                       620-640  wait=625-638 copy=DtoH@630-632:8
aten::mm                       900-910  kernel=gemm@910-950
"""


def test_the_outermost_operator_reads() -> None:
    profile = draw(TWO_READS, A100)
    assert [profile.name(row) for row in device_readbacks(profile)] == ["aten::is_nonzero", "aten::to"]


def test_loops_that_only_read() -> None:
    lines = [f"  aten::select {at}-{at + 1}\n  aten::item {at + 2}-{at + 3}" for at in range(10, 110, 10)]
    profile = draw("\n".join(["eval.py(3): count 0-200", *lines]))
    ((loop, reads),) = read_loops(profile, lambda name: name.startswith("eval") or None)
    assert len(reads) == 10
    assert loop.calls[0] == row_of(profile, "aten::item")
    assert not [*read_loops(profile, lambda name: False)]
