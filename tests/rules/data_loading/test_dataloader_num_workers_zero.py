"""dataloader-num-workers-zero: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rules.data_loading.dataloader_num_workers_zero import DataloaderNumWorkersZero
from tests.support.known import with_settings

LOADING = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

TWO_STEPS = f"""
    ProfilerStep#1    0-9999
      {LOADING}       10-4010
      aten::mm        5000-9000
    ProfilerStep#2    10000-20000
      {LOADING}       10010-12010
      aten::mm        15000-19000
"""


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(DataloaderNumWorkersZero, profile)


def one_step(loading_us: int, step_us: int) -> Profile:
    return draw(f"ProfilerStep#1 0-{step_us}\n  {LOADING} 1-{1 + loading_us}")


def batches(lengths_us: tuple[int, ...]) -> Profile:
    steps = (
        f"ProfilerStep#{at} {20_000 * at}-{20_000 * at + 19_999}\n  {LOADING} {20_000 * at + 1}-{20_000 * at + length}"
        for at, length in enumerate(lengths_us)
    )
    return draw("\n".join(steps))


class TestReports:
    def test_less_where_the_user_sets_less(self) -> None:
        small = draw(f"ProfilerStep#1 0-40000\n  {LOADING} 1-991")
        assert not matches(small)
        assert matches_of(DataloaderNumWorkersZero({"min_share": 0.01, "min_ns": 900_000}), small)

    def test_loading_that_the_steps_wait_for(self) -> None:
        (finding,) = findings(DataloaderNumWorkersZero, draw(TWO_STEPS))
        assert finding.message == (
            "`DataLoader` loads each batch in the training process, which takes 3 ms of a step (30 %)"
        )
        assert (finding.matches, finding.matches_per_step) == (2, 1.0)
        assert finding.severity == "high"

    @pytest.mark.parametrize(("inner_us", "where"), [(2000, ", 66.7 % of it in `zoom` (scipy/zoom.py:7)"), (500, "")])
    def test_the_function_that_takes_most_of_it(self, inner_us: int, where: str) -> None:
        """The function around the loop takes the rest, and does not load."""
        profile = draw(
            f"""
            ProfilerStep#1                                          0-10000
              train.py(3): train                                    1-9999
                {LOADING}  10-3010
                  scipy/zoom.py(7): zoom                            20-{20 + inner_us}
            """
        )
        (finding,) = findings(DataloaderNumWorkersZero, profile)
        assert finding.message.partition("(30 %)")[2] == where

    @pytest.mark.parametrize(
        ("calls", "advice"),
        [
            (3, "`zoom` runs 3 times per batch: work on a whole batch at once, keep its results, or make the"),
            (1, "Make `zoom` cheaper, or do its work once, beforehand. Then pass `num_workers`"),
        ],
    )
    @pytest.mark.parametrize("name", ["scipy/zoom.py(7): zoom", "zoom"])
    def test_what_to_change_in_the_loading_itself(self, name: str, calls: int, advice: str) -> None:
        """A function, or an operator where no function but PyTorch's own runs."""
        items = "\n".join(f"    {name} {20 + 900 * at}-{900 * at + 900}" for at in range(calls))
        (finding,) = findings(DataloaderNumWorkersZero, draw(f"ProfilerStep#1 0-9000\n  {LOADING} 10-3010\n{items}"))
        assert finding.fix.startswith(advice)

    def test_several_functions_with_their_lines(self) -> None:
        profile = draw(
            f"""
            ProfilerStep#1                    0-10000
              {LOADING}                       10-3010
                data.py(7): decode            20-1520
                data.py(19): collate          1600-2800
            """
        )
        (finding,) = findings(DataloaderNumWorkersZero, profile)
        assert finding.message.endswith(", 50 % of it in `decode` (data.py:7), 40 % of it in `collate` (data.py:19)")

    def test_the_loop_over_the_loader_is_the_place(self) -> None:
        profile = draw(
            f"""
            train.py(5): train                                                0-20000
              torch/utils/data/dataloader.py(700): __next__                   10-4100
                <built-in method _record_function_enter_new of x at 0x1>      20-30
                  {LOADING}                                                   21-4021
                torch/utils/data/_utils/fetch.py(48): fetch                   40-4000
            """
        )
        (finding,) = findings(DataloaderNumWorkersZero, profile)
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "train")]

    def test_each_place_that_loads_is_a_finding(self) -> None:
        profile = draw(
            f"""
            ProfilerStep#1            0-30000
              train.py(5): train      10-10000
                {LOADING}             20-5020
              train.py(15): validate  10010-20000
                {LOADING}             10020-13020
            """
        )
        found = findings(DataloaderNumWorkersZero, profile)
        assert [(finding.places[0].function, finding.cost_ns) for finding in found] == [
            ("train", 5_000_000),
            ("validate", 3_000_000),
        ]

    def test_a_place_that_loads_little_is_none_beside_one_that_loads_much(self) -> None:
        profile = draw(
            f"""
            ProfilerStep#1            0-30000
              train.py(5): train      10-10000
                {LOADING}             20-5020
              train.py(15): validate  10010-20000
                {LOADING}             10020-10120
            """
        )
        assert [finding.places[0].function for finding in findings(DataloaderNumWorkersZero, profile)] == ["train"]

    def test_loaders_of_torchdata(self) -> None:
        assert matches(draw(TWO_STEPS.replace("_Single", "_StatefulSingle")))

    def test_without_marked_steps_batches_make_the_steps(self) -> None:
        profile = draw(f"{LOADING} 0-4000\naten::mm 4100-9000\n{LOADING} 10000-13000\naten::mm 13100-19000")
        assert matches(profile)

    @pytest.mark.parametrize(
        ("cores", "loading_us", "workers"), [(8, 3_000, 1), (8, 7_500, 3), (3, 9_000, 3), (2, 9_000, 2)]
    )
    def test_as_many_workers_as_hide_the_loading_where_the_cores_are_known(
        self, cores: int, loading_us: int, workers: int
    ) -> None:
        profile = with_settings(one_step(loading_us, 10_000), threads={"available_cores": cores, "intra_op": 1})
        (finding,) = findings(DataloaderNumWorkersZero, profile)
        assert finding.fix.startswith(f"Pass `num_workers={workers}` and")
        (why, _) = finding.details
        assert f"; the process may use {cores} cores." in str(why)

    def test_any_number_of_workers_where_nothing_is_known(self) -> None:
        (finding,) = findings(DataloaderNumWorkersZero, draw(TWO_STEPS))
        assert finding.fix.startswith("Pass `num_workers` and")


class TestSaves:
    def test_all_loading_of_a_step_at_most(self) -> None:
        # 4 ms in the first step and 2 ms in the second; handing over each of the batches is expected to take 1 ms.
        assert saving_ns(DataloaderNumWorkersZero, draw(TWO_STEPS)) == (0, 2_000_000, 3_000_000)

    def test_nothing_for_what_was_loaded_outside_the_steps(self) -> None:
        profile = draw(f"{LOADING} 0-9000\nProfilerStep#1 10000-20000\n  {LOADING} 10010-12010")
        assert saving_ns(DataloaderNumWorkersZero, profile) == (0, 1_000_000, 2_000_000)

    @pytest.mark.parametrize(
        ("cores", "threads", "expected_us"),
        [
            (2, 2, 1_000),  # half of the loading at best, and half of that
            (4, 4, 1_500),
            (2, 1, 3_000),  # 4 ms on two cores: 1 ms is left for handing over
            (8, 1, 3_000),
        ],
    )
    def test_no_more_than_the_cores_allow(self, cores: int, threads: int, expected_us: int) -> None:
        settings = {"available_cores": cores, "intra_op": threads}
        profile = with_settings(one_step(4_000, 10_000), threads=settings)
        assert saving_ns(DataloaderNumWorkersZero, profile) == (0, expected_us * 1_000, 4_000_000)

    @pytest.mark.parametrize(
        "name", ["<built-in function sleep>", "<built-in method recv_into of _socket.socket object at 0x7f>"]
    )
    @pytest.mark.parametrize(
        ("threads", "expected_us"),
        [
            (2, 2_500),  # 2 of 4 ms need a core: half of them at best, half of that, and all of the others
            (1, 3_000),
        ],
    )
    def test_all_of_what_needs_no_core(self, name: str, threads: int, expected_us: int) -> None:
        text = f"ProfilerStep#1 0-10000\n  {LOADING} 1-4001\n    {name} 101-2101"
        profile = with_settings(draw(text), threads={"available_cores": 2, "intra_op": threads})
        assert saving_ns(DataloaderNumWorkersZero, profile) == (0, expected_us * 1_000, 4_000_000)
        (finding,) = findings(DataloaderNumWorkersZero, profile)
        assert "; 50 % of the loading sleeps or waits; the process" in str(finding.details[0])

    @pytest.mark.parametrize(
        "name",
        ["<built-in function sleepy>", "<built-in method read of _io.BufferedReader object at 0x7f>", "aten::mm"],
    )
    def test_no_more_of_what_may_need_one(self, name: str) -> None:
        text = f"ProfilerStep#1 0-10000\n  {LOADING} 1-4001\n    {name} 101-2101"
        profile = with_settings(draw(text), threads={"available_cores": 2, "intra_op": 2})
        assert saving_ns(DataloaderNumWorkersZero, profile)[1] == 1_000_000
        assert "sleeps" not in str(findings(DataloaderNumWorkersZero, profile)[0].details[0])

    def test_all_cores_but_the_host_s_own_where_a_device_does_the_work(self) -> None:
        step = f"ProfilerStep#1 0-10000\n  {LOADING} 1-4001\n  aten::mm 5000-5010 kernel=gemm@5005-9900"
        profile = with_settings(draw(step, A100), threads={"available_cores": 2, "intra_op": 2})
        assert saving_ns(DataloaderNumWorkersZero, profile)[1] == 3_000_000


class TestStaysQuiet:
    def test_on_one_core(self) -> None:
        profile = with_settings(draw(TWO_STEPS), threads={"available_cores": 1})
        assert "one core" in reason_not_checked(DataloaderNumWorkersZero, profile)

    def test_with_workers_however_long_they_take(self) -> None:
        assert not matches(draw(TWO_STEPS.replace("_SingleProcess", "_MultiProcessing")))

    def test_below_a_twentieth_of_the_step(self) -> None:
        assert matches(one_step(loading_us=2_000, step_us=40_000))
        assert not matches(one_step(loading_us=1_990, step_us=40_000))

    def test_below_a_millisecond_per_step(self) -> None:
        assert matches(one_step(loading_us=1_000, step_us=2_000))
        assert not matches(one_step(loading_us=999, step_us=2_000))

    @pytest.mark.parametrize("lengths_us", [(2_884, 271, 305, 297), (442, 291, 3_818, 349), (5_974, 8_621, 343, 316)])
    def test_when_the_machine_was_busy_while_some_batches_were_taken_from_memory(
        self, lengths_us: tuple[int, ...]
    ) -> None:
        # As recorded on one core with four other processes: most batches are as short as on a quiet one.
        assert not matches(batches(lengths_us))
        assert matches(batches((2_884, 1_271, 1_305, 1_297)))

    def test_when_only_the_first_batch_takes_long_and_no_step_waits_for_it(self) -> None:
        profile = draw(f"{LOADING} 0-9000\nProfilerStep#1 10000-20000\n  {LOADING} 10010-10510")
        assert not matches(profile)

    @pytest.mark.parametrize("name", ["aten::stack", "## _SingleProcessDataLoaderIter.__next__ ##"])
    def test_for_other_events(self, name: str) -> None:
        assert not matches(draw(f"ProfilerStep#1 0-10000\n  {name} 10-9000"))

    def test_on_a_gpu_when_loading_is_a_small_part_of_the_step(self) -> None:
        profile = draw(f"ProfilerStep#1 0-40000\n  {LOADING} 1-1501\n  aten::mm 2000-2010 kernel=gemm@2005-39000", A100)
        assert not matches(profile)
