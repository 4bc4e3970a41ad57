"""Copies between host and device, and reads of values."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.profile.host.transfers import (
    copied_input,
    copying_operator,
    device_readbacks,
    exposed_copies,
    pinned_bytes_per_ns,
    read_loops,
)
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit import Category
from tb_tidy_plugin.rulekit.testing import A100, V100, Gpu, draw, row_of

NESTED = """
    aten::linear                0-100
      aten::to                  1-50   dims=8x4       types=float
        aten::_to_copy          2-49   dims=8x4       types=float
          aten::copy_           3-48   dims=8x4,8x4   types=half,float  copy=HtoD@10-40:64
"""

TWO_READS = """
aten::mm                       0-10     kernel=gemm@20-400
aten::is_nonzero               20-420
  aten::item                   21-419
    aten::_local_scalar_dense  22-418   wait=30-410 copy=DtoH@400-405:1
aten::mm                       500-510  kernel=gemm@510-600
aten::to                       620-640  wait=625-638 copy=DtoH@630-632:8
aten::mm                       900-910  kernel=gemm@910-950
"""


def exposed(profile: Profile) -> list[list[tuple[int, int]]]:
    return [time.spans for time in exposed_copies(profile, profile.matching("HtoD", Category.COPY))]


def test_the_outermost_operator_that_only_copies() -> None:
    profile = draw(NESTED, A100)
    assert copying_operator(profile, row_of(profile, "aten::copy_")) == row_of(profile, "aten::to")
    assert copying_operator(profile, row_of(profile, "aten::linear")) is None


def test_what_is_copied_is_the_source() -> None:
    profile = draw(NESTED, A100)
    assert copied_input(profile, row_of(profile, "aten::copy_")) == ((8, 4), "float")
    assert copied_input(profile, row_of(profile, "aten::to")) == ((8, 4), "float")
    assert copied_input(profile, row_of(profile, "aten::linear")) == ((0,), "")


def test_the_step_waits_for_a_copy_without_a_kernel_beside_it_and_for_a_host_that_stands_still() -> None:
    # Recorded work begins at 2; the kernel ends at 20: from there on the copy runs alone, and then the host returns.
    profile = draw(
        """
        aten::mm     0-1     kernel=gemm@2-20
        aten::copy_  3-48    copy=HtoD@10-40:64
        """,
        A100,
    )
    assert exposed(profile) == [[(20_000, 48_000)]]


def test_a_copy_behind_a_kernel_costs_nothing() -> None:
    profile = draw("aten::mm 0-1 kernel=gemm@2-60\naten::copy_ 3-48 copy=HtoD@10-40:64", A100)
    assert exposed(profile) == [[]]


def test_before_the_first_recorded_work_nothing_is_known_of_the_device() -> None:
    profile = draw("aten::copy_ 3-48 copy=HtoD@10-40:64", A100)
    assert exposed(profile) == [[(7_000, 45_000)]]  # times are relative to the first event


def test_the_bus_is_as_fast_as_the_recordings_own_large_pinned_copies() -> None:
    pinned = "Memcpy_HtoD_(Pinned_->_Device)"
    profile = draw(f"aten::copy_ 0-9 copy={pinned}@10-110:2000000\naten::copy_ 11-12 copy={pinned}@120-130:16", V100)
    assert pinned_bytes_per_ns(profile) == (20.0, True)


@pytest.mark.parametrize(("gpu", "speed"), [(V100, 12.0), (A100, 24.0), (Gpu("unknown", 3, 0), 12.0), (None, 12.0)])
def test_else_as_fast_as_is_usual_for_the_device(gpu: Gpu | None, speed: float) -> None:
    assert pinned_bytes_per_ns(draw(NESTED, gpu)) == (speed, False)


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
