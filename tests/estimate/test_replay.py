"""Replays: laws on made-up machines and real recordings, and what single edits do."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tidy_plugin.estimate import host
from tb_tidy_plugin.estimate import replay as replaying
from tb_tidy_plugin.estimate.saving import Fix, SavingEstimates
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit import Edit, Overlap, Remove, Scale, Unblock
from tb_tidy_plugin.rulekit.testing import A100, draw, row_of
from tb_tidy_plugin.trace.columns import DEVICE_WORK, Category
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.known import with_settings
from tests.support.made_up_machine import Instruction, recorded
from tests.support.recordings import shared, shared_names

US = 1000

INSTRUCTIONS = st.builds(
    Instruction,
    host_us=st.integers(1, 200),
    kernel_us=st.sampled_from([0, 0, 1, 20, 150, 600]),
    stream=st.integers(0, 2),
    joins=st.booleans(),
    awaits=st.sampled_from([0, 0, 1, 2, 3]),
    sync=st.sampled_from(["", "", "", "stream", "device", "event"]),
    kernels=st.sampled_from([1, 1, 1, 5]),
    backward=st.sampled_from([False, False, True]),
)
PROGRAMS = st.lists(st.lists(INSTRUCTIONS, min_size=1, max_size=8), min_size=1, max_size=3)
KINDS = st.lists(st.sampled_from(["remove", "halve", "unblock", "overlap", "kernel"]), min_size=1, max_size=4)


def edit_of(profile: Profile, kind: str, at: int) -> Edit:
    operators = np.flatnonzero(profile.table.category == Category.OPERATOR).tolist()
    row = operators[at % len(operators)]
    work = np.flatnonzero(profile.table.is_category(DEVICE_WORK)).tolist() or operators
    match kind:
        case "remove":
            return Remove((row,))
        case "halve":
            return Scale((row,), 0.5, 0.25, 0.75)
        case "unblock":
            return Unblock(row)
        case "overlap":
            return Overlap((work[at % len(work)],))
        case _:
            return Scale((work[at % len(work)],), 0.5, 0.25, 0.75)


def expected_us(profile: Profile, *edits: Edit) -> float:
    saving = SavingEstimates(profile).saving(Fix(edits))
    assert saving.basis == ("replayed",)
    assert 0 <= saving.low_ns <= saving.expected_ns <= saving.high_ns
    return saving.expected_ns / US


class TestLaws:
    @pytest.mark.parametrize("kernels", [2, 5, 9])
    def test_a_wait_that_ends_within_a_graph_waits_for_none_of_its_later_kernels(self, kernels: int) -> None:
        program = [Instruction(1, kernel_us=1, stream=1, kernels=kernels), Instruction(1, sync="stream")]
        assert SavingEstimates(recorded([program])).residual == 0

    @settings(max_examples=30)
    @given(PROGRAMS)
    def test_without_an_edit_the_recording_comes_out(self, program: list[list[Instruction]]) -> None:
        estimates = SavingEstimates(recorded(program))
        assert estimates.residual == 0
        assert estimates.saving(Fix(())).high_ns == 0

    @settings(max_examples=30)
    @given(PROGRAMS, KINDS, st.integers(0, 20))
    def test_no_edit_makes_a_step_slower_and_more_edits_never_save_less(
        self, program: list[list[Instruction]], kinds: list[str], first: int
    ) -> None:
        profile = recorded(program)
        edits = [edit_of(profile, kind, first + at) for at, kind in enumerate(kinds)]
        savings = [expected_us(profile, *some) for some in itertools.accumulate([edit] for edit in edits)]
        in_line = all(not isinstance(edit, Overlap) for edit in edits)  # what runs beside can become the longer part
        assert all(saving >= 0 for saving in savings)
        assert savings == sorted(savings) or not in_line

    @settings(max_examples=20)
    @given(st.lists(st.lists(st.integers(1, 200), min_size=2, max_size=8), min_size=1, max_size=3))
    def test_on_one_lane_together_is_never_more_than_the_sum(self, program: list[list[int]]) -> None:
        profile = recorded([[Instruction(host_us) for host_us in step] for step in program])
        edits = [edit_of(profile, kind, at) for at, kind in enumerate(("remove", "halve", "halve", "remove"))]
        assert expected_us(profile, *edits) <= sum(expected_us(profile, edit) for edit in edits) + len(edits)

    @settings(max_examples=20)
    @given(
        st.lists(
            st.builds(Instruction, st.integers(1, 50), st.integers(1, 50), sync=st.just("stream")),
            min_size=1,
            max_size=8,
        )
    )
    def test_a_wait_under_a_busy_device_saves_nothing(self, program: list[Instruction]) -> None:
        """One stream is busy for longer than the whole step; whatever the host waits for on the other one is free."""
        beside = [replace(instruction, stream=1) for instruction in program]
        profile = recorded([[Instruction(1, 5_000), *beside]])
        waits = np.flatnonzero(profile.table.category == Category.OPERATOR).tolist()
        assert expected_us(profile, *(Unblock(row) for row in waits)) == 0
        assert expected_us(profile, *(Unblock(row) for row in waits), Remove(tuple(waits[1:]))) == 0

    @pytest.mark.compiled
    @pytest.mark.skipif(not replaying.IS_COMPILED, reason="the loops were not compiled")
    @settings(max_examples=30)
    @given(PROGRAMS, KINDS, st.integers(0, 20), st.sampled_from([None, 100_000]))
    def test_the_compiled_loops_replay_as_those_in_python(
        self, program: list[list[Instruction]], kinds: list[str], first: int, true_step_ns: int | None
    ) -> None:
        profile = recorded(program)
        fix = Fix([edit_of(profile, kind, first + at) for at, kind in enumerate(kinds)])
        found = []
        for is_compiled in (True, False):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(replaying, "IS_COMPILED", is_compiled)
                patch.setattr(host, "IS_COMPILED", is_compiled)
                found.append(SavingEstimates(profile, true_step_ns).saving(fix))
        assert found[0] == found[1]

    @pytest.mark.compiled
    @pytest.mark.skipif(not host.IS_COMPILED, reason="the loops were not compiled")
    @given(
        st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=100),
        st.lists(st.integers(0, 60), max_size=5),
    )
    def test_the_compiled_loop_cuts_any_events_as_sorting_does(
        self, events: list[tuple[int, int]], marks: list[int]
    ) -> None:
        starts, durations = np.array(sorted(events), np.int64).T
        ends = starts + durations
        edges = np.sort(np.clip(np.array(marks, np.int64), starts[0], ends.max()))
        found = host.cut_lane(starts.copy(), ends, edges)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(host, "IS_COMPILED", False)
            expected = host.cut_lane(starts.copy(), ends, edges)
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)

    @pytest.mark.sampled
    @pytest.mark.parametrize("name", shared_names("traces"))
    def test_on_real_recordings(self, name: str) -> None:
        for file in find_traces(shared(f"traces/{name}")):
            profile = Profile(read_trace(file.path))
            estimates = SavingEstimates(profile)
            if profile.steps.items:
                assert estimates.residual is not None
                assert estimates.residual < 0.01
                operators = np.flatnonzero(profile.table.category == Category.OPERATOR)
                few, more = Scale(tuple(operators[::7].tolist()), 0.5, 0.2, 0.8), Remove(tuple(operators[::5].tolist()))
                one, both = (estimates.saving(Fix(edits)).expected_ns for edits in ((few,), (few, more)))
                assert 0 <= one <= both


class TestHost:
    PROFILE = draw(
        "ProfilerStep#1  0-1000\n  aten::mm  100-300\n    aten::add  150-250\n"
        "ProfilerStep#2  1001-2001\n  aten::mul  1100-1300"
    )

    def test_removed_work_is_saved_per_step(self) -> None:
        assert expected_us(self.PROFILE, Remove((row_of(self.PROFILE, "aten::mm"),))) == 100

    def test_work_inside_removed_work_goes_once(self) -> None:
        edits = [Remove((row_of(self.PROFILE, name),)) for name in ("aten::mm", "aten::add")]
        assert expected_us(self.PROFILE, *edits) == 100

    def test_bounds_come_from_the_range_of_the_factor_and_what_recording_takes(self) -> None:
        saving = SavingEstimates(self.PROFILE).saving(Fix([Scale((row_of(self.PROFILE, "aten::mul"),), 0.5, 0.2, 0.9)]))
        # At most, what stays finds more in its caches, too: half of what goes.
        assert (saving.expected_ns, saving.high_ns) == (50 * US, (80 + 40) * US)
        assert 9 * US < saving.low_ns < 10 * US

    def test_only_lost_time_is_saved(self) -> None:
        lost = [(1_250_000, 1_400_000)]
        saving = SavingEstimates(self.PROFILE).saving(Fix([Remove((row_of(self.PROFILE, "aten::mul"),))], lost))
        assert saving.expected_ns == 75 * US

    def test_work_outside_the_lost_time_stays(self) -> None:
        profile = draw("ProfilerStep#1  0-1000\n  load  0-600\n    aten::mm  400-500  kernel=gemm@450-950", A100)
        fix = Fix([Overlap((row_of(profile, "load"),))], [(0, 400_000)])
        assert SavingEstimates(profile).saving(fix).expected_ns == 400 * US

    def test_what_runs_beside_the_rest_takes_at_least_its_own_time(self) -> None:
        profile = draw("ProfilerStep#1  0-1000\n  load  100-900")
        saving = SavingEstimates(profile).saving(Fix([Overlap((row_of(profile, "load"),))]))
        assert (saving.low_ns, saving.expected_ns, saving.high_ns) == (0, 200 * US, 800 * US)

    def test_the_backward_pass_of_another_thread_is_waited_for(self) -> None:
        profile = draw(
            "ProfilerStep#1  0-1000\n"
            "  aten::mm  100-200\n"
            "autograd::engine::evaluate_function: MmBackward0  300-700  thread=2\n"
            "  aten::t  350-450  thread=2\n"
        )
        assert expected_us(profile, Remove((row_of(profile, "aten::t"),))) == 100
        assert expected_us(profile, Remove((row_of(profile, "aten::mm"),))) == 100


class TestDevice:
    def test_a_wait_where_the_device_is_the_bottleneck_saves_nothing(self) -> None:
        profile = recorded([[Instruction(5, kernel_us=500) for _ in range(4)] + [Instruction(1, sync="device")]] * 3)
        assert expected_us(profile, *(Unblock(row_of(profile, f"op{at}")) for at in (4, 9))) <= 2 * 10

    def test_a_wait_that_lets_the_device_run_dry_saves_its_bubble(self) -> None:
        step = [Instruction(100, kernel_us=100), Instruction(1, sync="device"), Instruction(100, kernel_us=100)]
        profile = recorded([[*step, Instruction(1, sync="device")]])
        assert expected_us(profile, Unblock(row_of(profile, "op1"))) == pytest.approx(100, abs=5)

    def test_a_host_that_runs_ahead_saves_nothing(self) -> None:
        profile = recorded([[Instruction(50, kernel_us=400) for _ in range(5)] + [Instruction(1, sync="device")]])
        assert expected_us(profile, Scale((row_of(profile, "op3"),), 1.0, 1.0, 1.0)) == 0
        assert expected_us(profile, Scale((row_of(profile, "kernel3.0"),), 0.5, 0.5, 0.5)) == 200

    def test_kernels_of_a_host_that_is_too_slow_save_nothing(self) -> None:
        profile = recorded([[Instruction(400, kernel_us=50) for _ in range(5)] + [Instruction(1, sync="device")]])
        assert expected_us(profile, Remove((row_of(profile, "kernel2.0"),))) == 0

    def test_host_and_device_that_hide_each_other_save_more_together(self) -> None:
        """Neither is waited for without the other: the sum of single savings is not a bound for two lanes."""
        step = [Instruction(90), Instruction(5, kernel_us=100)] * 6
        profile = recorded([[*step, Instruction(1, sync="device")]])
        host = Scale(tuple(row_of(profile, f"op{at}") for at in range(2, 12, 2)), 0.5, 0.5, 0.5)
        device = Scale(tuple(row_of(profile, f"kernel{at}.0") for at in range(1, 12, 2)), 0.5, 0.5, 0.5)
        assert expected_us(profile, host) + expected_us(profile, device) < 100
        assert expected_us(profile, host, device) > 200

    def test_work_of_a_stream_that_waits_for_another_moves_with_it(self) -> None:
        step = [Instruction(5, kernel_us=600, stream=1), Instruction(5, kernel_us=100, joins=True)]
        profile = recorded([[*step, Instruction(1, sync="device")]])
        assert expected_us(profile, Scale((row_of(profile, "kernel0.0"),), 0.5, 0.5, 0.5)) == 300

    def test_a_stream_waits_for_what_the_recording_names_only(self) -> None:
        """The last kernel waits for the first one; that the second one was done by then, too, is a coincidence."""
        step = [Instruction(5, kernel_us=500), Instruction(5, kernel_us=480), Instruction(1000)]
        last, end = Instruction(5, kernel_us=600, stream=1), Instruction(1, sync="device")
        guessed = recorded([[*step, replace(last, joins=True), end]])
        named = recorded([[*step, replace(last, awaits=3), end]])
        assert expected_us(guessed, Remove((row_of(guessed, "op2"),))) == pytest.approx(1000 - 980, abs=30)
        assert expected_us(named, Remove((row_of(named, "op2"),))) == pytest.approx(1000 - 500, abs=30)

    def test_a_host_waits_for_what_the_recording_names_only(self) -> None:
        """It waits for the first kernel; that the second one ends just before the wait does is a coincidence."""
        step = [Instruction(5, kernel_us=500), Instruction(5, kernel_us=487, stream=1)]
        profile = recorded([[*step, Instruction(5, awaits=2, sync="event"), Instruction(900)]])
        assert expected_us(profile, Scale((row_of(profile, "kernel0.0"),), 0.5, 0.5, 0.5)) == pytest.approx(250, abs=5)
        assert expected_us(profile, Scale((row_of(profile, "kernel1.0"),), 0.5, 0.5, 0.5)) == 0

    def test_communication_beside_other_work_frees_the_step(self) -> None:
        step = [
            Instruction(5, kernel_us=900), Instruction(5, kernel_us=300, stream=1, joins=True),
            Instruction(5, kernel_us=100, joins=True), Instruction(1, sync="device"),
        ]  # fmt: skip
        profile = recorded([step])
        assert expected_us(profile, Overlap((row_of(profile, "kernel1.0"),))) == pytest.approx(300, abs=10)

    @pytest.mark.parametrize(("pause_us", "saved_us"), [(10, 4500), (30, 4500), (400, 4500), (3000, 0)])
    def test_queued_work_follows_what_it_was_queued_behind(self, pause_us: int, saved_us: int) -> None:
        """A pause that is short beside the wait in the queue moves with it; a long one has another cause."""
        begins, ends = 9020 + pause_us, 9520 + pause_us
        profile = draw(
            f"""
            ProfilerStep#1  0-15000
              aten::mm    10-20  kernel=long_gemm@20-9020
              aten::add   21-29  kernel=vectorized_elementwise@{begins}-{ends}
              aten::item  31-14000  wait=40-{ends + 5}
            """,
            A100,
        )
        faster = Scale((row_of(profile, "long_gemm"),), 0.5, 0.5, 0.5)
        assert expected_us(profile, faster) == pytest.approx(saved_us, rel=0.05)

    def test_kernels_without_a_launch_keep_their_order(self) -> None:
        profile = draw("ProfilerStep#1  0-1000\n  aten::mm  10-20  kernel=gemm@100-500  wait=510-900", A100)
        assert expected_us(profile, Remove((row_of(profile, "aten::mm"),))) == 10


IDLE_THREADS = {
    "none": "",
    "monitor": """
threading.py(1032): _bootstrap  0-2000  thread=7
  tqdm/_monitor.py(60): run  0-2000  thread=7
    threading.py(655): wait  0-2000  thread=7
      <built-in method acquire of _thread.lock object at 0x7f>  0-2000  thread=7
""",
    "lone wait": "threading.py(607): wait  0-2000  thread=7\n",
    "queue feeder that wakes": """
multiprocessing/queues.py(231): _feed  0-2000  thread=7
  threading.py(320): wait  0-1890  thread=7
  multiprocessing/connection.py(181): send_bytes  1891-1899  thread=7
  threading.py(320): wait  1900-2000  thread=7
""",
    "clock that looks every 100 us": "app/health.py(9): watch  0-2000  thread=7\n"
    + "".join(
        f"  app/health.py(12): look  {at}-{at + 99}  thread=7\n"
        f"    <built-in function sleep>  {at + 1}-{at + 98}  thread=7\n"
        for at in range(0, 2000, 100)
    ),
    "server": """
socketserver.py(214): serve_forever  0-2000  thread=7
  selectors.py(451): select  0-2000  thread=7
    <built-in method poll of select.epoll object at 0x7f>  0-2000  thread=7
""",
    "child process": """
subprocess.py(1264): wait  0-2000  thread=7
  subprocess.py(2032): _try_wait  0-2000  thread=7
    <built-in function waitpid>  0-2000  thread=7
""",
}
"""Threads beside a program that the recording ends in the middle of."""

ENDS = {
    "open": "",
    "asleep": "  train.py(40): settle  100-1900\n    <built-in function sleep>  101-1899\n",
    "asking the device": "".join(
        f"  cudaEventQuery  {at}-{at + 1}\n  <built-in function sleep>  {at + 2}-{at + 99}\n"
        for at in range(100, 1900, 100)
    ),
    "waiting for a thread": (
        "  threading.py(1115): join  100-1900\n    threading.py(1153): _wait_for_tstate_lock  101-1899\n"
    ),
}
"""What a host that ran ahead of its device does until recording ends."""


class TestThreadsThatOnlyWait:
    """A recording of 2 ms without steps: the host launches 1.6 ms of kernels in 60 µs, and then only waits."""

    def program(self, end: str, idle: str) -> Profile:
        text = (
            "train.py(9): <module>  0-2000\n"
            "  train.py(30): step  10-70\n"
            "    aten::mm  20-40  kernel=gemm@50-850\n"
            "    aten::add  50-60  kernel=add@850-1650\n"
        )
        return draw(text + ENDS[end] + IDLE_THREADS[idle], A100)

    @pytest.mark.parametrize("end", ENDS)
    @pytest.mark.parametrize("idle", IDLE_THREADS)
    def test_do_not_hold_up_what_the_device_saves(self, end: str, idle: str) -> None:
        profile = self.program(end, idle)
        assert profile.steps.basis == "whole_trace"
        assert expected_us(profile, Scale((row_of(profile, "gemm"),), 0.5, 0.5, 0.5)) == 400
        assert SavingEstimates(profile).residual == 0
        assert SavingEstimates(profile).confidence == "high"

    @pytest.mark.parametrize("idle", IDLE_THREADS)
    def test_do_not_hold_up_what_the_host_saves(self, idle: str) -> None:
        profile = draw(
            "train.py(9): <module>  0-2000\n  aten::mm  100-700\n  aten::add  800-1900\n" + IDLE_THREADS[idle]
        )
        assert expected_us(profile, Remove((row_of(profile, "aten::mm"),))) == 600

    @pytest.mark.parametrize("idle", IDLE_THREADS)
    def test_python_that_works_after_the_device_is_work(self, idle: str) -> None:
        """The device is done at 1650, and the host's own Python at 1950: a faster kernel helps nobody."""
        text = "  train.py(50): write_results  100-1950\n    json/encoder.py(183): encode  110-1940\n"
        profile = draw(
            "train.py(9): <module>  0-2000\n  aten::mm  20-40  kernel=gemm@50-1650\n" + text + IDLE_THREADS[idle], A100
        )
        assert expected_us(profile, Scale((row_of(profile, "gemm"),), 0.5, 0.5, 0.5)) == 0

    def test_the_thread_that_launches_is_the_main_one_though_another_wakes_more_often(self) -> None:
        polls = "".join(f"  queue.py(154): get  {at}-{at + 4}  thread=7\n" for at in range(0, 2000, 5))
        profile = draw(
            "train.py(9): <module>  0-2000\n  train.py(30): step  10-70\n    aten::mm  20-40  kernel=gemm@50-850\n"
            f"app/feeder.py(3): feed  0-2000  thread=7\n{polls}",
            A100,
        )
        assert expected_us(profile, Scale((row_of(profile, "gemm"),), 0.5, 0.5, 0.5)) == 400


class TestRecording:
    STEPS = "ProfilerStep#1  0-1000\n" + "".join(f"  aten::add  {at}-{at + 5}\n" for at in range(10, 900, 10))

    def test_the_true_step_time_scales_what_is_saved(self) -> None:
        """A step of 988 µs without the profiler: 12 µs go with its 89 events; a tenth of the rest is not recorded."""
        profile = draw(self.STEPS)
        rows = tuple(row_of(profile, "aten::add", at) for at in range(89))
        recorded_saving = SavingEstimates(profile).saving(Fix([Remove(rows)]))
        true = SavingEstimates(profile, true_step_ns=988 * US).saving(Fix([Remove(rows)]))
        assert recorded_saving.expected_ns == 445 * US
        replayed_us = 445 - 6
        assert true.expected_ns == pytest.approx((replayed_us + 0.1 * (988 - replayed_us)) * US, rel=0.001)
        assert true.low_ns == pytest.approx(replayed_us * US, rel=0.001)
        assert true.expected_ns <= true.high_ns

    def test_what_recording_does_not_explain_is_shared_by_all_host_time(self) -> None:
        """A quarter of 0.6 µs is taken off each of 89 events, 13.35 µs; a step of 493.325 µs is half of what is left.

        Of what stays a tenth goes, too, since that is less than a fifth of what is saved.
        """
        profile = draw(self.STEPS)
        rows = tuple(profile.named("aten::add").tolist())
        saving = SavingEstimates(profile, true_step_ns=493_325).saving(Fix([Remove(rows)]))
        replayed_us = (445 - 13.35 / 2) / 2
        gain_us = min(0.2 * replayed_us, 0.1 * (493.325 - replayed_us))
        assert saving.expected_ns == pytest.approx((replayed_us + gain_us) * US, rel=0.002)
        assert saving.low_ns < saving.expected_ns < saving.high_ns < 493_325

    def test_what_stays_gains_nothing_beside_a_device_nor_where_work_goes_beside_the_step(self) -> None:
        """A step of 1000 µs truly takes 500: 200 of 400 µs go, and on a CPU alone 30 more; beside 400 µs, 100 do."""
        lines = "ProfilerStep#1  0-1000\n  aten::cat  100-500\n  aten::mul  600-700"
        alone, beside = draw(lines), draw(f"{lines} kernel=mul@610-690", A100)
        for profile, kind, expected_us in ((alone, Remove, 230), (beside, Remove, 200), (alone, Overlap, 100)):
            fix = Fix([kind((row_of(profile, "aten::cat"),))])
            saving = SavingEstimates(profile, true_step_ns=500 * US).saving(fix)
            assert saving.expected_ns == pytest.approx(expected_us * US, rel=0.01), kind

    @pytest.mark.parametrize(
        ("spans", "left", "threads", "expected_us"),
        [
            pytest.param([(1000, 5000)], 0.0, 2, 3960 + 0.2 * 3960, id="one pause"),
            pytest.param([(500, 9500)], 0.0, 2, 8910 + 0.25 * 990, id="nearly the whole step"),
            pytest.param([(500, 9500)], 0.0, 1, 8910 + 0.1 * 990, id="one thread"),
            pytest.param([(500, 9500)], 0.0, None, 8910 + 0.1 * 990, id="threads unknown"),
            pytest.param([(at, at + 500) for at in range(1000, 9000, 1000)], 0.0, 2, 3960 + 594, id="short ones"),
            pytest.param([(500, 9500)], 0.5, 2, 4455 + 0.1 * 5445, id="a shorter pause stays"),
        ],
    )
    def test_what_stays_gains_more_where_pauses_of_a_millisecond_go(
        self, spans: list[tuple[int, int]], left: float, threads: int | None, expected_us: float
    ) -> None:
        """Recorded steps of 10 ms truly take 9.9."""
        profile = with_settings(
            draw("ProfilerStep#1  0-10000\n" + "".join(f"  aten::fill_  {a}-{b}\n" for a, b in spans)),
            threads={"intra_op": threads},
        )
        fix = Fix([Scale(tuple(profile.named("aten::fill_").tolist()), left, left, left)])
        saving = SavingEstimates(profile, true_step_ns=9_900 * US).saving(fix)
        assert saving.expected_ns == pytest.approx(expected_us * US, rel=0.002)
        assert saving.expected_ns <= saving.high_ns

    def test_without_it_the_least_allows_for_recording(self) -> None:
        profile = draw(self.STEPS)
        saving = SavingEstimates(profile).saving(Fix([Remove((row_of(profile, "aten::add"),))]))
        assert saving.low_ns < saving.expected_ns == saving.high_ns == 5 * US


def test_without_steps_a_saving_is_a_bound() -> None:
    profile = draw("ProfilerStep#1  0-0")
    assert SavingEstimates(profile).saving(Fix(())).basis == ("bound",)
    assert SavingEstimates(profile).joint_saving(Fix(())) is None
    assert SavingEstimates(profile).residual is None


class TestFreedMemory:
    """Eight long operators, each followed by 50 µs in which nothing is recorded; elsewhere 2 µs are usual."""

    PROFILE = draw(
        "ProfilerStep#1  0-2000\n"
        + "".join(f"  aten::cat  {at}-{at + 100}\n" for at in range(100, 1300, 150))
        + "".join(f"  aten::mm  {at}-{at + 8}\n" for at in range(1300, 1500, 10))
    )
    CATS = tuple(PROFILE.named("aten::cat").tolist())

    def test_goes_with_the_operators_that_made_it_but_not_for_certain(self) -> None:
        saving = SavingEstimates(self.PROFILE).saving(Fix([Remove(self.CATS)]))
        assert saving.expected_ns == 8 * (100 + 50 - 2) * US
        assert saving.high_ns == saving.expected_ns + 8 * 50 * US, "and half of 100 µs each if caches gain"
        assert saving.low_ns < 800 * US

    def test_is_none_after_few_operators_and_where_the_lost_time_is_known(self) -> None:
        assert expected_us(self.PROFILE, Remove(self.CATS[:2])) == 200
        lost = Fix([Remove(self.CATS)], [(100_000, 200_000)])
        assert SavingEstimates(self.PROFILE).saving(lost).expected_ns == 100 * US

    def test_is_none_after_operators_in_place_which_make_none(self) -> None:
        filled = "".join(f"  aten::fill_  {at}-{at + 100}\n" for at in range(100, 1300, 150))
        profile = draw(f"ProfilerStep#1  0-2000\n{filled}")
        assert expected_us(profile, Remove(tuple(profile.named("aten::fill_").tolist()))) == 800
