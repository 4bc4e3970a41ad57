"""The roofline plot: its dots against counts by hand, and the limits of devices, known and given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.tables import figures_of
from tb_tidy_plugin.configuration.checks import job_of
from tb_tidy_plugin.configuration.files import read_configuration
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import A100, Gpu, draw
from tb_tidy_plugin.rulekit.testing.drawn import draw_into
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.words.errors import ConfigurationError

PRODUCT = """
aten::mm   0-100    dims=1024x2048,2048x512  types=float,float  kernel=ampere_sgemm_128x64_nn@20-220
aten::add  300-400  dims=4096x4096,4096x4096  types=float,float  kernel=vectorized_elementwise_kernel@320-520
"""
FLOPS, MOVED = 2 * 1024 * 2048 * 512, 4 * (1024 * 2048 + 2048 * 512 + 1024 * 512)
UNKNOWN = Gpu("NVIDIA Test 1", 8, 6)


def test_dots_are_operators_and_kernels_with_their_rates() -> None:
    found = figures_of(draw(PRODUCT, A100)).roofline
    assert (found.device, found.bytes_per_second, found.missing) == (A100.name, 2039e9, None)
    ceilings = [(each.name, each.flops_per_second) for each in found.ceilings]
    assert ceilings == [("float32", 19.5e12), ("float32, matrix units", 156e12)], "only dtypes that were recorded"
    product = next(dot for dot in found.dots if dot.kind == "operator" and dot.name == "aten::mm")
    assert product.flops_per_second == pytest.approx(FLOPS / 200e-6)
    assert product.bytes_per_second == pytest.approx(MOVED / 200e-6)
    assert product.roofline == pytest.approx(max(FLOPS / 19.5e12, MOVED / 2039e9) / 200e-6)
    assert (product.bound, product.total_ns, product.share) == ("compute", 200_000, 0.5)
    kernel = next(dot for dot in found.dots if dot.kind == "kernel" and dot.detail == "aten::mm")
    assert (kernel.name, kernel.flops_per_second) == ("ampere_sgemm_128x64_nn", product.flops_per_second)
    add = next(dot for dot in found.dots if dot.kind == "operator" and dot.name == "aten::add")
    assert add.bound == "memory"


def test_an_unknown_device_has_dots_and_no_ceilings_until_they_are_given(tmp_path: Path) -> None:
    draw_into(tmp_path, PRODUCT, UNKNOWN)
    (file,) = find_traces(tmp_path)
    settings = tmp_path / "tb-tidy.toml"
    settings.write_text("select = []\n")
    without = figures_of(read_file(file, job_of(read_configuration(settings))).profile).roofline
    assert (without.device, without.bytes_per_second, without.ceilings) == (UNKNOWN.name, None, [])
    assert {dot.bound for dot in without.dots} == {None}
    settings.write_text('select = []\n[devices."NVIDIA Test 1"]\ngigabytes-per-second = 500\nfloat32 = 10\n')
    given = figures_of(read_file(file, job_of(read_configuration(settings))).profile)
    assert given.roofline.bytes_per_second == 500e9
    assert [(each.name, each.flops_per_second) for each in given.roofline.ceilings] == [("float32", 10e12)]
    (row,) = (row for row in given.operators["shape"] if row.name == "aten::mm")
    assert row.roofline == pytest.approx(max(FLOPS / 10e12, MOVED / 500e9) / 200e-6)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("gigabytes-per-second = 0", "must be a number above 0"),
        ("gigabytes-per-second = inf", "must be a number above 0"),
        ("float32 = 3", "lacks `gigabytes-per-second`"),
        ("gigabytes-per-second = 3\nfloat31 = 3", "has no key `float31`"),
    ],
)
def test_rates_that_cannot_be(tmp_path: Path, table: str, said: str) -> None:
    path = tmp_path / "tb-tidy.toml"
    path.write_text(f'[devices."x"]\n{table}\n')
    with pytest.raises(ConfigurationError, match=said):
        job_of(read_configuration(path))


def test_what_is_missing_is_said() -> None:
    no_device: Profile = draw("aten::mm 0-100  dims=8x8,8x8  types=float,float")
    assert "no device activity" in str(figures_of(no_device).roofline.missing)
    no_shapes = draw("aten::mm 0-100 kernel=gemm@20-60", A100)
    assert "no input shapes" in str(figures_of(no_shapes).roofline.missing)
