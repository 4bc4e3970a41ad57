"""host-work-between-iterations: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.estimate.saving import Fix, SavingEstimates
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.serving.host_work_between_iterations import HostWorkBetweenIterations

SERVED = """
vllm/v1/core/sched/scheduler.py(9): loop                      0-1000
  execute_context_0(0)_generation_8(8)                        10-100
    aten::mm                                                  11-20     graph=gemm@20-200
  vllm/v1/core/sched/scheduler.py(50): schedule               150-290
    vllm/v1/core/sched/scheduler.py(80): allocate             160-170
  execute_context_0(0)_generation_8(8)                        300-400
    aten::mm                                                  301-310   graph=gemm@310-500
  vllm/v1/sample/sampler.py(70): forward                      490-540
  execute_context_0(0)_generation_8(8)                        600-700
    aten::mm                                                  601-610   graph=gemm@610-900
"""


class TestReports:
    def test_scheduler_and_sampler_where_the_device_waits(self) -> None:
        found = findings(HostWorkBetweenIterations, draw(SERVED, A100))
        assert {each.message: each.cost_ns for each in found} == {
            "Between iterations the device waits 90 µs for the scheduler: "
            "`vllm/v1/core/sched/scheduler.py(50): schedule`, once": 30_000,
            "Between iterations the device waits 40 µs for the sampler: "
            "`vllm/v1/sample/sampler.py(70): forward`, once": 13_333,
        }


class TestSaves:
    def test_half_of_the_waiting(self) -> None:
        scheduler = SERVED.replace("sampler.py", "other.py").replace("/sample/", "/worker/")
        assert saving_ns(HostWorkBetweenIterations, draw(scheduler, A100)) == (0, 15_000, 30_000)

    def test_the_same_when_replayed_although_no_mark_is_around_it(self) -> None:
        profile = draw(SERVED, A100)
        match = next(each for each in matches_of(HostWorkBetweenIterations, profile) if each.subject == "scheduler")
        fix = Fix(tuple(HostWorkBetweenIterations().remedy(profile, match)), match.lost)
        saved = SavingEstimates(profile).saving(fix)
        assert (saved.low_ns, saved.expected_ns, saved.high_ns) == (0, 15_000, 30_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "changed",
        [
            pytest.param(SERVED.replace("@20-200", "@20-292").replace("@310-500", "@310-545"), id="the device works"),
            pytest.param(
                SERVED.replace("150-290", "150-205").replace("490-540", "490-505"), id="the device waits for a moment"
            ),
            pytest.param(
                SERVED.replace("sched/scheduler.py", "engine/core.py").replace("sample/sampler.py", "worker/a.py"),
                id="other functions",
            ),
            pytest.param(SERVED.replace("execute_context", "## execute_context"), id="no iterations"),
        ],
    )
    def test_for(self, changed: str) -> None:
        assert matches_of(HostWorkBetweenIterations, draw(changed, A100)) == ()

    def test_for_functions_inside_an_iteration(self) -> None:
        inside = """
            execute_context_0(0)_generation_8(8)        0-500
              vllm/v1/sample/sampler.py(70): forward    1-400
                aten::mm                                2-20     kernel=gemm@10-50
                aten::mm                                300-320  kernel=gemm@310-350
        """
        assert matches_of(HostWorkBetweenIterations, draw(inside, A100)) == ()
