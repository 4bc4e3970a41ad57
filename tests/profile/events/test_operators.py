"""Operators: what calls take on the host and on devices, and the kernels they launch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tb_tidy_plugin.profile.events.operators import KernelUse, OperatorTotals, kernels_of, totals
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.written import event, kineto_text, write

TRAINING = """
ProfilerStep#1                 0-1000
  aten::linear                 100-300
    aten::addmm                110-290  kernel=ampere_fp16_s16816gemm_fp16@200-400  kernel=splitKreduce_kernel@400-450
  aten::linear                 400-600
    aten::addmm                410-590  kernel=ampere_fp16_s16816gemm_fp16@420-520
  aten::relu                   700-800  kernel=vectorized_elementwise_kernel@480-560
  aten::to                     850-950
    aten::_to_copy             860-940  copy=HtoD@900-930:4096
"""


def by_name(profile: Profile, *, outermost: bool = False) -> dict[str, OperatorTotals]:
    numbers, names = profile.plain_number(np.arange(len(profile.table))), profile.plain_names
    keys = numbers[profile.nested.rows].astype(np.int64)
    return {names[found.group]: found for found in totals(profile.operators, keys, outermost=outermost)}


def us(nanoseconds: int) -> float:
    return nanoseconds / 1000


def test_an_operators_own_time_is_without_the_calls_inside() -> None:
    found = by_name(draw(TRAINING, A100))
    assert found["aten::linear"].calls == 2
    assert us(found["aten::linear"].host_total_ns) == 400
    assert us(found["aten::linear"].host_self_ns) == 40
    assert us(found["aten::addmm"].host_self_ns) == 360 - 2  # launches take 1 µs, and two begin at once
    assert us(found["ProfilerStep*"].host_self_ns) == 1000 - 200 - 200 - 100 - 100


def test_device_time_is_that_of_all_that_was_launched_inside() -> None:
    found = by_name(draw(TRAINING, A100))
    assert us(found["aten::addmm"].device_self_ns) == us(found["aten::addmm"].device_total_ns) == 350
    assert us(found["aten::linear"].device_total_ns) == 350
    assert found["aten::linear"].device_self_ns == 0
    assert us(found["aten::to"].device_total_ns) == 30
    assert us(found["ProfilerStep*"].device_total_ns) == 460


def test_work_that_runs_at_the_same_time_is_busy_time_once() -> None:
    found = by_name(draw(TRAINING, A100))
    assert us(found["ProfilerStep*"].device_busy_ns) == (560 - 200) + 30
    assert us(found["aten::addmm"].device_busy_ns) == 520 - 200
    assert found["ProfilerStep*"].device_work == 5


def test_tensor_cores_yes_no_unknown() -> None:
    found = by_name(draw(TRAINING, A100))
    assert found["aten::addmm"].tensor_cores is True
    assert found["aten::relu"].tensor_cores is False
    assert found["aten::to"].tensor_cores is None
    unknown = draw("aten::mine 0-100  kernel=my_own_kernel@10-50", A100)
    assert by_name(unknown)["aten::mine"].tensor_cores is None


def test_kernels_of_an_operator() -> None:
    profile = draw(TRAINING, A100)
    numbers, names = profile.plain_number(np.arange(len(profile.table))), profile.plain_names
    calls = numbers[profile.nested.rows] == names.index("aten::linear")
    assert kernels_of(profile.table, profile.operators, calls) == [
        KernelUse("ampere_fp16_s16816gemm_fp16", Category.KERNEL, 2, 300_000, 200_000, "matrix", True),
        KernelUse("splitKreduce_kernel", Category.KERNEL, 1, 50_000, 50_000, "matrix", None),
    ]
    every = kernels_of(profile.table, profile.operators, np.ones(len(calls), np.bool_))
    assert [use.category for use in every if use.tensor_cores is None] == [Category.KERNEL, Category.COPY]


def test_a_call_inside_one_of_its_group_counts_twice_only_where_torch_counts_so() -> None:
    profile = draw(
        """
        aten::outer         0-100
          aten::other       10-90
            aten::outer     20-60  kernel=k@30-50
          aten::third       92-95
        """,
        A100,
    )
    assert us(by_name(profile)["aten::outer"].host_total_ns) == 140
    assert us(by_name(profile)["aten::outer"].device_total_ns) == 40
    once = by_name(profile, outermost=True)["aten::outer"]
    assert (us(once.host_total_ns), us(once.device_total_ns), once.calls) == (100, 20, 1)
    assert once.host_self_ns == by_name(profile)["aten::outer"].host_self_ns


def test_an_only_child_of_the_same_name_is_one_call_with_its_parent() -> None:
    profile = draw(
        """
        aten::to            0-100
          aten::to          10-90
            aten::copy_     20-60  copy=DtoH@30-50:64
        """,
        A100,
    )
    found = by_name(profile)["aten::to"]
    assert (found.calls, us(found.host_total_ns), us(found.host_self_ns)) == (1, 100, 60)
    assert us(found.device_total_ns) == 20


def test_work_under_an_annotation_alone_belongs_to_it() -> None:
    profile = draw(
        """
        ## mine             0-100  kernel=k@30-50
        aten::c10d          200-300
          ## nccl:all       210-290  kernel=ncclDevKernel@230-270
        """,
        A100,
    )
    found = by_name(profile)
    assert us(found["## mine"].device_self_ns) == 20
    assert us(found["aten::c10d"].device_self_ns) == 40
    assert found["## nccl:all"].device_total_ns == 0


def test_what_ran_on_the_host_is_known_where_all_launches_are(tmp_path: Path) -> None:
    profile = draw("aten::mm 0-10  kernel=k@5-9\naten::view 20-30", A100)
    assert profile.operators.on_host[profile.nested.at[profile.named("aten::view")]].all()
    assert not profile.operators.on_host[profile.nested.at[profile.named("aten::mm")]].any()
    orphan = event("k", 5, 4, cat="kernel", pid=0, tid=7, args={"device": 0, "stream": 7, "correlation": 99})
    path = write(tmp_path / "t.json", kineto_text([event("aten::view", 0, 10), orphan]))
    assert not Profile(read_trace(path)).operators.on_host.any()
