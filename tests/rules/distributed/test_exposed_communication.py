"""exposed-communication: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, MI300, draw, findings, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rules.distributed.exposed_communication import ExposedCommunication

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"

IN_LINE = f"""
    ProfilerStep#1                    0-10000
      train.py(5): step               1-9990
        aten::mm                      10-100    kernel=gemm@50-4000
        c10d::allreduce_              200-300
          nccl:all_reduce             210-290   dims=1024x1024  types=float  kernel={REDUCE}@4000-6000
        aten::add_                    400-500   kernel=vectorized_elementwise_kernel@6000-9000
"""

GLOO = """
    ProfilerStep#1                                          0-10000
      train.py(5): step                                     1-9990
        aten::mm                                            10-3000
        torch/distributed/distributed_c10d.py(9): reduce    3001-8000
          c10d::allreduce_                                  3010-3100
          <built-in method wait of Work object at 0x7f>     3110-7990
        aten::add_                                          8010-9900
    gloo:all_reduce                                         3100-7900  thread=2  dims=1000  types=float
"""


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(ExposedCommunication, profile)


def on_device(collective: str, compute: str = "gemm@50-4000", step_us: int = 10_000) -> Profile:
    """One step with one all_reduce and one kernel beside or before it."""
    return draw(
        f"""
        ProfilerStep#1        0-{step_us}
          aten::mm            10-100   kernel={compute}
          nccl:all_reduce     210-290  kernel={REDUCE}@{collective}
        """,
        A100,
    )


def steps_of_equal_collectives(*durations_us: int) -> Profile:
    """Steps of 10 ms, each with one all_reduce of 4 MiB that takes so long, and nothing else on the device."""
    lines = [
        f"""
        ProfilerStep#{step}   {step * 10_000}-{step * 10_000 + 9_999}
          nccl:all_reduce     {step * 10_000 + 10}-{step * 10_000 + 90}  dims=1024x1024  types=float  kernel={kernel}
        """
        for step, kernel in enumerate(
            f"{REDUCE}@{step * 10_000 + 100}-{step * 10_000 + 100 + took}" for step, took in enumerate(durations_us)
        )
    ]
    return draw("\n".join(lines), A100)


class TestReports:
    def test_a_collective_during_which_the_device_computes_nothing(self) -> None:
        (finding,) = findings(ExposedCommunication, draw(IN_LINE, A100))
        assert (
            finding.message
            == "`all_reduce` is exposed for 2 ms of a step (20 %): meanwhile the device computes nothing"
        )
        assert (finding.cost_ns, finding.matches_per_step) == (2_000_000, 1.0)
        assert (finding.places[0].file, finding.places[0].function) == ("train.py", "step")
        assert "1 `all_reduce` per step with 4 MiB takes 2 ms" in str(finding.details[0])
        assert "DistributedDataParallel" in finding.fix

    def test_only_the_part_that_nothing_hides(self) -> None:
        (finding,) = findings(ExposedCommunication, on_device("3000-6000", compute="gemm@50-4000"))
        assert finding.cost_ns == 2_000_000

    def test_rccl_on_amd(self) -> None:
        assert findings(ExposedCommunication, draw(IN_LINE, MI300))

    def test_on_the_cpu_the_wait_of_the_training_thread(self) -> None:
        (finding,) = findings(ExposedCommunication, draw(GLOO))
        assert (
            finding.message
            == "`all_reduce` is exposed for 4.79 ms of a step (47.9 %): meanwhile the training thread waits"
        )
        assert finding.cost_ns == (7900 - 3110) * 1000
        assert finding.places[0].function == "step"

    def test_on_the_cpu_without_stacks_the_gap_in_which_the_collective_ends(self) -> None:
        profile = draw(
            """
            ProfilerStep#1        0-10000
              aten::mm            10-3000
              c10d::allreduce_    3010-3100
              aten::add_          8010-9900
            gloo:all_reduce       3050-7900  thread=2
            """
        )
        (finding,) = findings(ExposedCommunication, profile)
        assert finding.cost_ns == (7900 - 3100) * 1000

    def test_on_the_cpu_the_end_of_the_backward_pass(self) -> None:
        profile = draw(
            """
            ProfilerStep#1                                          0-10000
              <built-in method run_backward of Engine at 0x7f>      10-7000
                autograd::engine::evaluate_function: Addmm          20-4000
                  c10d::allreduce_                                  3500-3600
                torch.distributed.ddp.reducer::copy_bucket_to_grad  6010-6500
              aten::add_                                            8010-9900
            gloo:all_reduce                                         3550-6000  thread=2
            """
        )
        (finding,) = findings(ExposedCommunication, profile)
        assert finding.cost_ns == (6000 - 4000) * 1000

    def test_each_kind_is_a_finding_with_advice_of_its_own(self) -> None:
        profile = draw(
            f"""
            ProfilerStep#1              0-10000
              nccl:all_reduce           10-90    kernel={REDUCE}@100-2100
              nccl:_all_gather_base     110-190  kernel=ncclDevKernel_AllGather_RING_LL@2100-5100
              nccl:all_to_all           210-290  kernel=ncclDevKernel_SendRecv@5100-6100
            """,
            A100,
        )
        advice = [finding.fix.split()[0] for finding in findings(ExposedCommunication, profile)]
        assert advice == ["Gather", "Let", "Start"]

    def test_what_the_fastest_of_equal_collectives_take_as_sending_and_the_rest_as_waiting(self) -> None:
        (even,) = findings(ExposedCommunication, steps_of_equal_collectives(2000, 2100))
        assert (even.confidence, even.cost_ns) == ("medium", 2_000_000)
        assert "another 50 µs per step looks like waiting" in str(even.details[0])
        (uneven,) = findings(ExposedCommunication, steps_of_equal_collectives(2000, 500, 6000))
        assert (uneven.confidence, uneven.cost_ns) == ("low", 500_000)

    def test_collectives_of_different_sizes_are_not_equal(self) -> None:
        text = f"""
            ProfilerStep#1       0-10000
              nccl:all_reduce    10-90    dims=1024  types=float  kernel={REDUCE}@100-200
              nccl:all_reduce    110-190  dims=4096  types=float  kernel={REDUCE}@200-3000
        """
        (finding,) = findings(ExposedCommunication, draw(text, A100))
        assert finding.cost_ns == 2_900_000

    def test_without_shapes_those_of_one_position_in_the_step_are_equal(self) -> None:
        text = f"""
            ProfilerStep#1       0-9999
              nccl:all_reduce    10-90        kernel={REDUCE}@100-200
              nccl:all_reduce    110-190      kernel={REDUCE}@200-3200
            ProfilerStep#2       10000-20000
              nccl:all_reduce    10010-10090  kernel={REDUCE}@10100-10200
              nccl:all_reduce    10110-10190  kernel={REDUCE}@10200-12200
        """
        (finding,) = findings(ExposedCommunication, draw(text, A100))
        assert finding.cost_ns == (100_000 + 2_000_000)


class TestSaves:
    def test_all_that_the_rest_of_the_step_can_hide(self) -> None:
        assert saving_ns(ExposedCommunication, draw(IN_LINE, A100)) == (0, 2_000_000, 2_000_000)

    def test_no_more_than_the_rest_of_the_step_is_long(self) -> None:
        # 8 of 10 ms are exposed: 2 ms are left to hide behind.
        assert saving_ns(ExposedCommunication, on_device("1000-9000", "gemm@50-900")) == (0, 2_000_000, 8_000_000)


class TestStaysQuiet:
    def test_behind_kernels(self) -> None:
        assert not matches(on_device("1000-3000", compute="gemm@50-4000"))

    def test_below_a_twentieth_of_the_step(self) -> None:
        exposed = [findings(ExposedCommunication, on_device(f"4000-{4000 + us}")) for us in (500, 499)]
        shares = [found[0].share for found in exposed]
        assert shares[0] == ExposedCommunication().min_share > (shares[1] or 0)

    def test_when_it_mostly_waits_and_sends_little(self) -> None:
        (finding,) = findings(ExposedCommunication, steps_of_equal_collectives(5000, 400, 6000))
        assert (finding.share or 0) < ExposedCommunication().min_share

    def test_outside_the_steps(self) -> None:
        assert not matches(draw(f"nccl:all_reduce 0-90 kernel={REDUCE}@10-900\nProfilerStep#1 1000-2000", A100))

    def test_gloo_behind_operators(self) -> None:
        profile = draw(
            """
            ProfilerStep#1        0-10000
              c10d::allreduce_    10-100
              aten::mm            110-8000
            gloo:all_reduce       50-7900  thread=2
            """
        )
        assert not matches(profile)

    def test_gloo_behind_pythons_own_work(self) -> None:
        profile = draw(
            """
            ProfilerStep#1                                       0-10000
              c10d::allreduce_                                   10-100
              train.py(9): decode                                110-7950
                <built-in method loads of module at 0x7f>        120-7940
              <built-in method wait of Work object at 0x7f>      7960-7970
              aten::mm                                           8000-9000
            gloo:all_reduce                                      50-7900  thread=2
            """
        )
        assert not matches(profile)

    def test_gloo_between_operators_that_do_not_wait_for_it(self) -> None:
        profile = draw(
            """
            ProfilerStep#1        0-10000
              c10d::allreduce_    10-100
              aten::mm            110-3000
              aten::add           5000-9000
            gloo:all_reduce       50-7900  thread=2
            """
        )
        assert not matches(profile)

    def test_with_what_was_launched_before_the_recording_and_does_not_say_what_it_is(self) -> None:
        step = "ProfilerStep#1 0-10000\n  aten::mm 10-20 kernel={}@100-9000"
        table = draw(step.format("ncclDevKernel_Generic_1"), A100).table
        assert matches(Profile(table))
        unlaunched = replace(table, correlation=np.full(len(table), -1), external_id=np.full(len(table), -1))
        assert not matches(Profile(unlaunched))

    def test_without_collectives(self) -> None:
        assert not matches(draw("ProfilerStep#1 0-1000\n  aten::mm 10-900 kernel=gemm@20-800", A100))

    def test_in_a_job_with_one_rank(self) -> None:
        table = draw(IN_LINE, A100).table
        alone = Profile(replace(table, metadata=replace(table.metadata, world_size=1)))
        assert reason_not_checked(ExposedCommunication, alone) == "The job has one rank."
