"""Which operators multiply matrices, and the sizes of what they multiply."""

from __future__ import annotations

from tb_tidy_plugin.profile.events.products import Product
from tb_tidy_plugin.rulekit.testing import draw, row_of


def test_every_operator_that_multiplies_matrices_names_its_sizes() -> None:
    profile = draw(
        """
        aten::mm       0-9    dims=64x128,128x32                types=float,float
        aten::bmm      10-19  dims=8x64x128,8x128x32            types=float,float
        aten::addmm    20-29  dims=32,64x128,128x32             types=float,float,float
        aten::baddbmm  30-39  dims=8x64x32,8x64x128,8x128x32    types=float,float,float
        aten::linear   40-49  dims=2x5x128,32x128,32            types=float,float,float
        """
    )
    assert [str(product) for product in profile.products("float")] == [
        "64×128 by 128×32",
        "8 × 64×128 by 128×32",
        "64×128 by 128×32",
        "8 × 64×128 by 128×32",
        "10×128 by 128×32",
    ]


def test_nested_operators_are_one_product() -> None:
    profile = draw(
        """
        aten::linear    0-90   dims=64x128,32x128,32   types=float,float,float
          aten::addmm   10-80  dims=32,64x128,128x32   types=float,float,float
        """
    )
    assert [product.row for product in profile.products("float")] == [row_of(profile, "aten::addmm")]


def test_only_the_asked_dtypes_are_products() -> None:
    profile = draw(
        """
        aten::mm  0-9    dims=64x128,128x32  types=half,half
        aten::mm  10-19  dims=64x128,128x32  types=float,float
        aten::mm  20-29  dims=64x128,128x32  types=float,half
        """
    )
    assert [product.dtype for product in profile.products("c10::Half", "c10::BFloat16")] == ["c10::Half"]


def test_what_has_no_sizes_is_no_product() -> None:
    profile = draw(
        """
        aten::mm  0-9
        aten::mm  10-19  dims=64x128,32x32  types=float,float
        aten::mm  20-29  dims=0x128,128x32  types=float,float
        aten::mm  30-39  dims=64,64         types=float,float
        """
    )
    assert profile.products("float") == []


def test_work_and_traffic_of_a_product() -> None:
    product = Product(row=0, batch=2, m=3, k=5, n=7, dtype="c10::Half")
    assert product.flops == 2 * 2 * 3 * 5 * 7
    assert product.bytes == 2 * 2 * (3 * 5 + 5 * 7 + 3 * 7)


def test_a_padded_product_has_whole_multiples() -> None:
    product = Product(row=0, batch=3, m=1, k=64, n=50257, dtype="c10::Half")
    assert product.padded(8) == Product(row=0, batch=3, m=8, k=64, n=50264, dtype="c10::Half")
