"""host-work-holds-device: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.findings import findings_of
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, matches_of, saving_ns
from tb_tidy_plugin.rules.launch.host_work_holds_device import HostWorkHoldsDevice
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.words.causes import Cause
from tests.support.recordings import shared

PREPARED = """
    ProfilerStep#1                       0-10000
      train.py(9): step                  1-9999
        images.py(5): prepare            10-3010
          PIL/Image.py(20): resize       10-2009
          numpy/core.py(30): normalize   2010-2909
        aten::mm                         3011-3100  kernel=gemm@3100-9900
"""
"""Of a step of 10 ms the device waits for `prepare` for 3 ms."""


def job(text: str = PREPARED) -> Profile:
    return draw(text, A100)


class TestReports:
    def test_work_before_the_first_launch_by_function(self) -> None:
        (evidence,) = findings_of(job(), HostWorkHoldsDevice(), matches_of(HostWorkHoldsDevice, job()))
        finding = evidence.finding
        # From 10 µs on, when Python begins, to the launch at 3,010.
        assert finding.cost_ns == 3_000_000
        assert finding.message == (
            "The device waits for host work for 3 ms of a step (30 %): `resize` (PIL/Image.py:20) for 2 ms, "
            "`normalize` (numpy/core.py:30) for 899 µs, `prepare` (images.py:5) for 102 µs"
        )
        assert [(place.file, place.function) for place in finding.places] == [("images.py", "prepare")]

    def test_its_events_are_the_outermost_calls_that_launch_nothing(self) -> None:
        profile = job()
        (match,) = matches_of(HostWorkHoldsDevice, profile)
        assert [profile.name(row) for row in match.events] == ["images.py(5): prepare"]

    def test_a_function_that_computes_between_its_launches(self) -> None:
        profile = job(
            """
            ProfilerStep#1         0-10000
              train.py(9): step    1-9999
                aten::mm           10-100     kernel=gemm@50-150
                aten::mm           4000-4100  kernel=gemm@4100-9999
            """
        )
        (match,) = matches_of(HostWorkHoldsDevice, profile)
        assert match.lost == ((150_000, 4_000_000),)
        assert [profile.name(row) for row in match.events] == ["train.py(9): step"]

    def test_operators_on_the_cpu_without_stacks(self) -> None:
        profile = job(
            """
            ProfilerStep#1     0-10000
              aten::max        10-3000   dims=3000x3000  types=float
              aten::mm         3010-3100  kernel=gemm@3100-9900
            """
        )
        (match,) = matches_of(HostWorkHoldsDevice, profile)
        assert str(match.evidence.where) == "`aten::max` for 2.99 ms"

    def test_each_own_function_apart(self) -> None:
        profile = job(
            """
            ProfilerStep#1                  0-20000
              train.py(9): step             1-19999
                images.py(5): prepare       10-3000
                aten::mm                    3010-3100  kernel=gemm@3100-9900
                boxes.py(5): postprocess    4000-14000
                aten::mm                    14010-14100  kernel=gemm@14100-19900
            """
        )
        found = findings_of(profile, HostWorkHoldsDevice(), matches_of(HostWorkHoldsDevice, profile))
        assert [each.finding.places[0].function for each in found] == ["postprocess", "prepare"]

    def test_it_is_not_sure_where_recording_takes_much_of_the_time(self) -> None:
        (sparse,) = matches_of(HostWorkHoldsDevice, job())
        assert (sparse.confidence, sparse.evidence.stretch) == ("high", "hardly")
        calls = "\n".join(f"          numpy/core.py(1): next  {at}-{at + 5}" for at in range(20, 2900, 10))
        inner = [line for line in PREPARED.splitlines() if "PIL" not in line and "numpy" not in line]
        inner.insert(4, calls)
        (dense,) = matches_of(HostWorkHoldsDevice, job("\n".join(inner)))
        assert (dense.confidence, dense.evidence.stretch) == ("medium", "somewhat")


class TestSaves:
    def test_all_but_handing_over_beside_a_longer_step(self) -> None:
        assert saving_ns(HostWorkHoldsDevice, job()) == (0, 2_000_000, 3_000_000)

    def test_with_workers_where_it_is_longer_than_the_rest(self) -> None:
        longer = PREPARED.replace("3100-9900", "3100-4000").replace("0-10000", "0-4000").replace("1-9999", "1-3999")
        (match,) = matches_of(HostWorkHoldsDevice, job(longer))
        assert match.evidence.at_once == 3  # 3 of 4 ms are host work, so 3 workers prepare in 1 ms
        assert saving_ns(HostWorkHoldsDevice, job(longer)) == (0, 2_000_000, 3_000_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "work",
        [
            pytest.param("images.py(5): prepare  10-900", id="less than 1 ms"),
            pytest.param("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__  10-3000", id="a loader"),
            pytest.param("aten::item  10-3000  wait=11-2999", id="a wait for the device"),
        ],
    )
    def test_for(self, work: str) -> None:
        end = int(work.partition("10-")[2].split()[0])
        launch = f"aten::mm {end + 1}-{end + 50} kernel=gemm@{end + 50}-9900"
        profile = job(f"ProfilerStep#1 0-10000\n  train.py(9): step 1-9999\n    {work}\n    {launch}")
        assert matches_of(HostWorkHoldsDevice, profile) == ()

    def test_less_than_a_twentieth_of_the_step(self) -> None:
        profile = job(PREPARED.replace("9999", "79999").replace("10000", "80000").replace("9900", "79900"))
        assert matches_of(HostWorkHoldsDevice, profile) == ()

    def test_an_operator_that_launches_late(self) -> None:
        profile = job(
            """
            ProfilerStep#1         0-10000
              aten::conv2d         10-3100
                aten::empty        20-2900
                aten::cudnn_conv   2910-3090  kernel=conv@3000-9900
            """
        )
        assert matches_of(HostWorkHoldsDevice, profile) == ()

    def test_work_behind_a_busy_device(self) -> None:
        profile = job(
            """
            ProfilerStep#1                  0-10000
              train.py(9): step             1-9999
                aten::mm                    10-100     kernel=gemm@50-6000
                images.py(5): prepare       110-5000
                aten::mm                    5010-5100  kernel=gemm@6000-9900
            """
        )
        assert matches_of(HostWorkHoldsDevice, profile) == ()

    def test_work_that_is_scattered_over_many_functions(self) -> None:
        lines = [f"        PIL/{at}.py(1): open {10 + 300 * at}-{300 * at + 309}" for at in range(10)]
        profile = job(
            "\n".join(
                [
                    "    ProfilerStep#1 0-10000",
                    "      train.py(9): step 1-9999",
                    *lines,
                    "        aten::mm 3010-3100  kernel=gemm@3100-9900",
                ]
            )
        )
        assert matches_of(HostWorkHoldsDevice, profile) == ()
        assert matches_of(HostWorkHoldsDevice({"min_named": 0.1}), profile) != ()


class TestRecordings:
    def test_preprocessing_of_a_pipeline(self) -> None:
        """An expert's first word on this recording: 57 % of the step is image preprocessing on the CPU."""
        (file,) = find_traces(shared("traces/h100_timesformer_pipeline"))
        report = read_file(file, Job(rules=(HostWorkHoldsDevice(),))).report
        (finding,) = report.findings
        assert finding.share == pytest.approx(0.58, abs=0.01)
        assert "`normalize` (transformers/image_transforms.py:390) for 106 ms" in finding.message
        entry = report.ledger.entries[0]
        assert (entry.cause, entry.finding_id) == (Cause.HOST_WORK, finding.id)
