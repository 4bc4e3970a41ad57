"""pageable-h2d-copy: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Benchmark, Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, MI300, V100, draw, findings, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rules.host_device.pageable_h2d_copy import PageableH2dCopy

BATCH = "dims=256x1024 types=float"
SIZE = 256 * 1024 * 4
INDENT = " " * 8
WORK_BEFORE = f"{INDENT}aten::relu 0-2 kernel=relu@1-5"


def step(
    at: int, copied: str = f"copy=HtoD@{{at}}160-{{at}}400:{SIZE}", launched: str = "kernel=gemm@{at}510-{at}980"
) -> str:
    """A step of 1 ms: a batch of 1 MiB is copied for 240 of the 300 µs that the call takes, then a kernel uses it."""
    copied, launched = copied.format(at=at), launched.format(at=at)
    return f"""
        ProfilerStep#{at}          {at}000-{at}990
          train.py(9): step        {at}001-{at}989
            aten::to               {at}100-{at}410  {BATCH}
              aten::_to_copy       {at}105-{at}405  {BATCH}
                aten::copy_        {at}110-{at}402  dims=256x1024,256x1024 types=float,float {copied}
            aten::mm               {at}500-{at}510  {BATCH} {launched}"""


def steps(**changes: str) -> str:
    """Two of them, with work of the device before."""
    return WORK_BEFORE + step(1, **changes) + step(2, **changes)


def matches(profile: Profile, **settings: float) -> tuple[Match, ...]:
    return matches_of(PageableH2dCopy(settings), profile)


class TestReports:
    def test_a_batch_that_is_copied_from_pageable_memory(self) -> None:
        (finding,) = findings(PageableH2dCopy, draw(steps(), V100))
        assert finding.message == (
            "`aten::to` copies 1 MiB to the GPU from pageable memory, and the step waits 292 µs for it"
        )
        assert (finding.matches, finding.places[0].function) == (2, "step")

    def test_a_copy_into_memory_of_the_gpu(self) -> None:
        profile = draw(steps().replace("aten::to ", "other ").replace("aten::_to_copy", "other"), V100)
        assert {match.evidence.operator for match in matches(profile)} == {"aten::copy_"}

    def test_the_speed_of_pinned_memory_from_the_recording_itself(self) -> None:
        pinned = f"\n{INDENT}aten::copy_ 3000-3010 copy=Memcpy_HtoD_(Pinned_->_Device)@3020-3062:{SIZE}"
        (finding,) = findings(PageableH2dCopy, draw(steps() + pinned, V100))
        assert "pinned memory reaches 25.0 GB/s (as other copies here do)" in finding.details[0].text  # type: ignore[union-attr]

    def test_copies_without_stacks_in_the_steps_alone(self) -> None:
        text = "\n".join(line for line in steps().splitlines() if "train.py" not in line)
        assert len(matches(draw(text, V100))) == 2


class TestSaves:
    def test_what_pinned_memory_is_faster_by_and_at_most_all(self) -> None:
        # The call takes 292 µs, the copy lies in it; 1 MiB at 12 GB/s takes 87.4 µs.
        low, expected, high = saving_ns(PageableH2dCopy, draw(steps(), V100))
        assert (low, high) == (0, 292_000)
        assert expected == pytest.approx(292_000 - SIZE / 12, abs=2)

    def test_more_on_a_faster_bus(self) -> None:
        expected = saving_ns(PageableH2dCopy, draw(steps(), A100))[1]
        assert expected == pytest.approx(292_000 - SIZE / 24, abs=2)

    def test_only_what_no_kernel_hides(self) -> None:
        # A kernel of the step before runs until 300: of the call 102 µs are left, in which the copy ends.
        kernels = "".join(f"\n{INDENT}aten::bmm {at}991-{at}992 kernel=bmm@{at}993-{at + 1}300" for at in (0, 1))
        text = WORK_BEFORE + kernels + step(1) + step(2)
        assert saving_ns(PageableH2dCopy, draw(text, V100))[2] == 102_000

    def test_nothing_of_a_wait_for_what_was_launched_before_the_recording(self) -> None:
        # Nothing is known of the device until the first copy begins at 1160: 242 µs of the first call, 292 of the next.
        assert saving_ns(PageableH2dCopy, draw(step(1) + step(2), V100))[2] == (242_000 + 292_000) / 2

    def test_a_benchmark_of_the_same_tensor(self) -> None:
        assert PageableH2dCopy().benchmark(matches(draw(steps(), V100))[0].evidence) == Benchmark(
            before="result = pageable.to(device)\ntorch.cuda.synchronize()",
            after="result = pinned.to(device, non_blocking=True)\ntorch.cuda.synchronize()",
            setup=(
                "import torch\n"
                "pageable = torch.zeros((256, 1024), dtype=torch.float32)\n"
                "pinned = torch.zeros((256, 1024), dtype=torch.float32, pin_memory=True)"
            ),
            devices=("cuda",),
            of_events=True,
        )

    def test_no_benchmark_without_shapes(self) -> None:
        profile = draw(steps().replace(BATCH, "").replace("dims=256x1024,256x1024 types=float,float", ""), V100)
        assert PageableH2dCopy().benchmark(matches(profile)[0].evidence) is None


class TestStaysQuiet:
    def test_for_pinned_memory(self) -> None:
        copied = f"copy=Memcpy_HtoD_(Pinned_->_Device)@{{at}}160-{{at}}400:{SIZE}"
        assert not matches(draw(steps(copied=copied), V100))

    def test_for_copies_from_the_gpu(self) -> None:
        assert not matches(draw(steps(copied=f"copy=DtoH@{{at}}160-{{at}}400:{SIZE}"), V100))

    def test_below_64_kib(self) -> None:
        assert matches(draw(steps(copied="copy=HtoD@{at}160-{at}400:65536"), V100))
        small = draw(steps(copied="copy=HtoD@{at}160-{at}400:65535"), V100)
        assert not matches(small)
        assert matches(small, min_bytes=1024)

    def test_for_what_is_copied_once(self) -> None:
        once = WORK_BEFORE + step(1) + step(2, copied="")
        assert not matches(draw(once, V100))

    def test_for_what_is_copied_outside_all_steps(self) -> None:
        text = steps().replace("ProfilerStep#1", "load.py(3): model").replace("ProfilerStep#2", "load.py(3): model")
        later = "\n        ProfilerStep#3 3000-3990\n        ProfilerStep#4 4000-4990"
        assert not matches(draw(text + later, V100))

    def test_for_a_copy_behind_kernels(self) -> None:
        text = WORK_BEFORE.replace("@1-5", "@1-2999") + step(1) + step(2)
        assert not matches(draw(text, V100))

    def test_on_rocm_which_does_not_say_where_a_copy_comes_from(self) -> None:
        assert "pinned" in reason_not_checked(PageableH2dCopy, draw(steps(), MI300))

    def test_without_steps(self) -> None:
        text = steps().replace("ProfilerStep#", "load.py(3): model")
        assert "steps" in reason_not_checked(PageableH2dCopy, draw(text, V100))

    def test_without_a_device(self) -> None:
        assert "device activity" in reason_not_checked(PageableH2dCopy, draw("ProfilerStep#1 0-100"))
