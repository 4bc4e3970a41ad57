"""kernels-far-from-limit: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.findings import findings_of
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.rulekit import Profile, Rule
from tb_tidy_plugin.rulekit.testing import A100, MI300, Gpu, draw, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rulekit.testing.drawn import draw_into
from tb_tidy_plugin.rules.shapes.kernels_far_from_limit import KernelsFarFromLimit
from tb_tidy_plugin.rules.shapes.tensor_core_shape_misaligned import TensorCoreShapeMisaligned
from tb_tidy_plugin.trace.files import find_traces

PRODUCT_NS = 2 * 4096**3 / 312e12 * 1e9
"""What an A100 needs at least for a product of 4096×4096 by 4096×4096 in half precision: 441 µs."""

SQUARE = "dims=4096x4096,4096x4096 types=c10::Half,c10::Half"
ATTENTION = (
    "dims=1x8192x16x64,1x8192x16x64,1x8192x16x64 types=c10::Half,c10::Half,c10::Half "
    "scalars=,,,,,8192,8192,0.,False,False"
)


def job(
    took: int = 1100, rest: int = 1000, gpu: Gpu = A100, operator: str = f"aten::mm 10-60 {SQUARE}",
    kernel: str = "ampere_fp16_s16816gemm",
) -> Profile:  # fmt: skip
    """A step with one operator whose kernel takes `took` µs, and other work of `rest` µs."""
    end = 100 + took
    return draw(
        f"""
        ProfilerStep#1        0-{end + rest + 10}
          train.py(9): step   1-{end + rest + 9}
            {operator} kernel={kernel}@100-{end}
            aten::relu        70-90  kernel=relu@{end}-{end + rest}
        """,
        gpu,
    )


class TestReports:
    def test_a_product_far_below_the_peak_rate(self) -> None:
        profile = job()
        (evidence,) = findings_of(profile, KernelsFarFromLimit(), matches_of(KernelsFarFromLimit, profile))
        finding = evidence.finding
        assert finding.cost_ns == 1_100_000
        assert finding.message == (
            f"`aten::mm` takes 1.1 ms of a step (49.8 %) and reaches {PRODUCT_NS / 11_000:.3g} % of the device's peak "
            "rate"
        )
        assert "441 µs of a step" in finding.details[0].text  # type: ignore[union-attr]
        assert "4096×4096 and 4096×4096" in finding.details[0].text  # type: ignore[union-attr]
        assert [place.function for place in finding.places] == ["step"]
        assert "TUNABLEOP" not in finding.fix
        assert finding.confidence == "medium"

    def test_on_rocm_the_fix_has_its_own_variable(self) -> None:
        (match,) = matches_of(KernelsFarFromLimit, job(gpu=MI300))
        assert "PYTORCH_TUNABLEOP_ENABLED=1" in match.evidence.advice

    def test_bytes_that_take_longer_than_they_must(self) -> None:
        profile = job(operator="aten::exp 10-60 dims=8192x8192 types=float", kernel="vectorized_elementwise_kernel")
        (match,) = matches_of(KernelsFarFromLimit, profile)
        assert match.evidence.limit == "memory bandwidth"
        assert match.evidence.reached == pytest.approx(2 * 4 * 8192**2 / 2039e9 / 1.1e-3)
        assert "contiguous" in match.evidence.advice

    @pytest.mark.parametrize(
        ("operator", "advice"),
        [
            ("aten::mm 10-60 dims=16x16384,16384x16384 types=c10::Half,c10::Half", "larger batch"),
            (f"aten::_flash_attention_forward 10-60 {ATTENTION}", "sdpa_kernel"),
        ],
    )
    def test_advice_by_the_kind_of_work(self, operator: str, advice: str) -> None:
        (match,) = matches_of(KernelsFarFromLimit, job(took=3000, operator=operator))
        assert advice in match.evidence.advice


class TestSaves:
    def test_what_half_and_at_best_70_percent_of_the_limit_leave(self) -> None:
        low, expected, high = saving_ns(KernelsFarFromLimit, job())
        assert low == 0
        assert expected == pytest.approx(1_100_000 - PRODUCT_NS / 0.5, abs=2)
        assert high == pytest.approx(1_100_000 - PRODUCT_NS / 0.7, abs=2)


class TestStaysQuiet:
    def test_half_of_the_limit(self) -> None:
        assert matches_of(KernelsFarFromLimit, job(took=860)) == ()

    def test_less_than_a_tenth_of_the_step(self) -> None:
        assert matches_of(KernelsFarFromLimit, job(rest=10_000)) == ()

    def test_short_calls(self) -> None:
        short = job(took=19, rest=10, operator="aten::mm 10-60 dims=64x64,64x64 types=c10::Half,c10::Half")
        assert matches_of(KernelsFarFromLimit, short) == ()

    def test_copies_from_the_host(self) -> None:
        profile = draw(
            """
            ProfilerStep#1   0-2000
              aten::copy_    10-60  dims=1024x1024,1024x1024 types=float,float copy=HtoD@100-1900:4194304
            """,
            A100,
        )
        assert matches_of(KernelsFarFromLimit, profile) == ()

    def test_a_device_of_unknown_rates(self) -> None:
        assert reason_not_checked(KernelsFarFromLimit, job(gpu=Gpu("Toaster", 8, 0))) == (
            "The peak rates of this device are not known."
        )

    def test_sizes_whose_padding_is_the_fix(self, tmp_path: Path) -> None:
        odd = "dims=4096x4097,4097x4096 types=c10::Half,c10::Half kernel=ampere_fp16_gemm_align1"
        text = f"ProfilerStep#1 0-10000\n  train.py(9): step 1-9999\n    aten::mm 10-60 {odd}@100-9000"
        draw_into(tmp_path, text, A100)
        (file,) = find_traces(tmp_path)
        rules: list[Rule] = [KernelsFarFromLimit(), TensorCoreShapeMisaligned()]
        assert [each.rule for each in read_file(file, Job(rules=(rules[0],))).report.findings] == [
            "kernels-far-from-limit"
        ]
        assert [each.rule for each in read_file(file, Job(rules=tuple(rules))).report.findings] == [
            "tensor-core-shape-misaligned"
        ]
