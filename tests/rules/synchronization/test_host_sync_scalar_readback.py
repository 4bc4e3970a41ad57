"""host-sync-scalar-readback: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast
from itertools import count

import pytest

from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.report.model import Finding, Note
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, MI300, Gpu, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.synchronization.host_sync_scalar_readback import HostSyncScalarReadback
from tb_tidy_plugin.words.causes import Cause

WORK = "    aten::mm 5-15 kernel=gemm@20-400"
READ = "    aten::item 20-410 wait=25-408 copy=DtoH@400-405:4"
NEXT = "    aten::mm 600-610 kernel=gemm@605-900"


def step(*lines: str, function: str = "train.py(3): step", end: int = 1000, gpu: Gpu = A100) -> Profile:
    return draw("\n".join([f"ProfilerStep#1 0-{end}", f"  {function} 1-{end - 1}", *lines]), gpu)


def steps(number: int, *with_read: int) -> Profile:
    """Steps of 1000 µs; in those `with_read` the device idles for 200 µs after the host has read a value."""
    lines = []
    for at in range(number):
        base = 1000 * at
        kernel = f"    aten::mm {base + 5}-{base + 15} kernel=gemm@{base + 20}-{base + 400}"
        wait, copy = f"wait={base + 25}-{base + 408}", f"copy=DtoH@{base + 400}-{base + 405}:4"
        read = f"    aten::item {base + 20}-{base + 410} {wait} {copy}"
        after = f"    aten::mm {base + 600}-{base + 610} kernel=gemm@{base + 605}-{base + 990}"
        lines += [f"ProfilerStep#{at + 1} {base}-{base + 999}", f"  train.py(3): step {base + 1}-{base + 998}"]
        lines += [kernel, *([read] if at in with_read else []), after]
    return draw("\n".join(lines), A100)


def loop(
    reads: int, *also: str, function: str = "eval.py(3): count", end: int = 4000, read: str = "aten::item"
) -> Profile:
    """A loop that reads a value every 10 µs, from 100 µs on."""
    body = [line for at in range(reads) for line in _iteration(100 + 10 * at, read, *also)]
    return draw("\n".join([f"ProfilerStep#1 0-{end}", f"  {function} 1-{end - 1}", "    aten::mm 10-50", *body]))


def _iteration(start: int, *names: str) -> list[str]:
    return [f"    {name} {at}-{at + 1}" for name, at in zip(names, count(start, 2))]


def why(finding: Finding) -> str:
    note = finding.details[0]
    assert isinstance(note, Note)
    return note.text


class TestReports:
    def test_a_value_that_the_host_waits_for(self) -> None:
        (finding,) = findings(HostSyncScalarReadback, step(WORK, READ, NEXT))
        assert finding.message == (
            "Reading values (`aten::item`) makes the host wait for the device once per step; "
            "then the device idles for 196 µs per step"
        )
        assert finding.cost_ns == 196_000  # from 405 until the next launch returns at 601
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "step")]
        assert "held there for 390 µs" in why(finding)

    @pytest.mark.parametrize("name", ["aten::is_nonzero", "aten::equal", "aten::nonzero", "aten::_local_scalar_dense"])
    def test_other_operators_that_cannot_go_on_without_a_value(self, name: str) -> None:
        assert matches_of(HostSyncScalarReadback, step(WORK, READ.replace("aten::item", name), NEXT))

    def test_a_tensor_of_few_bytes_brought_to_the_host(self) -> None:
        copy = "    aten::to 20-410\n      aten::_to_copy 21-409 wait=25-408 copy=DtoH@400-405:4096"
        (match,) = matches_of(HostSyncScalarReadback, step(WORK, copy, NEXT))
        assert match.evidence.reader == "Reading values (`aten::to`) makes the host wait for the device"

    def test_on_rocm(self) -> None:
        assert matches_of(HostSyncScalarReadback, step(WORK, READ, NEXT, gpu=MI300))

    def test_several_reads_as_one_finding_per_function(self) -> None:
        # From 405 until the copy is launched at 430, and from 450 until the next launch returns at 601: the second wait
        # holds the host for only 10 µs, but the first one for 380.
        second = "    aten::item 430-460 wait=440-455 copy=DtoH@445-450:4"
        (finding,) = findings(HostSyncScalarReadback, step(WORK, READ, second, NEXT))
        assert (finding.matches, finding.cost_ns) == (2, 25_000 + 151_000)

    def test_a_copy_that_ends_after_its_wait_by_the_clock_of_the_device(self) -> None:
        (match,) = matches_of(HostSyncScalarReadback, step(WORK, READ.replace("400-405", "400-412"), NEXT))
        assert match.lost == ((412_000, 601_000),)

    def test_the_figure_of_the_ledger(self) -> None:
        profile = step(WORK, READ, NEXT)
        (finding,) = findings(HostSyncScalarReadback, profile)
        (entry,) = (each for each in account_of(profile).ledger.entries if each.cause is Cause.SYNCHRONISATION)
        assert (finding.cost_ns, finding.share) == (entry.ns_per_step, entry.share)

    def test_reads_in_every_second_step(self) -> None:
        (finding,) = findings(HostSyncScalarReadback, steps(4, 0, 2))
        assert "0.5 times per step" in finding.message

    def test_a_loop_of_reads_on_a_cpu(self) -> None:
        (finding,) = findings(HostSyncScalarReadback, loop(64))
        assert finding.message == (
            "A Python loop reads single values of tensors 64 times per step; this takes 631 µs per step"
        )
        assert finding.places[0].function == "count"

    def test_a_loop_of_reads_of_picked_values(self) -> None:
        assert matches_of(HostSyncScalarReadback, loop(64, "aten::select", read="aten::item"))

    def test_a_loop_of_lists_of_one_value(self) -> None:
        body = [
            line
            for at in range(100, 800, 10)
            for line in (
                f"    <built-in method tolist of Tensor object at 0x1> {at}-{at + 8}",
                f"      aten::resolve_conj {at + 1}-{at + 3}",
                f"      aten::resolve_neg {at + 4}-{at + 6}",
            )
        ]
        profile = draw("\n".join(["ProfilerStep#1 0-1000", "  eval.py(3): count 1-999", *body]))
        (match,) = matches_of(HostSyncScalarReadback, profile)
        assert match.evidence.calls == "70 times"

    def test_the_loop_of_a_generator_at_its_own_line(self) -> None:
        body = [
            line
            for at in range(100, 800, 10)
            for line in (f"    eval.py(7): <genexpr> {at}-{at + 8}", f"      aten::item {at + 1}-{at + 3}")
        ]
        (finding,) = findings(
            HostSyncScalarReadback, draw("\n".join(["ProfilerStep#1 0-1000", "  eval.py(3): count 1-999", *body]))
        )
        assert (finding.places[0].line, finding.places[0].function) == (7, "<genexpr>")

    def test_the_loop_that_calls_a_function_that_reads(self) -> None:
        body = [
            line
            for at in range(100, 800, 10)
            for line in (f"    eval.py(7): value_of {at}-{at + 8}", f"      aten::item {at + 1}-{at + 3}")
        ]
        (finding,) = findings(
            HostSyncScalarReadback, draw("\n".join(["ProfilerStep#1 0-1000", "  eval.py(3): count 1-999", *body]))
        )
        assert finding.places[0].function == "count"

    def test_a_benchmark_of_as_many_values(self) -> None:
        (match,) = matches_of(HostSyncScalarReadback, loop(70))
        benchmark = HostSyncScalarReadback().benchmark(match.evidence)
        assert benchmark is not None
        assert "torch.zeros(70, device=device)" in benchmark.setup
        for statement in (benchmark.setup, benchmark.before, benchmark.after):
            ast.parse(statement)
        (match,) = matches_of(HostSyncScalarReadback, step(WORK, READ, NEXT))
        assert HostSyncScalarReadback().benchmark(match.evidence) is None


class TestSaves:
    def test_the_idle_time_after_the_wait(self) -> None:
        assert saving_ns(HostSyncScalarReadback, step(WORK, READ, NEXT)) == (0, 196_000, 196_000)

    def test_no_more_than_the_wait_held_the_host(self) -> None:
        # The queue is empty when the read begins: 300 µs idle afterwards, but the wait from 425 to 489 is all it wins.
        read = "    aten::item 420-490 wait=425-489 copy=DtoH@480-485:4"
        later = "    aten::mm 780-790 kernel=gemm@785-900"
        assert saving_ns(HostSyncScalarReadback, step(WORK, read, later)) == (0, 64_000, 64_000)

    def test_per_step(self) -> None:
        assert saving_ns(HostSyncScalarReadback, steps(4, 0, 2)) == (0, 98_000, 98_000)

    def test_most_of_a_loop_on_a_cpu(self) -> None:
        # The last one of 64 reads begins at 730 and takes 1 µs.
        assert saving_ns(HostSyncScalarReadback, loop(64)) == (0, 504_800, 631_000)


class TestStaysQuiet:
    def test_when_the_device_goes_on_at_once(self) -> None:
        other = "    aten::mm 5-15 kernel=gemm@20-400 kernel=gemm@400-650"
        assert not matches_of(HostSyncScalarReadback, step(other, READ, NEXT.replace("605", "650")))

    def test_below_fifty_microseconds_of_idle_time(self) -> None:
        def idle_for(time: int) -> Profile:
            launched = 405 + time  # when the call returns, which takes 1 µs
            return step(WORK, READ, f"    aten::mm {launched - 1}-{launched + 9} kernel=gemm@{launched + 5}-900")

        assert matches_of(HostSyncScalarReadback, idle_for(50))
        assert not matches_of(HostSyncScalarReadback, idle_for(49))
        assert matches_of(HostSyncScalarReadback({"min_idle_ns": 40_000}), idle_for(49))

    def test_for_values_logged_every_few_steps(self) -> None:
        assert not matches_of(HostSyncScalarReadback, steps(5, 0, 2))
        assert matches_of(HostSyncScalarReadback({"min_steps": 0.4}), steps(5, 0, 2))

    def test_after_the_last_work(self) -> None:
        assert not matches_of(HostSyncScalarReadback, step(WORK, READ))

    def test_for_a_read_that_waits_for_nothing(self) -> None:
        of_the_cpu = "    aten::item 20-410"
        assert not matches_of(HostSyncScalarReadback, step(WORK, of_the_cpu, NEXT))

    def test_for_a_copy_that_does_not_wait(self) -> None:
        copy = "    aten::to 20-30 copy=DtoH@400-405:4"
        assert not matches_of(HostSyncScalarReadback, step(WORK, copy, NEXT))

    def test_for_results_of_more_than_four_kibibytes(self) -> None:
        copy = "    aten::to 20-410 wait=25-408 copy=DtoH@400-405:4097"
        assert not matches_of(HostSyncScalarReadback, step(WORK, copy, NEXT))

    def test_for_a_copy_to_the_device_that_waits(self) -> None:
        copy = "    aten::to 20-410 wait=25-408 copy=HtoD@400-405:4"
        assert not matches_of(HostSyncScalarReadback, step(WORK, copy, NEXT))

    def test_for_a_wait_without_a_read(self) -> None:
        assert not matches_of(HostSyncScalarReadback, step(WORK, "    aten::mm 20-410 wait=25-408", NEXT))

    def test_after_another_wait(self) -> None:
        # The copy to the device waits, too: the time after it belongs to that wait.
        copy = "    aten::to 480-500 wait=485-498 copy=HtoD@490-495:4"
        (match,) = matches_of(HostSyncScalarReadback, step(WORK, READ, copy, NEXT))
        assert match.lost == ((405_000, 480_000),)

    def test_while_garbage_is_collected(self) -> None:
        (match,) = matches_of(HostSyncScalarReadback, step(WORK, READ, NEXT, "    Python GC 430-450"))
        assert match.lost == ((405_000, 430_000), (450_000, 601_000))

    def test_while_a_batch_is_loaded(self) -> None:
        load = "    enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ 420-590"
        assert not matches_of(HostSyncScalarReadback, step(WORK, READ, load, NEXT))

    @pytest.mark.parametrize(
        "function",
        ["torch/optim/adam.py(9): step", "torch/amp/grad_scaler.py(9): _maybe_opt_step", "Optimizer.step#A.step"],
    )
    def test_in_optimizers_and_scalers(self, function: str) -> None:
        assert not matches_of(HostSyncScalarReadback, step(WORK, READ, NEXT, function=function))

    def test_for_fewer_than_64_values_on_a_cpu(self) -> None:
        assert not matches_of(HostSyncScalarReadback, loop(63))
        assert matches_of(HostSyncScalarReadback({"min_values": 63}), loop(63))

    def test_for_loops_that_run_other_operators(self) -> None:
        assert not matches_of(HostSyncScalarReadback, loop(64, "aten::add"))

    def test_for_single_reads_on_a_cpu(self) -> None:
        lines = [f"    aten::mm {at}-{at + 8}\n    aten::item {at + 9}-{at + 10}" for at in range(100, 3000, 30)]
        profile = draw("\n".join(["ProfilerStep#1 0-4000", "  train.py(3): step 1-3999", *lines]))
        assert not matches_of(HostSyncScalarReadback, profile)

    @pytest.mark.parametrize("function", ["torch/optim/adam.py(9): _single_tensor_adam", "Optimizer.step#Adam.step"])
    def test_for_counters_of_an_optimizer(self, function: str) -> None:
        assert not matches_of(HostSyncScalarReadback, loop(80, function=function))

    def test_in_libraries(self) -> None:
        assert not matches_of(HostSyncScalarReadback, loop(80, function="transformers/trainer.py(9): log"))
