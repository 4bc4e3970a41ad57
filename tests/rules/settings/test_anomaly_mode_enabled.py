"""anomaly-mode-enabled: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tb_tidy_plugin.rulekit import Category, Profile
from tb_tidy_plugin.rulekit.testing import A100, MI300, Gpu, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.settings.anomaly_mode_enabled import AnomalyModeEnabled

STEP_US = 1_000
FORMATS = "torch/fx/traceback.py(497): format_stack"
CHECK = ("aten::isnan", "aten::_is_any_true", "aten::item")
OLD_CHECK = ("aten::isnan", "aten::any", "aten::item")


def forward(at: int, frame: str = FORMATS, number: bool = True) -> list[str]:
    """Two operators of 90 µs; in each a frame of 50 µs."""
    starts, known = (at + 100, at + 200), " seq={0}" if number else ""
    return [
        line
        for start in starts
        for line in (
            f"    aten::mul {start}-{start + 90}{known.format(start)}",
            f"      {frame} {start + 10}-{start + 60}",
        )
    ]


def backward(
    at: int, check: tuple[str, ...], hook: tuple[str, ...] = (), nodes: int = 2, checked: int = 2
) -> list[str]:
    """Nodes of 80 µs with operators of 5 µs: those of a hook before the node's own work, those of a check after it."""
    lines = []
    for number in range(nodes):
        start = at + 400 + 100 * number
        lines.append(f"    autograd::engine::evaluate_function: MulBackward0 {start}-{start + 80}")
        for position, name in enumerate(hook):
            lines.append(f"      {name} {start + 1 + 6 * position}-{start + 6 + 6 * position}")
        lines.append(f"      MulBackward0 {start + 20}-{start + 40}")
        for position, name in enumerate(check if number < checked else ()):
            lines.append(f"      {name} {start + 50 + 10 * position}-{start + 55 + 10 * position}")
    return lines


def profile(check: tuple[str, ...] = CHECK, stacks: bool = True, **changes: object) -> Profile:
    """Two steps, with stacks formatted in the forward pass and results checked in the backward pass."""
    lines = []
    for step in range(2):
        at = step * STEP_US
        lines.append(f"ProfilerStep#{step} {at}-{at + 990}")
        lines.append(f"  train.py(7): step {at + 1}-{at + 989}" if stacks else f"  ## step {at + 1}-{at + 989}")
        lines += forward(at) if stacks else []
        lines += backward(at, check, **changes)  # type: ignore[arg-type]
    return draw("\n".join(lines))


def launches(kernels: int = 10, kernel_us: int = 60, gpu: Gpu = A100, steps: int = 2) -> Profile:
    """Steps with a kernel every 90 µs, each launched 5 µs before it starts."""
    lines = []
    for step in range(steps):
        at = step * STEP_US
        lines.append(f"ProfilerStep#{step} {at}-{at + 990}")
        for number in range(kernels):
            start = at + 10 + 90 * number
            lines.append(f"  aten::mm {start}-{start + 80} kernel=gemm@{start + 5}-{start + 5 + kernel_us}")
    return draw("\n".join(lines), gpu)


def blocking(profile: Profile, free: int = 0) -> Profile:
    """The same where all launches but the first `free` return 1 µs after their kernels."""
    table = profile.table
    kernels = np.flatnonzero(table.category == Category.KERNEL)[free:]
    end_ns = table.end_ns.copy()
    end_ns[profile.launch[kernels]] = table.end_ns[kernels] + 1_000
    return Profile(replace(table, end_ns=end_ns))


class TestReports:
    def test_stacks_and_checks(self) -> None:
        (finding,) = findings(AnomalyModeEnabled, profile())
        assert finding.message == (
            "Anomaly detection is on: 4 stacks formatted and 4 checks for NaN in the profile, 130 µs per step"
        )
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "step")]
        assert (finding.matches, finding.matches_per_step, finding.severity) == (2, 1.0, "high")

    @pytest.mark.parametrize("check", [CHECK, OLD_CHECK], ids=["since 2.0", "before"])
    def test_checks_alone_without_stacks(self, check: tuple[str, ...]) -> None:
        (finding,) = findings(AnomalyModeEnabled, profile(check, stacks=False))
        assert finding.message.startswith("Anomaly detection is on: 4 checks for NaN in the profile")
        assert finding.places == []

    def test_stacks_alone_without_checks(self) -> None:
        (finding,) = findings(AnomalyModeEnabled, profile(check=()))
        assert finding.message.startswith("Anomaly detection is on: 4 stacks formatted in the profile")

    @pytest.mark.parametrize("gpu", [A100, MI300], ids=["cuda", "rocm"])
    def test_launches_that_return_when_their_kernels_are_done(self, gpu: Gpu) -> None:
        (finding,) = findings(AnomalyModeEnabled, blocking(launches(gpu=gpu)))
        assert finding.message.startswith("Blocking of launches is on: 20 launches wait for their kernels")
        assert finding.fix.startswith("Unset `CUDA_LAUNCH_BLOCKING` (on AMD `HIP_LAUNCH_BLOCKING`)")


class TestSaves:
    def test_formatting_and_checks(self) -> None:
        # Two stacks of 50 µs and two checks of three operators of 5 µs in each step.
        assert saving_ns(AnomalyModeEnabled, profile()) == (0, 130_000, 130_000)

    def test_what_the_device_idles_where_the_host_waits_for_longer(self) -> None:
        # Nine gaps of 30 µs in each step, and 105 µs at the end of the first, 15 µs at the beginning of the second.
        saved_ns = (2 * 9 * 30_000 + 105_000 + 15_000) // 2
        assert saving_ns(AnomalyModeEnabled, blocking(launches())) == (0, saved_ns, saved_ns)

    def test_what_the_host_waits_where_the_device_idles_for_longer(self) -> None:
        # Five kernels of 60 µs in each step, which is otherwise idle.
        assert saving_ns(AnomalyModeEnabled, blocking(launches(kernels=5, steps=4))) == (0, 300_000, 300_000)


class TestStaysQuiet:
    def test_for_stacks_that_the_users_code_formats(self) -> None:
        text = "\n".join(["ProfilerStep#0 0-990", "  train.py(7): log 1-989", f"    {FORMATS} 10-60"])
        assert not matches_of(AnomalyModeEnabled, draw(text))

    def test_for_stacks_in_operators_without_a_node(self) -> None:
        text = "\n".join(["ProfilerStep#0 0-990", *forward(0, number=False)])
        assert not matches_of(
            AnomalyModeEnabled, draw(text.replace("    aten", "  aten").replace("      torch", "    torch"))
        )

    def test_for_stacks_that_the_compiler_formats(self) -> None:
        text = "\n".join(["ProfilerStep#0 0-990", "  dynamo 50-600", *forward(0)])
        assert not matches_of(AnomalyModeEnabled, draw(text))
        assert matches_of(AnomalyModeEnabled, draw(text.replace("dynamo", "## mine")))

    def test_for_a_hook_that_checks_before_the_nodes_own_work(self) -> None:
        assert not matches_of(AnomalyModeEnabled, profile(check=(), stacks=False, hook=OLD_CHECK))

    def test_for_checks_that_users_may_have_written_at_some_nodes(self) -> None:
        assert not matches_of(AnomalyModeEnabled, profile(OLD_CHECK, stacks=False, nodes=4, checked=2))
        assert matches_of(AnomalyModeEnabled, profile(OLD_CHECK, stacks=False, nodes=4, checked=3))

    @pytest.mark.parametrize("check", [CHECK[:2], CHECK[:1], ("aten::isnan", "aten::mul", "aten::item")])
    def test_for_other_operators_after_a_node(self, check: tuple[str, ...]) -> None:
        assert not matches_of(AnomalyModeEnabled, profile(check, stacks=False))

    def test_for_launches_that_do_not_block(self) -> None:
        assert not matches_of(AnomalyModeEnabled, launches())
        assert not matches_of(AnomalyModeEnabled, blocking(launches(), free=2))
        assert matches_of(AnomalyModeEnabled, blocking(launches(), free=1))

    def test_for_fewer_than_twenty_kernels_that_are_long_enough_to_tell(self) -> None:
        assert not matches_of(AnomalyModeEnabled, blocking(launches(kernels=9)))
        assert not matches_of(AnomalyModeEnabled, blocking(launches(kernel_us=49)))

    def test_without_a_backward_pass(self) -> None:
        assert not matches_of(AnomalyModeEnabled, draw("ProfilerStep#0 0-990\n  aten::isnan 1-5"))
