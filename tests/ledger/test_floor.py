"""The floor of entries and of a step: figures by hand, the reasons for the rest, and no call faster than its floor."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.ledger.model import Entry
from tb_tidy_plugin.profile.machine import device_machine
from tb_tidy_plugin.profile.serving.paged_attention import serving_estimates_of
from tb_tidy_plugin.profile.work.flops import device_of
from tb_tidy_plugin.trace.columns import EventTable
from tb_tidy_plugin.trace.measured_machine import CopyRate, MeasuredDtype, MeasuredHost, MeasuredMachine, ProductRate
from tb_tidy_plugin.trace.settings import Settings, Threads
from tb_tidy_plugin.words.causes import Kind
from tests.ledger.traces import Made, account_in, recordings

COPIES = tuple(CopyRate(1 << 10, threads, 1e12) for threads in (1, 4))
RATES: tuple[tuple[MeasuredDtype, int, float], ...] = (
    ("float32", 1, 1e11), ("float32", 4, 4e11), ("bfloat16", 1, 2e11), ("bfloat16", 4, 8e11),
)  # fmt: skip
HOST = MeasuredHost(
    threads=4,
    products=tuple(ProductRate(dtype, threads, rate) for dtype, threads, rate in RATES),
    copies=COPIES,
    operator_ns=1_000,
)


def product(dtype: str, rows: int = 1_000) -> dict[str, object]:
    return {"Input Dims": [[rows, 1_000], [1_000, 1_000]], "Input type": [dtype, dtype]}


def on_device(dtype: str, took_us: float) -> Entry:
    """A product of 2e9 operations on an A100: 312 TFLOP/s in 16 bits, 19.5 in float32 on ordinary cores."""
    made = Made().mark("ProfilerStep#1", 0, 2_000).mark("ProfilerStep#2", 2_000, 4_000)
    for start in (0, 2_000):
        made.operator("aten::mm", start + 10, start + 40, **product(dtype))  # type: ignore[arg-type]
        made.kernel("ampere_sgemm_128x64_nn" if dtype == "float" else "ampere_bf16_s16816gemm_bf16",
                    start + 100, start + 100 + took_us, launch=start + 20)  # fmt: skip
    return next(each for each in made.account().ledger.entries if each.kind is Kind.MATRIX)


def on_host(dtype: str, threads: int, took_us: float = 50_000) -> Entry:
    made = Made().mark("ProfilerStep#1", 0, took_us + 1_000)
    made.keys, made.device = {}, {}
    made.operator("aten::mm", 500, 500 + took_us, **product(dtype))  # type: ignore[arg-type]

    def completed(table: EventTable) -> EventTable:
        replace, metadata = msgspec.structs.replace, table.metadata
        settings = Settings(threads=Threads(intra_op=threads))
        machine = MeasuredMachine("2.13.0", HOST)
        return replace(
            table, metadata=replace(metadata, captured=replace(metadata.captured, settings=settings, machine=machine))
        )

    account = account_of(made.profile(completed))
    return next(each for each in account.ledger.entries if each.kind is Kind.MATRIX)


class TestDevice:
    def test_a_product_of_16_bits_needs_its_operations(self) -> None:
        entry = on_device("c10::BFloat16", 100)
        assert entry.ns_total == 200_000
        assert entry.floor_ns == pytest.approx(2 * 2e9 / 312e12 * 1e9, abs=2)
        assert [(gap.reason, gap.ns) for gap in entry.gaps] == [("slow_kernel", entry.ns_total - entry.floor_ns)]

    def test_in_float32_most_of_it_is_precision(self) -> None:
        entry = on_device("float", 200)
        written, floor = 2 * 2e9 / 19.5e12 * 1e9, 2 * 2e9 / 312e12 * 1e9
        gaps = {gap.reason: gap.ns for gap in entry.gaps}
        assert entry.floor_ns == pytest.approx(floor, abs=2)
        assert gaps["precision"] == pytest.approx(written - floor, abs=2)
        assert gaps["slow_kernel"] == pytest.approx(400_000 - written, abs=4)

    def test_work_without_shapes_is_not_known(self) -> None:
        made = Made().mark("ProfilerStep#1", 0, 1_000).kernel("ampere_sgemm_128x64_nn", 100, 300, launch=20)
        account = made.account()
        entry = next(each for each in account.ledger.entries if each.kind is Kind.MATRIX)
        assert (entry.floor_ns, entry.floor_known_ns) == (0, 0)
        assert [gap.reason for gap in entry.gaps] == ["unknown"]
        assert account.floor is not None
        assert account.floor.text == "", "too little is known"

    def test_a_step_that_mostly_waits_is_judged_by_its_work(self) -> None:
        """Most of the step is explained, and nothing is known of the little work in it."""
        made = Made().mark("ProfilerStep#1", 0, 100_000)
        made.operator("aten::mm", 10, 40, **product("c10::BFloat16"))  # type: ignore[arg-type]
        made.kernel("ampere_bf16_s16816gemm_bf16", 100, 120, launch=20)
        made.operator("custom::op", 90_000, 90_040).kernel("custom", 90_100, 91_100, launch=90_020)
        made.mark("ProfilerStep#2", 100_000, 200_000).frame("train.py(9): prepare", 130, 90_000)
        floor = made.account().floor
        assert floor is not None
        assert (floor.ns > 0, floor.text) == (True, "")


class TestHost:
    def test_a_product_in_bfloat16_on_all_cores(self) -> None:
        entry = on_host("c10::BFloat16", threads=4)
        assert entry.floor_ns == 2_500_000  # 2e9 operations at 8e11 per second
        assert [(gap.reason, gap.ns) for gap in entry.gaps] == [("slow_kernel", 47_499_000), ("launch", 1_000)]

    def test_one_thread_and_float32_are_reasons(self) -> None:
        entry = on_host("float", threads=1)
        gaps = {gap.reason: gap.ns for gap in entry.gaps}
        assert entry.floor_ns == 2_500_000
        assert (gaps["threads"], gaps["precision"]) == (15_000_000, 2_500_000)  # 20 ms to 5 ms, and to 2.5 ms

    def test_a_call_faster_than_the_machine_can_be_is_not_known(self) -> None:
        assert on_host("c10::BFloat16", threads=4, took_us=2_000).floor_known_ns == 0


@pytest.mark.parametrize("name", recordings())
def test_no_call_beats_its_floor_by_more_than_5_percent(name: str) -> None:
    profile, _ = account_in(name)
    machine, device = device_machine(profile), device_of(profile)
    if machine is None or device is None or "shapes" not in profile.recorded:
        pytest.skip("its device or its shapes are not known")
    found = serving_estimates_of(profile)
    moving = np.array([float(each) / (machine.bytes_per_second(int(each)) or 1) * 1e9 for each in found.bytes])
    computing = np.nan_to_num(found.ideal_ns) > found.bytes / device.bytes_per_second * 1.001e9
    least = np.where(computing, found.ideal_ns, moving)
    known = (found.time_ns > 0) & (least > 0) & (profile.operators.device_total_ns > 0)
    assert not (known & (least > 1.05 * found.time_ns)).any()
