"""Collectives: what they are, who issued them, and when nothing runs beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb_tidy_plugin.profile.kernels import collective_kernels
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.ranks.collectives import Collectives, collectives_of
from tb_tidy_plugin.rulekit.testing import A100, draw
from tb_tidy_plugin.trace.columns import ABSENT, Category
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared
from tests.support.written import event, kineto_text, write

DDP = """
    ProfilerStep#1                     0-10000
      aten::mm                         10-100   kernel=gemm@50-2000
      c10d::allreduce_                 200-300
        nccl:all_reduce                210-290  dims=1024x1024  types=half  kernel=ncclDevKernel_AllReduce@1500-3000
      nccl:_reduce_scatter_base        310-390  dims=512  types=float  kernel=ncclDevKernel_ReduceScatter@3000-4000
      aten::add                        400-500  kernel=vectorized_elementwise_kernel@3500-4500
"""


def spans(found: Collectives) -> list[tuple[int, int]]:
    return list(zip((found.exposed.starts // 1000).tolist(), (found.exposed.ends // 1000).tolist(), strict=True))


class TestOnDevices:
    def test_kind_size_and_issuer(self) -> None:
        profile = draw(DDP, A100)
        found = collectives_of(profile)
        assert found.kinds == ("all_reduce", "reduce_scatter")
        assert found.sizes.tolist() == [2 << 20, 2048]
        assert [profile.name(row) for row in found.issue.tolist()] == ["nccl:all_reduce", "nccl:_reduce_scatter_base"]

    def test_exposed_while_nothing_else_is_computed(self) -> None:
        found = collectives_of(draw(DDP, A100))
        assert spans(found) == [(2000, 3500)]
        assert (found.exposed_ns // 1000).tolist() == [1000, 500]

    def test_of_two_that_overlap_the_earlier_one_has_the_time(self) -> None:
        text = """
            nccl:all_reduce   10-90    kernel=ncclDevKernel_AllReduce@100-1000
            nccl:all_reduce   110-190  kernel=ncclDevKernel_AllReduce@400-1600
            nccl:all_reduce   210-290  kernel=ncclDevKernel_AllReduce@500-900
        """
        assert (collectives_of(draw(text, A100)).exposed_ns // 1000).tolist() == [900, 600, 0]

    @pytest.mark.parametrize(
        ("kernel", "kind"),
        [
            ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "all_reduce"),
            ("ncclDevKernel_AllGather_RING_LL", "all_gather"),
            ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "send_recv"),
            ("ncclDevKernel_Broadcast_RING_LL", "broadcast"),
            ("ncclDevKernel_Generic_1", "collective"),
        ],
    )
    def test_kernels_without_annotation_are_told_by_their_names(self, kernel: str, kind: str) -> None:
        found = collectives_of(draw(f"aten::mm 0-100 kernel={kernel}@50-500", A100))
        assert found.kinds == (kind,)
        assert found.sizes.tolist() == [ABSENT]

    @pytest.mark.parametrize("name", ["a100_ddp8_control", "v100_ddp2_test", "mi300_ddp8_resnet_checkpoint"])
    def test_exposed_is_the_time_of_collectives_without_other_kernels(self, name: str) -> None:
        (file,) = find_traces(shared(f"traces/{name}"))
        profile = Profile(read_trace(file.path))
        kernels = np.flatnonzero(profile.table.category == Category.KERNEL)
        others = np.setdiff1d(kernels, collective_kernels(profile.table))
        all_ns, others_ns = (profile.covered(rows).total_ns for rows in (kernels, others))
        assert collectives_of(profile).exposed.total_ns == all_ns - others_ns


def test_the_process_group_of_a_recorded_collective(tmp_path: Path) -> None:
    inner = {"External id": 2, "Ev Idx": 2}
    events = [
        event("record_param_comms", 0, 100, args={"Process Group Name": "7", "External id": 1, "Ev Idx": 1}),
        event("nccl:all_reduce", 10, 80, cat="user_annotation", args=inner),
        event("cudaLaunchKernel", 20, 5, cat="cuda_runtime", args={"correlation": 9, "External id": 2}),
        event("ncclDevKernel_AllReduce", 50, 500, cat="kernel", pid=0, tid=7,
              args={"device": 0, "stream": 7, "correlation": 9, "External id": 2}),
    ]  # fmt: skip
    path = write(tmp_path / "w.pt.trace.json", kineto_text(events))
    assert collectives_of(Profile(read_trace(path))).groups == ("7",)


class TestOnTheHost:
    def test_those_of_gloo_are_issued_in_the_order_of_their_queue(self) -> None:
        """Two threads of gloo; the second message is begun before the first one is done."""
        profile = draw(
            """
            ProfilerStep#1        0-10000
              c10d::allreduce_    100-200
              c10d::allreduce_    300-400
              aten::mm            500-600
            gloo:all_reduce       350-5000  thread=2  dims=10  types=float
            gloo:all_reduce       390-4000  thread=3  dims=20  types=double
            """
        )
        found = collectives_of(profile)
        assert found.sizes.tolist() == [40, 160]
        assert [profile.start_ns(row) // 1000 for row in found.issue.tolist()] == [100, 300]

    def test_without_any(self) -> None:
        found = collectives_of(draw("aten::mm 0-100"))
        assert (len(found.rows), found.kinds, found.exposed.total_ns) == (0, (), 0)

    def test_alone_in_the_trace_nobody_waits(self) -> None:
        found = collectives_of(draw("gloo:all_reduce 0-100"))
        assert (found.kinds, found.exposed.total_ns) == (("all_reduce",), 0)

    def test_waiting_inside_an_operator_that_waits(self) -> None:
        profile = draw(
            """
            ProfilerStep#1                          0-10000
              _c10d_functional::all_reduce          100-200
              aten::mm                              300-1000
              _c10d_functional::wait_tensor         1010-3000
              aten::add                             3010-4000
            gloo:all_reduce                         150-2900  thread=2
            """
        )
        assert spans(collectives_of(profile)) == [(1000, 2900)]
