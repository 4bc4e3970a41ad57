"""ddp-buffers-broadcast: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.findings import findings_of
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, matches_of, saving_ns
from tb_tidy_plugin.rules.distributed.ddp_buffers_broadcast import DdpBuffersBroadcast

FORWARD = "DistributedDataParallel.forward"
BROADCAST = """
aten::flatten_dense_tensors    {}20-{}30
c10d::broadcast_               {}40-{}60    kernel=ncclDevKernel_Broadcast@{}50-{}80
record_param_comms             {}62-{}64
aten::unflatten_dense_tensors  {}65-{}70
aten::copy_                    {}72-{}80    copy=DtoD@{}80-{}85:4096
aten::copy_                    {}82-{}88    copy=DtoD@{}85-{}90:4096
"""


def job(forward: str = FORWARD, end: int = 1000, *, python: bool = False) -> Profile:
    """A forward pass that begins with one broadcast of two buffers at 120 µs, and copies its input later."""
    lines = BROADCAST.replace("{}", "1").strip().splitlines()
    deep = 12 if python else 10
    body = [f"          {forward}  100-900"]
    body += ["            torch/nn/parallel/distributed.py(9): _sync_buffers  110-190"] if python else []
    body += [" " * (deep + 2) + line for line in lines]
    body += ["            aten::linear  200-300  kernel=gemm@300-700", "            aten::copy_  310-320"]
    text = "\n".join(["        ProfilerStep#1  0-" + str(end), *body])
    return draw(text, A100)


@pytest.mark.parametrize("python", [False, True], ids=["operators", "functions"])
class TestReports:
    def test_the_broadcast_and_the_copies_around_it(self, *, python: bool) -> None:
        profile = job(python=python)
        (evidence,) = findings_of(profile, DdpBuffersBroadcast(), matches_of(DdpBuffersBroadcast, profile))
        finding = evidence.finding
        waiting, working = {*range(120, 130), *range(140, 150)}, range(150, 190)
        assert finding.cost_ns == len(waiting.union(working)) * 1000
        assert "it sends 2 buffers; collectives per pass: 1" in finding.details[0].text  # type: ignore[union-attr]
        assert finding.message == (
            "`DistributedDataParallel` sends the model's buffers to all ranks for 60 µs of a step (6 %)"
        )


class TestSaves:
    def test_the_broadcast_and_the_copies(self) -> None:
        assert saving_ns(DdpBuffersBroadcast, job()) == (0, 60_000, 60_000)

    def test_two_in_one_pass_without_one_of_the_model_itself(self) -> None:
        profile = draw(
            f"""
            ProfilerStep#1                   0-1000
              {FORWARD}                      100-900
                aten::flatten_dense_tensors  102-108
                c10d::broadcast_             110-120  kernel=ncclDevKernel_Broadcast@130-150
                aten::copy_                  125-130  copy=DtoD@150-160:4096
                aten::linear                 200-300  kernel=gemm@300-700
                aten::copy_                  310-320  copy=DtoD@700-750:4096
                aten::add                    330-340
                aten::flatten_dense_tensors  342-348
                c10d::broadcast_             350-360  kernel=ncclDevKernel_Broadcast@760-780
                aten::relu                   365-370
                c10d::broadcast_             380-390  kernel=ncclDevKernel_Broadcast@790-800
            """,
            A100,
        )
        (match,) = matches_of(DdpBuffersBroadcast, profile)
        assert [profile.start_ns(row) // 1000 for row in match.events] == [102, 110, 125, 342, 350]


class TestStaysQuiet:
    def test_less_than_half_a_percent_of_the_step(self) -> None:
        assert matches_of(DdpBuffersBroadcast, job(end=30_000)) == ()

    def test_broadcasts_of_something_else(self) -> None:
        assert matches_of(DdpBuffersBroadcast, job(forward="## forward ##")) == ()
