"""ddp-gradients-copied: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from tb_tidy_plugin.analysis.findings import findings_of
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, matches_of, saving_ns
from tb_tidy_plugin.rules.distributed.ddp_gradients_copied import DdpGradientsCopied

COPY = "torch.distributed.ddp.reducer::copy_bucket_to_grad"


def job(copy: str = COPY, end: int = 1000, gemm: int = 500) -> Profile:
    """A backward pass with two copies of 50 µs on the device, after a kernel that ends at `gemm`."""
    return draw(
        f"""
        ProfilerStep#1            0-{end}
          train.py(9): step       1-{end - 1}
            aten::mm              10-60    kernel=gemm@70-{gemm}
            {copy}                100-150
              aten::copy_         110-140  copy=DtoD@{gemm}-{gemm + 50}:4096
            {copy}                200-250
              aten::copy_         210-240  copy=DtoD@{gemm + 50}-{gemm + 100}:4096
        """,
        A100,
    )


class TestReports:
    def test_copies_by_the_time_of_the_device(self) -> None:
        profile = job()
        (evidence,) = findings_of(profile, DdpGradientsCopied(), matches_of(DdpGradientsCopied, profile))
        finding = evidence.finding
        assert finding.cost_ns == 100_000
        assert finding.message == (
            "`DistributedDataParallel` copies gradients out of its buckets for 100 µs of a step (10 %)"
        )
        assert finding.fix.startswith("Pass `gradient_as_bucket_view=True` to `DistributedDataParallel`")
        assert [place.function for place in finding.places] == ["step"]

    def test_the_time_of_the_host_where_the_device_waits_for_it(self) -> None:
        profile = job(gemm=75)
        (match,) = matches_of(DdpGradientsCopied, profile)
        copies, host = range(75, 175), {*range(100, 150), *range(200, 250)}
        assert match.evidence.time == len(host.union(copies)) * 1000


class TestSaves:
    def test_the_copies(self) -> None:
        assert saving_ns(DdpGradientsCopied, job()) == (0, 100_000, 100_000)


class TestStaysQuiet:
    def test_less_than_half_a_percent_of_the_step(self) -> None:
        assert matches_of(DdpGradientsCopied, job(end=30_000)) == ()

    def test_other_copies(self) -> None:
        assert matches_of(DdpGradientsCopied, job(copy="aten::clone")) == ()
