"""tensor-shrunk-in-loop: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, Gpu, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.python_loops.tensor_shrunk_in_loop import TensorShrunkInLoop

SIZES = (20, 17, 12, 9, 6, 4, 2)


def removal(
    sizes: tuple[int, ...] = SIZES,
    *,
    mask: str = "aten::index",
    inner: str = "  aten::nonzero",
    between: str = "",
    work: int = 4,
    kernel: str = "",
    function: str = "boxes.py(3): keep_best",
    gpu: Gpu | None = None,
) -> Profile:
    """A loop that takes 100 µs for each mask, from 100 µs on."""
    lines = ["ProfilerStep#1 0-9000", f"  {function} 1-8000"]
    for number, size in enumerate(sizes):
        at = 100 + 100 * number
        lines += [
            f"    aten::select {at}-{at + 2} dims={size},, types=float,Scalar,Scalar",
            f"    aten::sub {at + 10}-{at + 10 + work} dims={size},{size} types=float,float",
            *([f"    {between} {at + 80}-{at + 81} dims={size} types=float"] if between else []),
        ]
        if inner:
            lines += [f"    {mask} {at + 90}-{at + 99}", f"    {inner} {at + 91}-{at + 95} dims={size} types=bool"]
        else:
            lines.append(f"    {mask} {at + 90}-{at + 99} dims={size},{size} types=float,bool")
    lines.append(f"    aten::sub 7000-7010 {kernel}")
    return draw("\n".join(lines), gpu)


class TestReports:
    def test_boxes_that_are_removed(self) -> None:
        (finding,) = findings(TensorShrunkInLoop, removal())
        assert finding.message == "A Python loop shrinks a tensor by a mask 7 times: 21 operators, 699 µs"
        assert "20 at first, 2 at last" in str(finding.details)
        assert [(place.file, place.function) for place in finding.places] == [("boxes.py", "keep_best")]

    @pytest.mark.parametrize(("mask", "inner"), [("aten::masked_select", ""), ("aten::where", "  aten::nonzero")])
    def test_other_operators_that_select(self, mask: str, inner: str) -> None:
        assert matches_of(TensorShrunkInLoop, removal(mask=mask, inner=inner))

    def test_several_masks_of_a_pass(self) -> None:
        (match,) = matches_of(TensorShrunkInLoop, removal(tuple(size for size in SIZES for _ in range(2))))
        assert (match.evidence.passes, match.evidence.operators) == (7, 42)

    def test_a_loop_for_each_picture(self) -> None:
        assert [match.evidence.passes for match in matches_of(TensorShrunkInLoop, removal(SIZES + SIZES))] == [7, 7]


class TestSaves:
    def test_most_of_the_loop_with_the_python_in_between(self) -> None:
        assert saving_ns(TensorShrunkInLoop, removal()) == pytest.approx((0, 699_000 * 0.92, 699_000 * 0.96))

    def test_on_a_device_only_what_the_calls_take(self) -> None:
        (match,) = matches_of(TensorShrunkInLoop, removal(gpu=A100, kernel="kernel=sub@7020-7040"))
        assert match.lost is None


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "change",
        [
            {"sizes": SIZES[:5]},
            {"sizes": (20,) * 12},
            {"sizes": (2, 4, 6, 9, 12, 17, 20)},
            {"mask": "aten::index", "inner": ""},
            {"between": "aten::mm"},
            {"between": "aten::rand"},
            {"work": 75},
            {"function": "torchvision/ops/boxes.py(3): keep_best"},
        ],
    )
    def test_at(self, change: dict[str, object]) -> None:
        assert not matches_of(TensorShrunkInLoop, removal(**change))  # type: ignore[arg-type]
