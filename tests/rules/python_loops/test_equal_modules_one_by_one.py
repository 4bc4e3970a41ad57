"""equal-modules-one-by-one: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, saving_ns
from tb_tidy_plugin.rules.python_loops.equal_modules_one_by_one import EqualModulesOneByOne


def job(
    heads: int = 4,
    results: str = "",
    names: str = "Head_0,Head_1,Head_2,Head_3",
    weights: str = "8x32,8x32,8x32,8x32",
    given: str = "4x32",
    operator: str = "aten::linear",
    between: str = "",
    join: str = "aten::cat",
) -> Profile:
    """An attention whose heads take 100 µs each, and whose results are joined."""
    lines = ["ProfilerStep#1 0-2000", "  nn.Module: Attention_0 1-1900", "    model.py(31): forward 2-1899"]
    for number, (name, weight) in enumerate(zip(names.split(","), weights.split(","), strict=True)):
        at = 10 + 200 * number
        lines += [
            f"      nn.Module: {name} {at}-{at + 100}",
            f"        model.py(12): forward {at + 1}-{at + 99}",
            f"          {operator} {at + 2}-{at + 90} dims={given},{weight} types=float,float seq={number + 1}",
        ]
        if between:
            lines.append(f"      {between} {at + 110}-{at + 120} dims=4x32 types=float")
    shapes = results or "+".join(["4x8"] * heads)
    lines.append(f"      {join} 1000-1050 dims={shapes}, types=TensorList,Scalar")
    return draw("\n".join(lines))


class TestReports:
    def test_heads_of_an_attention(self) -> None:
        (finding,) = findings(EqualModulesOneByOne, job())
        assert finding.action == "Compute the 4 `Head` modules together"
        assert finding.message == "4 `Head` modules are called one by one: 4 operators, 400 µs"
        assert "Each takes 4×32 and returns 4×8" in str(finding.details)
        (place,) = finding.places
        assert (place.file, place.line, place.function) == ("model.py", 31, "forward")

    def test_those_called_last_of_more(self) -> None:
        names, weights = ",".join(f"Head_{at}" for at in range(5)), ",".join(["8x32"] * 5)
        (finding,) = findings(EqualModulesOneByOne, job(names=names, weights=weights))
        assert "4 `Head` modules" in finding.message


class TestSaves:
    @pytest.mark.parametrize("join", ["aten::cat", "aten::stack"])
    def test_what_one_of_them_takes_is_left(self, join: str) -> None:
        least, expected, most = saving_ns(EqualModulesOneByOne, job(join=join))
        assert least <= expected <= most
        assert expected == pytest.approx(400_000 * 3 / 4, rel=0.01)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(3, names="Head_0,Head_1,Head_2", weights="8x32,8x32,8x32"), id="three modules"),
            pytest.param(job(weights="8x32,8x32,8x32,16x32"), id="another shape"),
            pytest.param(job(results="4x8+4x8+4x8+4x9"), id="results of other shapes"),
            pytest.param(job(given="4x8", weights="8x8,8x8,8x8,8x8"), id="results that may be the next inputs"),
            pytest.param(job(names="Head_0,Head_1,Tail_0,Head_2"), id="another class"),
            pytest.param(job(names="Head_0,Head_0,Head_0,Head_0"), id="one module again and again"),
            pytest.param(job(operator="aten::mul"), id="without products"),
            pytest.param(job(between="aten::relu"), id="operators between them"),
            pytest.param(job(join="aten::add"), id="results that nothing joins"),
            pytest.param(job(5, results="+".join(["4x8"] * 5)), id="more results than modules"),
        ],
    )
    def test_about(self, profile: Profile) -> None:
        assert findings(EqualModulesOneByOne, profile) == []
