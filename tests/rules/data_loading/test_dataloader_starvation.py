"""dataloader-starvation: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.data_loading.dataloader_starvation import DataloaderStarvation
from tests.support.known import with_settings

LOADING = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
POLL = "multiprocessing/connection.py(253): poll"

TWO_STEPS = f"""
    ProfilerStep#1    0-9999
      {LOADING}       10-4010
      aten::mm        5000-9000
    ProfilerStep#2    10000-20000
      {LOADING}       10010-13010
      aten::mm        15000-19000
"""

WITH_STACKS = f"""
    ProfilerStep#1                                      0-9999
      train.py(5): train                                5-9998
        torch/utils/data/dataloader.py(700): __next__   9-4100
          {LOADING}                                     10-4010
            {POLL}                                      20-3020
        aten::mm                                        5000-9000
    ProfilerStep#2                                      10000-20000
      train.py(5): train                                10005-19998
        torch/utils/data/dataloader.py(700): __next__   10009-12100
          {LOADING}                                     10010-12010
            {POLL}                                      10020-11520
        aten::mm                                        15000-19000
"""


def matches(profile: Profile, **settings: float) -> tuple[Match, ...]:
    return matches_of(DataloaderStarvation(settings), profile)


def steps(*waits_us: int, step_us: int = 10_000) -> Profile:
    """One step per wait, each waiting so long for its batch."""
    starts = range(0, len(waits_us) * step_us, step_us)
    lines = [
        f"ProfilerStep#{start} {start}-{start + step_us - 1}\n  {LOADING} {start + 1}-{start + 1 + wait}"
        for start, wait in zip(starts, waits_us, strict=True)
    ]
    return draw("\n".join(lines))


class TestReports:
    def test_waits_for_the_workers(self) -> None:
        (finding,) = findings(DataloaderStarvation, draw(WITH_STACKS))
        assert finding.message == "The step waits 2.25 ms (22.5 %) for the workers of a `DataLoader`"
        assert (finding.matches, finding.confidence) == (2, "high")
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "train")]

    def test_without_stacks_all_time_in_the_loader_but_1_ms_for_each_batch_at_medium_confidence(self) -> None:
        # 4 ms and 3 ms.
        (finding,) = findings(DataloaderStarvation, draw(TWO_STEPS))
        assert (finding.cost_ns, finding.confidence) == (2_500_000, "medium")

    def test_a_loader_that_pins_waits_in_another_queue(self) -> None:
        profile = draw(WITH_STACKS.replace(POLL, "queue.py(154): get"))
        assert len(matches(profile)) == 2

    def test_loaders_of_torchdata(self) -> None:
        assert matches(draw(TWO_STEPS.replace("_MultiProcessing", "_StatefulMultiProcessing")))

    def test_batches_that_come_in_bursts_by_their_mean(self) -> None:
        profile = steps(8_000, 10, 10, 10, 8_000, 10, 10, 10, 8_000, 10, 10, 10)
        (finding,) = findings(DataloaderStarvation, profile)
        assert finding.cost_ns == 1_750_000
        assert "the thread waits once in 4 batches, as with 4 workers" in finding.details[0].text  # type: ignore[union-attr]

    def test_each_place_that_waits_is_a_finding(self) -> None:
        profile = draw(
            f"""
            ProfilerStep#1                0-30000
              train.py(5): train          10-15000
                {LOADING}                 20-5020
                  {POLL}                  21-5019
                {LOADING}                 6000-9000
                  {POLL}                  6001-8999
              train.py(15): validate      15010-30000
                {LOADING}                 15020-18020
                  {POLL}                  15021-18019
                {LOADING}                 19000-21000
                  {POLL}                  19001-20999
            """
        )
        found = findings(DataloaderStarvation, profile)
        assert [finding.places[0].function for finding in found] == ["train", "validate"]

    def test_what_the_loader_was_given_where_it_is_known(self) -> None:
        loaders = [
            {"dataset": "Images", "num_workers": 2, "prefetch_factor": 2},
            {"dataset": "Others", "num_workers": 0},
        ]
        known = with_settings(draw(WITH_STACKS), threads={"available_cores": 8}, loaders=loaders)
        (finding,) = findings(DataloaderStarvation, known)
        assert " (`num_workers=2`, 8 cores available, `prefetch_factor=2`)" in str(finding.details[0])

    def test_not_where_it_may_be_another_loader(self) -> None:
        loaders = [{"dataset": "Images", "num_workers": 2}, {"dataset": "Others", "num_workers": 4}]
        known = with_settings(draw(WITH_STACKS), threads={"available_cores": 8}, loaders=loaders)
        (finding,) = findings(DataloaderStarvation, known)
        assert "num_workers=2" not in str(finding.details[0])

    @pytest.mark.parametrize(
        ("busy", "advice"), [(0.08, "even more than the process has cores"), (0.9, "up to the number of")]
    )
    def test_how_long_the_workers_compute(self, busy: float, advice: str) -> None:
        loaders = [{"dataset": "Images", "num_workers": 1}]
        known = with_settings(draw(WITH_STACKS), busy, threads={"available_cores": 8}, loaders=loaders)
        (finding,) = findings(DataloaderStarvation, known)
        assert f"; each worker computes for {busy:.0%} of the time. ".replace("%", " %") in str(finding.details[0])
        assert advice in finding.fix


class TestSaves:
    def test_all_waits_where_twice_the_workers_keep_up(self) -> None:
        # Polls of 3 ms and of 1.5 ms.
        assert saving_ns(DataloaderStarvation, draw(WITH_STACKS)) == (0, 2_250_000, 2_250_000)

    @pytest.mark.parametrize(("workers", "expected_ns", "advice"), [(2, 2_250_000, "Give"), (4, 0, "Make loading")])
    def test_no_more_workers_than_cores(self, workers: int, expected_ns: int, advice: str) -> None:
        loaders = [{"dataset": "Images", "num_workers": workers}]
        known = with_settings(draw(WITH_STACKS), threads={"available_cores": 4}, loaders=loaders)
        assert saving_ns(DataloaderStarvation, known) == (0, expected_ns, 2_250_000)
        assert findings(DataloaderStarvation, known)[0].fix.startswith(advice)

    @pytest.mark.parametrize(
        ("cores", "busy", "expected_ns"),
        [
            (2, None, 5_000_000),  # of steps of 10 ms 8 ms are waits: twice the workers need 5 ms for a batch
            (2, 0.6, 7_000_000),  # on 2 cores 3.3 workers can compute for 60 % of the time each
            (2, 0.25, 7_500_000),  # four times as many at most
            (2, 0.0, 7_500_000),
            (2, 1.0, 5_000_000),
            (1, 1.0, 0),
        ],
    )
    def test_more_workers_than_cores_where_they_wait(self, cores: int, busy: float | None, expected_ns: int) -> None:
        threads, loaders = {"available_cores": cores}, [{"dataset": "Images", "num_workers": 1}]
        profile = with_settings(steps(9_000, 9_000), busy, threads=threads, loaders=loaders)
        assert saving_ns(DataloaderStarvation, profile)[1] == pytest.approx(expected_ns, rel=1e-3)

    def test_workers_of_a_loader_that_is_gone(self) -> None:
        """The job kept only the iterator, so that nothing is known of the loader itself."""
        profile = with_settings(steps(9_000, 9_000), 0.25, 1, threads={"available_cores": 2})
        assert saving_ns(DataloaderStarvation, profile)[1] == pytest.approx(7_500_000, rel=1e-3)

    def test_half_of_the_step_where_the_workers_are_slower_than_that(self) -> None:
        # Of steps of 10 ms 8 ms are waits, and 1 ms to take the batch over: twice the workers need 5 ms for a batch.
        low, expected, high = saving_ns(DataloaderStarvation, steps(9_000, 9_000))
        assert (low, high) == (0, 8_000_000)
        assert expected == pytest.approx(5_000_000, rel=1e-3)

    def test_only_what_no_device_hides(self) -> None:
        # The first wait lasts until 3010; the device still runs what the step before launched, until 2010. The second
        # one takes 2 ms.
        text = TWO_STEPS.replace(
            "ProfilerStep#1    0-9999", "aten::bmm 0-4 kernel=gemm@2-2010\n    ProfilerStep#1    5-9999"
        )
        assert saving_ns(DataloaderStarvation, draw(text, A100)) == (0, 1_500_000, 1_500_000)


class TestStaysQuiet:
    def test_without_workers(self) -> None:
        assert not matches(draw(TWO_STEPS.replace("_MultiProcessing", "_SingleProcess")))

    def test_when_batches_are_there(self) -> None:
        assert matches(steps(2_000, 2_000))
        assert not matches(steps(1_999, 1_999))
        assert matches(steps(1_999, 1_999), min_wait_ns=500_000)

    def test_after_a_single_wait(self) -> None:
        assert matches(steps(5_000, 5_000))
        assert not matches(steps(5_000, 10))
        assert not matches(steps(5_000, 5_000), min_waits=3)

    def test_for_one_wait_that_is_much_longer_than_the_others(self) -> None:
        # After 1 ms for taking the batch over: 8, 4 and 4 ms, then 8.01 ms.
        assert len(matches(steps(9_000, 5_000, 5_000))) == 3
        assert len(matches(steps(9_010, 5_000, 5_000))) == 2
        assert not matches(steps(9_010, 5_000))

    def test_below_a_twentieth_of_the_step(self) -> None:
        assert matches(steps(3_000, 3_000, step_us=40_000))
        assert not matches(steps(2_998, 2_998, step_us=40_000))
        assert matches(steps(2_998, 2_998, step_us=40_000), min_share=0.01)

    def test_when_the_process_is_slow_to_unpack_its_batches(self) -> None:
        text = WITH_STACKS.replace(POLL, "multiprocessing/connection.py(208): recv_bytes")
        assert not matches(draw(text))

    def test_for_what_waits_elsewhere(self) -> None:
        text = WITH_STACKS.replace(LOADING, "aten::stack")
        assert not matches(draw(text))

    def test_while_the_device_still_works(self) -> None:
        text = TWO_STEPS.replace(
            "ProfilerStep#1    0-9999", "aten::bmm 0-4 kernel=gemm@2-13000\n    ProfilerStep#1    5-9999"
        )
        assert not matches(draw(text, A100))

    @pytest.mark.parametrize(
        "sign", ["torch/utils/data/dataloader.py(1100): __init__", "torch/utils/data/dataloader.py(1233): _reset"]
    )
    def test_for_the_first_batch_of_an_epoch(self, sign: str) -> None:
        epoch = f"""
            ProfilerStep#1         0-9999
              {sign}               1-9
              {LOADING}            10-6010
                {POLL}             11-6009
            ProfilerStep#2         10000-20000
              {sign}               10001-10009
              {LOADING}            10010-15010
                {POLL}             10011-15009
        """
        assert matches(draw(epoch.replace(sign, "data.py(3): __init__")))
        assert not matches(draw(epoch))

    def test_for_the_first_batch_of_an_epoch_without_stacks(self) -> None:
        seed = "aten::random_         1-9   dims=,-  types=long,None"
        epoch = f"""
            ProfilerStep#1         0-9999
              {seed}
              {LOADING}            10-6010
            ProfilerStep#2         10000-20000
              {seed.replace("1-9", "10001-10009")}
              {LOADING}            10010-15010
        """
        assert not matches(draw(epoch))
        assert matches(draw(epoch.replace("dims=,-", "dims=64,-")))

    def test_for_batches_of_other_threads_loaders(self) -> None:
        profile = draw(TWO_STEPS + "aten::random_ 11000-11001 dims=,- types=long,None thread=2")
        assert len(matches(profile)) == 2

    def test_when_only_the_first_batch_takes_long_and_no_step_waits_for_it(self) -> None:
        profile = draw(f"{LOADING} 0-9000\nProfilerStep#1 10000-20000\n  {LOADING} 10010-10510")
        assert not matches(profile)
