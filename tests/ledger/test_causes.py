"""Each cause of the ledger, on a trace that is made to have it and next to nothing else."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.ledger.account import linked
from tb_tidy_plugin.ledger.model import Owner
from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.words.causes import Cause
from tests.ledger.traces import MAIN, OTHER, Made, check

GEMM = "ampere_sgemm_128x64_nn"


def step(end: float = 10_000, start: float = 0) -> Made:
    """A step with a kernel at its start, so that a gap follows."""
    return Made().mark("ProfilerStep#1", start, end).kernel(GEMM, start + 10, start + 100, launch=start + 2)


class TestDeviceAtWork:
    def test_compute_owns_before_communication_and_copies(self) -> None:
        made = Made().mark("ProfilerStep#1", 0, 1000)
        made.kernel(GEMM, 100, 300, launch=1, stream=7)
        made.kernel("ncclDevKernel_AllReduce_Sum_f32", 200, 500, launch=4, stream=8)
        made.copy("Memcpy HtoD (Pinned -> Device)", 400, 600, launch=8)
        times = made.times_us()
        assert times["compute:matrix"] == 200
        assert times["communication"] == 200
        assert times["copy:to_device"] == 100
        communication = next(each for each in made.account().ledger.entries if each.cause is Cause.COMMUNICATION)
        assert communication.hidden_ns == 100_000

    def test_of_two_kernels_the_first_owns_what_they_share(self) -> None:
        made = Made().mark("ProfilerStep#1", 0, 1000)
        made.kernel(GEMM, 100, 300, launch=1, stream=7).kernel("softmax_warp_forward", 200, 350, launch=4, stream=8)
        times = made.times_us()
        assert (times["compute:matrix"], times["compute:softmax"]) == (200, 50)

    def test_a_piece_names_its_event_by_the_position_in_the_file(self) -> None:
        made = Made().mark("ProfilerStep#1", 0, 1000).kernel(GEMM, 100, 300, launch=1)
        made.kernel("softmax_warp_forward", 600, 700, launch=4).operator("aten::item", 710, 900)
        pieces = [piece for entry in made.account().ledger.entries for piece in entry.evidence]
        named = [(piece.event, made.events[piece.event_id]["name"]) for piece in pieces if piece.event_id is not None]
        assert len(named) >= 3
        assert all(event == name for event, name in named)
        assert all((piece.event == "") == (piece.event_id is None) for piece in pieces)


FUSED_ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4>"
)
FOREACH = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "TensorListMetadata<2>, at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>"
)
APEX_ADAM = "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>"
LAYER_NORM = "triton_per_fused_add_native_layer_norm_3"


class TestFused:
    @pytest.mark.parametrize(
        ("operator", "kernel", "kind", "reason"),
        [
            ("aten::_fused_adamw_", FUSED_ADAM, "optimizer", "The optimizer is fused already."),
            ("CompiledFunction", FUSED_ADAM, "optimizer", "The optimizer is fused already."),
            ("Optimizer.step", APEX_ADAM, "optimizer", "The optimizer is fused already."),
            ("aten::_foreach_add_", FOREACH, "optimizer", None),
            (LAYER_NORM, LAYER_NORM, "normalisation", "torch.compile has fused it already."),
            ("aten::native_layer_norm", "vectorized_layer_norm_kernel", "normalisation", None),
        ],
    )
    def test_what_is_fused_is_not_advised_to_be(
        self, operator: str, kernel: str, kind: str, reason: str | None
    ) -> None:
        made = Made().mark("ProfilerStep#1", 0, 1000).operator(operator, 5, 90).kernel(kernel, 20, 1000, 10)
        entry = next(each for each in made.account().ledger.entries if each.cause is Cause.COMPUTE)
        assert entry.kind is not None
        assert entry.kind.word == kind
        assert entry.nothing_to_fix == reason
        assert (entry.advice is None) == (reason is not None)

    def test_on_a_cpu(self) -> None:
        for operator, is_fused in (("aten::_fused_adamw_", True), ("aten::_foreach_add_", False)):
            made = Made().mark("ProfilerStep#1", 0, 1000).operator(operator, 0, 1000)
            made.keys, made.device = {}, {}
            (entry,) = made.account().ledger.entries
            assert (entry.nothing_to_fix == "The optimizer is fused already.") == is_fused
            assert (entry.advice is None) == is_fused


class TestQueued:
    def test_pause_between_queued_kernels(self) -> None:
        made = step(400).kernel(GEMM, 108, 400, launch=6)
        assert made.times_us()["between_kernels"] == 8

    def test_inside_a_graph_and_before_its_start(self) -> None:
        made = step(400).graph(50, [(160, 200), (240, 400)])
        times = made.times_us()
        assert times["graph_start"] == 60
        assert times["inside_graph"] == 40

    def test_a_stream_waits_for_another(self) -> None:
        made = step(400).call("cudaStreamWaitEvent", 20, 22).kernel(GEMM, 200, 400, launch=30)
        assert made.times_us()["stream_wait"] == 100

    def test_a_copy_is_set_up(self) -> None:
        made = step(400).copy("Memcpy HtoD (Pinned -> Device)", 150, 400, launch=30)
        assert made.times_us()["copy_setup"] == 50

    def test_nothing_says_what_queued_work_waits_for(self) -> None:
        made = step(400).kernel(GEMM, 200, 400, launch=30)
        assert made.times_us()["queued_unknown"] == 100
        assert made.account().ledger.unnamed_ns == 100_000

    def test_a_device_that_starts_late_costs_the_work_that_has_queued_up(self) -> None:
        """By hand: 20 kernels of 10 µs, launched from 1,000 to 2,902 µs, run from 4,000 to 4,200 µs.

        The launching call behind the wait returns at 1,002 µs. Had the device started then, it would have waited for
        nearly each of the launches: its late start costs the 200 µs of work.
        """
        made = Made().operator("aten::empty", 0, 990)
        for at in range(20):
            launch = 1_000 + 100 * at
            made.operator("aten::mm", launch - 5, launch + 90)
            made.kernel(GEMM, 4_000 + 10 * at, 4_010 + 10 * at, launch)
        made.operator("aten::mm", 2_990, 5_000).kernel(GEMM, 4_995, 5_005, 4_990)
        times = made.times_us()
        assert times["queued_unknown"] == 200
        # The last kernel waits for its launch, too: from 4,200 to 4,992 µs, of which 3 µs are the way to the device.
        assert times["launch_pace"] + times["host_work"] == 1_002 + (3_800 - 1_002) + (4_992 - 4_200)

    def test_a_host_that_waits_for_a_late_device_is_not_the_cause(self) -> None:
        made = step(9_000).call("cudaDeviceSynchronize", 1_500, 8_050)
        made.kernel(GEMM, 8_000, 8_010, launch=1_000).kernel(GEMM, 8_990, 9_000, launch=8_980)
        times = made.times_us()
        # From the synchronisation on it is the device's time; before, the host had nothing more to do for it.
        assert times["queued_unknown"] == 8_000 - 1_500
        assert times["synchronisation"] <= 50  # of the second gap: the call returns 40 µs after the work

    def test_a_device_that_is_late_with_the_last_work_costs_all_of_the_time(self) -> None:
        made = step(9_000).operator("aten::mm", 1_000, 1_010).kernel(GEMM, 8_000, 8_010, launch=1_001)
        assert made.times_us()["queued_unknown"] == 8_000 - 1_003

    def test_launch_latency_follows_the_launch(self) -> None:
        made = step(400).operator("aten::mm", 90, 130).kernel(GEMM, 140, 400, launch=120)
        assert made.times_us()["launch_latency"] == 6 + 18

    def test_a_kernel_without_a_launch(self) -> None:
        made = step(400).kernel(GEMM, 200, 400, launch=None)
        assert made.times_us()["unrecorded_launch"] == 100


HELD = [
    ("profiler", lambda made: made.add("overhead", "Buffer Flush", 200, 9000, -1, -1)),
    ("profiler", lambda made: made.add("overhead", "Activity Buffer Request", 200, 9000, -1, -1)),
    ("profiler", lambda made: made.frame("torch/profiler/profiler.py(1150): step", 200, 9000)),
    ("profiler", lambda made: made.frame("/a/tb_tidy_plugin/capture/profiling.py(99): step", 200, 9000)),
    ("profiler", lambda made: made.frame("tb_tidy_plugin/capture/lightning.py(9): on_train_batch_end", 200, 9000)),
    ("host_work", lambda made: made.frame("tb_tidy_plugin/capture/graphs.py(78): named_replay", 200, 9000)),
    ("host_work", lambda made: made.frame("my/profiler.py(9): step", 200, 9000)),
    ("first_launch", lambda made: made.add("overhead", "Lazy Function Loading", 200, 9000, -1, -1)),
    ("first_launch", lambda made: made.add("overhead", "Runtime Triggered Module Loading", 200, 9000, -1, -1)),
    ("first_launch", lambda made: made.add("overhead", "Driver Compiler", 200, 9000, -1, -1)),
    ("unrecorded_host", lambda made: made.add("overhead", "Command Buffer Full", 200, 9000, -1, -1)),
    ("unrecorded_host", lambda made: made.add("overhead", "Unrecognized", 200, 9000, -1, -1)),
    ("garbage_collection", lambda made: made.add("python_gc", "Python GC", 200, 9000)),
    ("compilation", lambda made: made.frame("torch/_dynamo/convert_frame.py(9): _compile", 200, 9000)),
    (
        "graph_capture",
        lambda made: made.call("cudaStreamBeginCapture", 200, 210).call("cudaStreamEndCapture", 8990, 9000),
    ),
    ("data_loading", lambda made: made.mark("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 200, 9000)),
    ("data_loading", lambda made: made.frame("torch/utils/data/dataloader.py(700): __next__", 200, 9000)),
    ("host_communication", lambda made: made.mark("gloo:all_reduce", 200, 9000, OTHER)),
    ("allocation", lambda made: made.call("cudaMalloc", 200, 9000)),
    ("first_launch", lambda made: made.call("cuModuleLoadData", 200, 9000)),
    ("runtime_call", lambda made: made.call("cudaDeviceGetStreamPriorityRange", 200, 9000)),
    ("host_work", lambda made: made.frame("scipy/ndimage/_interpolation.py(739): zoom", 200, 9000)),
    ("host_work", lambda made: made.operator("aten::randn", 200, 9000)),
    ("unrecorded_host", lambda made: made),
]


class TestHost:
    """The host is late with the next kernel, and in the time from 200 to 9,000 µs it does something."""

    @pytest.mark.parametrize(("cause", "doing"), HELD, ids=[f"{cause}-{at}" for at, (cause, _) in enumerate(HELD)])
    def test_what_the_host_does(self, cause: str, doing: object) -> None:
        made = doing(step().kernel(GEMM, 9500, 10_000, launch=9490))  # type: ignore[operator]
        times = made.times_us()
        assert times[cause] >= 8780, times
        check(made.account())

    def test_the_profilers_work_is_nobodys(self) -> None:
        made = step().kernel(GEMM, 9500, 10_000, launch=9490)
        made.frame("train.py(3): loop", 150, 9400).frame("tb_tidy_plugin/capture/profiling.py(99): step", 200, 9000)
        made.frame("tb_tidy_plugin/capture/faults.py(49): _faults", 300, 8000)
        entry = next(each for each in made.account().ledger.entries if each.cause is Cause.PROFILER)
        assert entry.owners == [Owner(ns=entry.ns_total, share=1.0)]

    def test_a_wait_for_the_device_that_began_before_the_gap(self) -> None:
        made = step(2000).call("cudaStreamSynchronize", 20, 130).kernel(GEMM, 160, 2000, launch=150)
        # 30 µs of return, and the slow launching after it, which takes less than the host had waited for.
        assert made.times_us()["synchronisation"] == 30 + 22

    def test_launching_after_a_wait_costs_no_more_than_the_wait_took(self) -> None:
        made = step(2000).call("cudaStreamSynchronize", 95, 101)
        made.operator("aten::mm", 101, 300).kernel(GEMM, 310, 2000, launch=290)
        times = made.times_us()
        assert times["synchronisation"] == 6
        assert times["launch_pace"] == 4 + (292 - 100) - 6

    def test_a_short_wait_for_an_idle_device_costs_its_own_time(self) -> None:
        made = step(2000).operator("aten::nonzero", 101, 180).call("cudaStreamSynchronize", 110, 117)
        times = made.kernel(GEMM, 205, 2000, launch=200).times_us()
        assert times["synchronisation"] == 7

    def test_what_a_wait_leaves_of_its_time_is_there_after_the_next_one(self) -> None:
        made = step(2000).call("cudaStreamSynchronize", 20, 101).kernel(GEMM, 135, 200, launch=130)
        made.call("cudaStreamSynchronize", 195, 201).kernel(GEMM, 310, 2000, launch=298)
        times = made.times_us()
        # The first wait held the host for 81 µs, of which 32 go until the launch at 132. The second held it for 6 µs:
        # 55 of the 100 until the launch at 300 follow from waiting.
        assert times["synchronisation"] == 32 + 55
        assert times["launch_pace"] == 4 + 45

    def test_the_main_thread_waits_before_another_one_launches(self) -> None:
        """As in a training step that reads its loss before the backward pass."""
        made = (
            step(2000)
            .call("cudaStreamSynchronize", 20, 101)
            .operator("autograd::engine::evaluate_function: Mul", 130, 170, OTHER)
        )
        times = made.kernel(GEMM, 155, 2000, launch=150, thread=OTHER).times_us()
        assert times["synchronisation"] == 152 - 100
        assert times["launch_pace"] == 4

    def test_a_long_wait_is_not_host_work(self) -> None:
        made = Made().mark("ProfilerStep#1", 0, 10_000).kernel(GEMM, 10, 8990, launch=2)
        made.call("cudaStreamSynchronize", 20, 9000).frame("train.py(3): log", 9001, 9190)
        times = made.kernel(GEMM, 9210, 10_000, launch=9200).times_us()
        assert times["synchronisation"] == 10 + 202
        assert "host_work" not in times

    def test_a_call_for_an_idle_device_is_part_of_the_work_around_it(self) -> None:
        """As in a loop that synchronises without need."""
        made = step().call("hipDeviceSynchronize", 400, 450).frame("train.py(3): tokenise", 110, 790)
        times = made.kernel(GEMM, 810, 10_000, launch=800).times_us()
        assert times["host_work"] == pytest.approx(800 - 100, abs=0.01)

    def test_long_work_after_a_wait_is_host_work(self) -> None:
        made = Made().mark("ProfilerStep#1", 0, 10_000).kernel(GEMM, 10, 8000, launch=2)
        made.call("cudaStreamSynchronize", 20, 8001).frame("train.py(3): save", 8001, 9190)
        times = made.kernel(GEMM, 9210, 10_000, launch=9200).times_us()
        assert times["host_work"] == pytest.approx(9200 - 8001, abs=0.01)

    def test_a_wait_that_seems_to_return_before_the_device_is_done(self) -> None:
        """The clocks of host and device differ by a few µs."""
        made = step(2000).call("cudaStreamSynchronize", 20, 97).kernel(GEMM, 160, 2000, launch=150)
        assert made.times_us()["synchronisation"] == 52

    def test_a_wait_for_work_that_was_not_recorded(self) -> None:
        made = step().call("cudaDeviceSynchronize", 300, 9000).kernel(GEMM, 9500, 10_000, launch=9490)
        assert made.times_us()["unrecorded_wait"] == 8700

    def test_slow_launching(self) -> None:
        made = Made().mark("ProfilerStep#1", 0, 10_000)
        for at in range(100):
            begin = 100 * at
            made.operator("aten::add", begin, begin + 95)
            made.kernel("vectorized_elementwise_kernel", begin + 92, begin + 97, launch=begin + 85)
        times = made.times_us()
        assert times["launch_pace"] > 8000
        assert "host_work" not in times

    def test_host_work_has_the_function_that_does_it(self) -> None:
        made = step().kernel(GEMM, 9500, 10_000, launch=9490)
        made.frame("train.py(3): load", 150, 9400).frame("scipy/ndimage/_interpolation.py(739): zoom", 200, 9300)
        made.frame("torch/functional.py(5): split", 300, 9200)
        [entry] = [each for each in made.account().ledger.entries if each.cause is Cause.HOST_WORK]
        assert entry.owner.library is not None
        assert entry.owner.own is not None
        assert (entry.owner.library.function, entry.owner.own.function) == ("zoom", "load")
        assert entry.owner.known_by == "stack"
        assert entry.ns_total >= entry.owner.ns > 0.9 * entry.ns_total

    def test_another_thread_speaks_where_the_launching_one_waits(self) -> None:
        made = step().kernel(GEMM, 9500, 10_000, launch=9490, thread=OTHER)
        made.operator("aten::mm", 9480, 9495, OTHER)
        made.frame("torch/autograd/graph.py(8): _engine_run_backward", 150, 9900, MAIN)
        made.operator("autograd::engine::evaluate_function: Slow", 200, 9400, OTHER)
        [entry] = [each for each in made.account().ledger.entries if each.cause is Cause.HOST_WORK]
        assert (entry.owner.pass_, entry.owner.operator) == ("backward", "Slow")

    def test_silence_is_told_by_its_neighbours(self) -> None:
        made = Made().kernel(GEMM, 10, 100, launch=2).operator("aten::relu", 100, 150)
        made.operator("aten::mm", 9480, 9495).kernel(GEMM, 9500, 10_000, launch=9490)
        [entry] = [each for each in made.account().ledger.entries if each.cause is Cause.UNRECORDED_HOST]
        assert entry.owner.neighbours == "after aten::relu, before aten::mm"


class TestCpu:
    def test_operators_by_kind_and_python_between(self) -> None:
        made = Made().mark("ProfilerStep#1", 0, 1000).frame("train.py(1): step", 0, 1000)
        made.operator("aten::mm", 100, 600).operator("aten::relu", 600, 800)
        times = made.times_us()
        assert times == {"cpu:matrix": 500, "cpu:python": 300, "cpu:pointwise": 200}

    def test_the_thread_that_works_while_the_main_one_stands(self) -> None:
        made = Made().mark("ProfilerStep#1", 0, 1000).operator("aten::mm", 0, 200)
        made.operator("aten::bmm", 200, 900, OTHER).operator("aten::mm", 900, 1000)
        assert made.times_us() == {"cpu:matrix": 1000}

    def test_waiting_for_other_ranks(self) -> None:
        made = Made().mark("ProfilerStep#1", 0, 1000).operator("aten::mm", 0, 200)
        made.mark("gloo:all_reduce", 200, 1000, OTHER)
        assert made.times_us()["host_communication"] == 800


class TestSteps:
    def test_work_belongs_to_the_step_that_launched_it(self) -> None:
        made = Made()
        for at in range(3):  # the host takes 100 µs for what takes the device 1 ms
            made.mark(f"ProfilerStep#{at}", 100 * at, 100 * at + 100)
            made.kernel(GEMM, 50 + 1000 * at, 1050 + 1000 * at, launch=100 * at + 10)
        ledger = made.account().ledger
        assert [step.end_ns - step.start_ns for step in ledger.steps] == [1_050_000, 1_000_000, 1_000_000]
        assert ledger.host_step_ns == 100_000

    def test_the_host_is_slower(self) -> None:
        made = Made()
        for at in range(3):
            made.mark(f"ProfilerStep#{at}", 1000 * at, 1000 * at + 990)
            made.kernel(GEMM, 50 + 1000 * at, 150 + 1000 * at, launch=1000 * at + 10)
        assert made.account().ledger.step_ns.median == 1_000_000

    def test_backlog_from_before_the_first_step_is_left_out_and_told(self) -> None:
        made = Made().kernel(GEMM, 1, 5000, launch=None).mark("ProfilerStep#1", 100, 300)
        made.kernel(GEMM, 5000, 6000, launch=150)
        ledger = made.account().ledger
        assert ledger.window.end_ns - ledger.window.start_ns == 1_000_000
        assert [left.ns for left in ledger.left_out] == [4_900_000, 99_000]

    @pytest.mark.parametrize(
        ("name", "source"),
        [
            ("execute_context_1(3)_generation_0(0)", "serving_step"),
            ("step[DECODE bs=32]", "serving_step"),
            ("execute_diffusion_1_256x256", "serving_step"),
            ("[pl][profile]run_training_batch", "framework_step"),
            ("ProfilerStep#7", "profiler_step"),
        ],
    )
    def test_marks(self, name: str, source: str) -> None:
        made = Made()
        for at in range(4):
            made.mark(name, 100 * at, 100 * at + 90).mark("Optimizer.step#SGD.step", 100 * at + 80, 100 * at + 85)
            made.operator("aten::mm", 100 * at + 1, 100 * at + 80)
        ledger = made.account().ledger
        assert (ledger.step_source, ledger.step_ns.n) == (source, 4)

    def test_a_mark_inside_another_counts_once(self) -> None:
        made = Made().mark("step[DECODE bs=32]", 0, 100).mark("execute_model", 10, 50).mark("execute_model", 100, 300)
        ledger = made.operator("aten::mm", 20, 30).account().ledger
        assert [step.end_ns - step.start_ns for step in ledger.steps] == [100_000, 200_000]

    @pytest.mark.parametrize(
        ("name", "source"),
        [
            ("lightning/pytorch/loops/training_epoch_loop.py(199): advance", "framework_step"),
            ("/app/megatron/training/training.py(1500): train_step", "framework_step"),
            ("deepspeed/runtime/pipe/engine.py(338): train_batch", "framework_step"),
            ("transformers/trainer.py(3700): training_step", "framework_step"),
        ],
    )
    def test_functions_of_frameworks(self, name: str, source: str) -> None:
        made = Made()
        for at in range(4):
            made.frame(name, 100 * at, 100 * at + 90).operator("aten::mm", 100 * at + 1, 100 * at + 80)
        assert made.account().ledger.step_source == source

    def test_ends_of_optimizer_steps(self) -> None:
        made = Made()
        for at in range(4):
            made.operator("aten::mm", 100 * at, 100 * at + 70).mark(
                "Optimizer.step#SGD.step", 100 * at + 80, 100 * at + 90
            )
        ledger = made.account().ledger
        assert (ledger.step_source, ledger.step_ns.n, ledger.step_ns.median) == ("optimizer_step", 3, 100_000)

    def test_a_sequence_of_kernels_that_repeats(self) -> None:
        made = Made()
        for at in range(12):
            for nth in range(10):
                begin = 1000 * at + 90 * nth + 20
                made.kernel(f"kernel_{nth}", begin, begin + 80, launch=begin - 15)
        ledger = made.account().ledger
        assert ledger.step_source == "repeating_unit"
        assert ledger.step_ns.median == pytest.approx(1_000_000, rel=0.01)

    def test_nothing_at_all(self) -> None:
        account = Made().operator("aten::mm", 5, 5).account()
        assert account.ledger.entries == []
        check(account)


class TestRecording:
    @staticmethod
    def with_calls(name: str, in_steps: int) -> str:
        made = Made()
        for at in range(4):
            made.mark(f"ProfilerStep#{at}", 10_000 * at + 1, 10_000 * at + 9_999)
            if at < in_steps:
                made.call(name, 10_000 * at + 200, 10_000 * at + 9_900 - 3000 * (in_steps == 4))
            made.kernel(GEMM, 10_000 * at + 9_950, 10_000 * at + 9_990, launch=10_000 * at + 9_940)
        if in_steps == 1:
            made.events[1]["dur"] = 60_000  # before all else
            for event in made.events[2:]:
                event["ts"] += 60_000
            made.events[0]["dur"] += 60_000
        return made.account().ledger.recording

    def test_a_call_that_comes_once_is_start_up(self) -> None:
        assert self.with_calls("cudaMalloc", 1) == "start-up"

    def test_a_call_that_comes_in_each_step_is_the_job_itself(self) -> None:
        assert self.with_calls("cudaMalloc", 4) == "steady"

    def test_operators_with_gaps_in_their_numbers_were_thinned_out(self) -> None:
        for stride, kind in ((1, "steady"), (9, "thinned")):
            made = Made()
            for at in range(200):
                made.operator("aten::mm", 10 * at + 1, 10 * at + 9, **{"External id": stride * (at + 1)})
            assert made.account().ledger.recording == kind


class TestFindings:
    def test_a_finding_is_linked_to_the_entry_that_holds_its_time(self) -> None:
        account = step(400).kernel(GEMM, 200, 400, launch=30).account()
        time = Intervals.union(*(account.segments.starts[:0],) * 2)
        assert all(each.finding_id is None for each in linked(account, {"none": (time, 0)}).entries)
        busy = account.spans(0)
        ledger = linked(account, {"small": (busy, busy.total_ns // 2)})
        assert ledger.entries[0].finding_id == "small"

    def test_a_saving_beyond_its_entries_is_not_linked(self) -> None:
        account = step(400).kernel(GEMM, 200, 400, launch=30).account()
        busy = account.spans(0)
        ledger = linked(account, {"large": (busy, busy.total_ns + 1)})
        assert all(each.finding_id is None for each in ledger.entries)

    def test_no_finding_owns_what_was_not_recorded(self) -> None:
        made = Made().mark("ProfilerStep#1", 1, 1000).operator("aten::mm", 10, 900)
        account = made.kernel(GEMM, 20, 100, launch=12).kernel(GEMM, 600, 700, launch=None).account()
        ledger = linked(account, {"optimizer": (account.spans(0).plus(account.spans(1)), 0)})
        owned = {each.id: each.finding_id for each in ledger.entries[:2]}
        assert owned == {"unrecorded_launch": None, "host_work": "optimizer"}
