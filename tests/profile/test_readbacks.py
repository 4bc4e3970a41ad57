"""Reads of values, the waits in them, and the idle time that follows."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.profile.readbacks import device_readbacks, idle_after, read_loops
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


def test_the_device_idles_after_the_value_until_its_next_work() -> None:
    # 400 µs are won in the first read, 105 of them are idle time; 295 + 20 are left for the 278 after the second.
    profile = draw(TWO_READS, A100)
    first, second = device_readbacks(profile).tolist()
    assert idle_after(profile, np.array([first, second])) == {
        first: ((405_000, 510_000),),
        second: ((632_000, 910_000),),
    }


def test_a_wait_that_stays_uses_up_what_was_won() -> None:
    # Without the first read the host would wait for the second instead, which is all that this one has won.
    profile = draw(TWO_READS, A100)
    _, second = device_readbacks(profile).tolist()
    assert idle_after(profile, np.array([second])) == {second: ((632_000, 652_000),)}


def test_idle_time_with_a_cause_of_its_own_is_left_out() -> None:
    profile = draw(TWO_READS + "Python GC  430-450\n", A100)
    first = int(device_readbacks(profile)[0])
    assert idle_after(profile, device_readbacks(profile))[first] == ((405_000, 430_000), (450_000, 510_000))


def test_clocks_of_host_and_device_may_differ_a_little() -> None:
    # The copy ends 3 µs after the wait for it.
    profile = draw(TWO_READS.replace("DtoH@400-405", "DtoH@400-413"), A100)
    first = int(device_readbacks(profile)[0])
    assert idle_after(profile, device_readbacks(profile))[first] == ((413_000, 510_000),)


def test_no_reads_no_idle_time() -> None:
    assert idle_after(draw("aten::mm 0-10 kernel=gemm@20-400", A100), np.empty(0, np.int64)) == {}


def test_loops_that_only_read() -> None:
    lines = [f"  aten::select {at}-{at + 1}\n  aten::item {at + 2}-{at + 3}" for at in range(10, 110, 10)]
    profile = draw("\n".join(["eval.py(3): count 0-200", *lines]))
    ((loop, reads),) = read_loops(profile, lambda name: name.startswith("eval") or None)
    assert len(reads) == 10
    assert loop.calls[0] == row_of(profile, "aten::item")
    assert not [*read_loops(profile, lambda name: False)]
