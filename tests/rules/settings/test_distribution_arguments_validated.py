"""distribution-arguments-validated: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.settings.distribution_arguments_validated import DistributionArgumentsValidated


def job(samples: int = 3, check: str = "aten::gt", step: str = "ProfilerStep#1") -> Profile:
    """One distribution made, and values checked in `samples` calls; each check takes 50 µs, its operator 40."""
    lines = [
        f"{step} 0-2000",
        "  policy.py(9): act 1-1999",
        "    torch/distributions/normal.py(55): __init__ 10-90",
        "      torch/distributions/distribution.py(46): __init__ 20-70",
        *([f"        {check} 25-65 dims=64x6, types=float,Scalar"] if check else []),
    ]
    for number in range(samples):
        at = 100 + 100 * number
        lines += [
            f"    torch/distributions/normal.py(87): log_prob {at}-{at + 90}",
            f"      torch/distributions/distribution.py(280): _validate_sample {at + 10}-{at + 60}",
            *([f"        {check} {at + 15}-{at + 55} dims=64x6, types=float,Scalar"] if check else []),
            f"      aten::sub {at + 65}-{at + 85} dims=64x6,64x6 types=float,float",
        ]
    return draw("\n".join(lines))


class TestReports:
    def test_checks_of_parameters_and_values_at_the_users_function(self) -> None:
        (finding,) = findings(DistributionArgumentsValidated, job())
        assert finding.message == "Distributions check their arguments 4 times per step"
        assert [(place.file, place.function) for place in finding.places] == [("policy.py", "act")]
        assert finding.matches == 4


class TestSaves:
    def test_the_checks(self) -> None:
        assert saving_ns(DistributionArgumentsValidated, job(samples=5)) == (0, 300_000, 300_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(check=""), id="frames without checks"),
            pytest.param(job(samples=0), id="one check"),
            pytest.param(job(step="## part"), id="steps that are not marked"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(DistributionArgumentsValidated, profile) == ()
