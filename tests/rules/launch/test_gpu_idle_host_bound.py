"""gpu-idle-host-bound: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from msgspec.structs import replace

from tb_tidy_plugin.analysis.findings import described, groups_of, worth_reporting
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.report.model import Finding, Note
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rules.launch.gpu_idle_host_bound import GpuIdleHostBound
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.words.causes import Cause
from tests.support.recordings import shared


def operators(times: Iterable[int], lasts: int, indent: str = "  ", attributes: str = "") -> str:
    """Operators that each launch a kernel of `lasts` µs, which starts 5 µs later; the launch takes 1 µs."""
    return "\n".join(
        f"{indent}aten::add {time}-{time + 10} {attributes} kernel=vectorized@{time + 5}-{time + 5 + lasts}"
        for time in times
    )


def job(pace: int, lasts: int, *more: str, end: int = 1000, frame: str = "") -> Profile:
    """One step with an operator every `pace` µs."""
    lines = [f"ProfilerStep#1 0-{end}", *([f"  {frame} 1-{end - 1}"] if frame else [])]
    return draw("\n".join([*lines, operators(range(10, 960, pace), lasts, "    " if frame else "  "), *more]), A100)


def reported(profile: Profile, rule: GpuIdleHostBound | None = None) -> list[Finding]:
    """What the report shows: findings above the rule's floor."""
    rule = rule or GpuIdleHostBound()
    kept, *_ = worth_reporting(rule, groups_of(profile, matches_of(rule, profile)))
    return [evidence.finding for evidence in described(profile, rule, kept)]


def why(finding: Finding) -> str:
    note = finding.details[0]
    assert isinstance(note, Note)
    return note.text


MARKS = [("execute_context_0(0)_generation_8(8)", True), ("execute_diffusion_1_256x256", False)]


class TestReports:
    def test_short_kernels_that_end_before_the_next_launch(self) -> None:
        # 19 kernels of 10 µs, one every 50 µs: 18 gaps of 40 µs, of which a launch is on its way for 4. The first one
        # returns at 11, and the last kernel ends at 925.
        (finding,) = reported(job(50, 10, frame="train.py(3): train"))
        assert finding.cost_ns == 11_000 + 18 * 36_000 + 75_000
        assert finding.message == (
            "For 73.4 % of the step, 734 µs, the device waits for the host to launch its next work, most of it for "
            "`train` (train.py:3) 99.9 %"
        )
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "train")]
        assert "The median kernel takes 10 µs, and 100 % of the launches" in why(finding)

    def test_inference_without_steps(self) -> None:
        profile = draw(f"serve.py(3): serve 0-1000\n{operators(range(10, 960, 50), 10)}", A100)
        (finding,) = reported(profile)
        assert finding.places[0].function == "serve"

    @pytest.mark.parametrize(("mark", "serves"), MARKS)
    def test_a_server_is_told_of_its_own_graphs(self, mark: str, *, serves: bool) -> None:
        profile = draw(f"{mark} 0-1000\n{operators(range(10, 960, 50), 10)}", A100)
        (finding,) = reported(profile)
        assert ("--enforce-eager" in finding.fix, "reduce-overhead" in finding.fix) == (serves, not serves)

    def test_where_most_of_the_time_goes(self) -> None:
        text = "\n".join(
            [
                "ProfilerStep#1 0-1000",
                "  model.py(7): forward 5-300",
                operators(range(10, 300, 40), 10, "    "),
                "  Optimizer.step#SGD.step 900-990",
                operators([910], 10, "    "),
                "autograd::engine::evaluate_function: MulBackward0 330-599 thread=2",
                operators(range(340, 590, 40), 10, "  ", "thread=2"),
                "autograd::engine::evaluate_function: AddBackward0 600-900 thread=2",
                operators(range(610, 890, 40), 10, "  ", "thread=2"),
            ]
        )
        (finding,) = reported(draw(text, A100))
        # 678 µs in all. Forward: 11 until the first launch returns, 7 gaps of 26. Backward: 36 before, 2 · 6 of 26, 16
        # in between. Optimizer: 46. Nothing is launched in the 75 after the last kernel.
        assert finding.message.startswith("For 67.8 % of the step, 678 µs, ")
        assert finding.message.endswith(
            "most of it for the backward pass 53.7 %, `forward` (model.py:7) 28.5 %, `Optimizer.step#SGD.step` 6.78 %"
        )
        assert finding.places[0].function == "forward", "the own function with most of the time"

    def test_all_devices_of_a_process_as_one(self) -> None:
        profile = job(50, 10)
        table = profile.table
        device = table.device.copy()
        kernels = np.flatnonzero(device != ABSENT)
        device[kernels[::2]] = 1
        (one,), (both,) = reported(profile), reported(Profile(replace(table, device=device)))
        assert (one.id, one.cost_ns) == (both.id, both.cost_ns)

    def test_no_place_with_next_to_nothing(self) -> None:
        # 11 + 18 · 36 of 665 µs in `train`, and 5 of the 6 after the last kernel in `log`.
        lines = ["ProfilerStep#1 0-931", "  train.py(3): train 1-923", operators(range(10, 920, 50), 10, "    ")]
        (finding,) = reported(draw("\n".join([*lines, "  log.py(5): log 925-930"]), A100))
        assert finding.message.endswith("most of it for `train` (train.py:3) 99.1 %")

    @pytest.mark.parametrize("pace", [30, 50, 90])
    def test_the_figure_of_the_ledger(self, pace: int) -> None:
        profile = job(pace, 10, frame="train.py(3): train")
        (finding,) = reported(profile)
        (entry,) = (each for each in account_of(profile).ledger.entries if each.cause is Cause.LAUNCH_PACE)
        assert (finding.cost_ns, finding.share) == (entry.ns_per_step, entry.share)

    def test_it_is_one_finding_on_all_ranks(self) -> None:
        """Each rank has a device of another number."""
        profile = job(50, 10)
        on_fifth = np.where(profile.table.device == ABSENT, ABSENT, 5).astype(profile.table.device.dtype)
        (first,), (other,) = reported(profile), reported(Profile(replace(profile.table, device=on_fifth)))
        assert first.id == other.id

    def test_it_is_surer_without_stacks(self) -> None:
        (without,), (with_stacks,) = reported(job(50, 10)), reported(job(50, 10, frame="train.py(3): train"))
        assert (without.confidence, with_stacks.confidence) == ("high", "medium")
        # Of the 734 µs, a host 2.3 times as fast takes 13 µs in each of the 19 gaps that follow a kernel of 10 µs.
        assert "Recording slows the host up to 2.3 times, which leaves 66.3 % of this time" in why(without)
        assert "Recording Python stacks slows the host up to 2.7 times" in why(with_stacks)

    def test_it_is_not_sure_of_what_recording_alone_could_have_caused(self) -> None:
        # 22 of 50 µs are idle; a host 2.3 times as fast would launch every 22 µs, and the kernels take 28 µs.
        (finding,) = reported(job(50, 28))
        assert finding.confidence == "medium"
        (finding,) = reported(job(50, 28, frame="train.py(3): train"))
        assert finding.confidence == "low"

    def test_its_evidence_is_bounded(self) -> None:
        profile = draw(f"ProfilerStep#1 0-30000\n{operators(range(10, 29_000, 50), 10)}", A100)
        (match,) = matches_of(GpuIdleHostBound, profile)
        assert len(match.events) == 200


class TestSaves:
    def test_the_gaps_without_what_recording_adds(self) -> None:
        # Recording slows the host 1.4 times: of each gap after a kernel, 0.4 · 10 µs were not there without it.
        assert saving_ns(GpuIdleHostBound, job(50, 10)) == (0, 734_000 - 19 * 4_000, 734_000)

    def test_less_with_stacks(self) -> None:
        low, expected, high = saving_ns(GpuIdleHostBound, job(50, 10, frame="train.py(3): train"))
        assert (low, expected, high) == (0, 734_000 - 19 * 7_000, 734_000)

    def test_nothing_is_expected_where_recording_explains_it_all(self) -> None:
        # Gaps of 10 µs after kernels of 40 µs; 0.7 · 40 is more. What is left is the time before the first launch, and
        # the time after the last kernel that is longer than 28 µs.
        low, expected, high = saving_ns(GpuIdleHostBound, job(50, 40, frame="train.py(3): train"))
        assert (low, expected, high) == (0, 11_000 + 17_000, 11_000 + 18 * 6_000 + 45_000)


class TestStaysQuiet:
    def test_below_fifteen_hundredths_of_the_step(self) -> None:
        # 11 + 18 · 6 + 45 µs are 16.4 %, 11 + 18 · 5 + 44 are 14.5 %.
        assert reported(job(50, 40))
        assert not reported(job(50, 41))
        assert reported(job(50, 41), GpuIdleHostBound({"min_share": 0.14}))

    def test_when_the_host_is_ahead(self) -> None:
        launches = "\n".join(
            f"  aten::mm {10 + 20 * at}-{20 + 20 * at} kernel=gemm@{20 + 45 * at}-{65 + 45 * at}" for at in range(20)
        )
        assert not matches_of(GpuIdleHostBound, draw(f"ProfilerStep#1 0-1000\n{launches}", A100))

    def test_when_the_next_kernel_was_launched_in_time(self) -> None:
        # Launched every 10 µs, begun every 50 µs: they wait for another stream or device.
        launches = "\n".join(
            f"  aten::mm {10 + 10 * at}-{18 + 10 * at} kernel=gemm@{20 + 50 * at}-{30 + 50 * at}" for at in range(18)
        )
        assert not reported(draw(f"ProfilerStep#1 0-1000\n{launches}", A100))

    def test_when_a_batch_is_loaded(self) -> None:
        load = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        halves = "  serve.py(3): serve 1-499\n" + operators([10, 450], 10, "    ")
        assert reported(draw(f"ProfilerStep#1 0-500\n{halves}", A100))
        assert not reported(draw(f"ProfilerStep#1 0-500\n{halves}\n    {load} 30-440", A100))

    @pytest.mark.parametrize("cause", ["Python GC", "torch/_dynamo/convert_frame.py(9): _compile", "gloo:all_reduce"])
    def test_when_something_else_holds_the_host(self, cause: str) -> None:
        assert not reported(draw(f"ProfilerStep#1 0-500\n{operators([10, 450], 10)}\n  {cause} 21-449", A100))

    def test_after_a_wait_for_a_value(self) -> None:
        read = "  aten::item 30-900 wait=31-899 copy=DtoH@880-890:4"
        busy = "  aten::mm 10-20 kernel=gemm@20-880"
        after = operators([960], 10)
        assert not reported(draw(f"ProfilerStep#1 0-1200\n{busy}\n{read}\n{after}", A100))

    def test_in_gaps_in_which_the_host_did_something_else(self) -> None:
        def gap_of(lasts: int) -> Profile:
            frame = "  serve.py(3): serve 1-1999"
            return draw(f"ProfilerStep#1 0-2000\n{frame}\n{operators([10, 15 + lasts + 5], 10, '    ')}", A100)

        # From the return of one launch at 11 to the next, which is the ledger's limit for host work.
        assert reported(gap_of(490))
        assert not reported(gap_of(492))

    def test_in_steps_that_warm_up(self) -> None:
        warm = f"ProfilerStep#1 0-5000\n{operators(range(10, 4900, 50), 10)}"
        rest = "\n".join(
            f"ProfilerStep#{n} {n}000-{n}900\n  aten::mm {n}010-{n}020 kernel=gemm@{n}015-{n}890" for n in (5, 6, 7)
        )
        assert not reported(draw(f"{warm}\n{rest.replace('ProfilerStep#5 5000', 'ProfilerStep#5 5001')}", A100))

    def test_before_the_first_and_after_the_last_kernel(self) -> None:
        assert not reported(draw("ProfilerStep#1 0-1000\n  aten::mm 480-490 kernel=gemm@485-520", A100))

    def test_where_launches_were_not_recorded(self) -> None:
        profile = job(50, 10)
        table = replace(profile.table, correlation=np.full(len(profile.table), ABSENT, np.int64))
        assert "which call launched which device work" in reason_not_checked(GpuIdleHostBound, Profile(table))

    @pytest.mark.parametrize(
        ("name", "is_host_bound"),
        [
            ("b200_eager", True),  # inference without graphs
            ("v100_2021_resnet50_workers4", True),
            ("v100_2021_resnet50_workers0", False),  # the loader's
            ("a100_ddp8_control", False),  # 13 %
            ("mi300_vllm_graph_decode", False),  # graphs
            ("mi300_sglang_prefill_decode", False),  # one gap of half a second, in which a kernel is built
            ("mi300_ddp8_resnet_checkpoint", False),  # communication
        ],
    )
    def test_in_real_recordings_but_those_that_wait_for_their_host(self, name: str, is_host_bound: bool) -> None:
        path = next(shared(f"traces/{name}").glob("*.json*"))
        assert bool(reported(Profile(read_trace(path)))) == is_host_bound
