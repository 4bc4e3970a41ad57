"""decoder-pieces-written-out: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, matches_of, saving_ns
from tb_tidy_plugin.rules.fusion.decoder_pieces_written_out import DecoderPiecesWrittenOut
from tb_tidy_plugin.trace.files import find_traces
from tests.support.recordings import shared

X, ROW, WIDE = "4x512x1024", "4x512x1", "4x512x2816"
HEADS, HALF = "4x16x512x64", "4x16x512x32"

RMSNORM = [
    f"aten::to dims={X} types=bfloat16",
    f"aten::pow dims={X}, types=float,Scalar",
    f"aten::mean dims={X} types=float",
    f"aten::add dims={ROW}, types=float,Scalar",
    f"aten::rsqrt dims={ROW} types=float",
    f"aten::mul dims={X},{ROW} types=float,float",
    f"aten::to dims={X} types=float",
    f"aten::mul dims=1024,{X} types=bfloat16,bfloat16",
]
ROTARY = [
    f"aten::mul dims={HEADS},4x1x512x64 types=bfloat16,bfloat16",
    f"aten::neg dims={HALF} types=bfloat16",
    f"aten::cat dims={HALF}+{HALF} types=TensorList",
    f"aten::mul dims={HEADS},4x1x512x64 types=bfloat16,bfloat16",
    f"aten::add dims={HEADS},{HEADS} types=bfloat16,bfloat16",
]
SWIGLU = [
    f"aten::silu dims={WIDE} types=bfloat16",
    f"aten::linear dims={X},2816x1024 types=bfloat16,bfloat16",
    f"aten::mul dims={WIDE},{WIDE} types=bfloat16,bfloat16",
]


def job(operators: Sequence[str], lasts: int = 100) -> Profile:
    """The operators in a row, each with a kernel of `lasts` µs, behind one that keeps the device busy until then."""
    end = 200 + lasts * len(operators)
    lines = [f"ProfilerStep#1 0-{end}", f"  model.py(9): forward 1-{end - 1}", "    aten::mm 2-9 kernel=gemm@9-100"]
    for at, operator in enumerate(operators):
        name, _, inputs = operator.partition(" ")
        begin = 100 + lasts * at
        lines.append(f"    {name} {10 + 3 * at}-{12 + 3 * at} {inputs} kernel=k@{begin}-{begin + lasts}")
    return draw("\n".join(lines), A100)


def pieces(profile: Profile) -> list[Match]:
    return list(matches_of(DecoderPiecesWrittenOut, profile))


class TestReports:
    @pytest.mark.parametrize(
        ("operators", "name", "ratio", "events"),
        # Bytes per element, in bfloat16. RMSNorm: 2+4, 4+4, 4, 4+4, 4+2, 2+2 for 2+2; rotary: four passes of the whole,
        # one of a half, and an addition of two for one in and one out; gate: 1+1 and 2+1 tensors for 2+1.
        [(RMSNORM, "RMSNorm", 9.0, 8), (ROTARY, "Rotary embedding", 5.1, 5), (SWIGLU, "Gated activation", 1.7, 2)],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_each_piece(self, operators: list[str], name: str, ratio: float, events: int) -> None:
        (match,) = pieces(job(operators))
        assert (match.subject, len(match.events)) == (name, events)
        assert float(str(match.evidence.ratio)) == pytest.approx(ratio, rel=0.03)

    def test_the_same_in_float32_without_casts_and_weight(self) -> None:
        (match,) = pieces(job(RMSNORM[1:6]))
        assert match.evidence.count == 5

    @pytest.mark.parametrize(
        "square", [f"aten::mul dims={X},{X} types=float,float", f"aten::square dims={X} types=float"]
    )
    def test_other_ways_to_square(self, square: str) -> None:
        assert pieces(job([RMSNORM[0], square, *RMSNORM[2:]]))

    def test_the_other_product_of_the_gate_first(self) -> None:
        (match,) = pieces(job([SWIGLU[1], SWIGLU[0], SWIGLU[2]]))
        assert match.evidence.count == 2

    def test_both_turned_one_after_the_other(self) -> None:
        first, second = pieces(job([*ROTARY, *ROTARY]))
        assert set(first.events).isdisjoint(second.events)


class TestSaves:
    def test_the_bytes_that_one_kernel_does_not_move(self) -> None:
        # 36 bytes go down to 4, of which the kernel takes a quarter longer; reductions per row are next to nothing.
        low, expected, high = saving_ns(DecoderPiecesWrittenOut, job(RMSNORM))
        assert low == 0
        assert expected == pytest.approx(800_000 * (1 - 1.25 / 9), rel=0.01)
        assert high == pytest.approx(800_000 * (1 - 1 / 9), rel=0.01)

    def test_all_launches_but_one_where_the_host_is_slower(self) -> None:
        (match,) = pieces(job(RMSNORM, lasts=1))
        assert float(str(match.evidence.expected).removesuffix(" %")) == 12.5


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "operators",
        [
            pytest.param([*RMSNORM[:2], *RMSNORM[3:]], id="no mean"),
            pytest.param([*RMSNORM[:5], f"aten::mul dims={ROW},{ROW} types=float,float"], id="a scale per row only"),
            pytest.param([ROTARY[1], ROTARY[2], f"aten::mul dims={X},{X} types=float,float"], id="a negative joined"),
            pytest.param([SWIGLU[0], f"aten::mul dims={WIDE},4x512x1 types=bfloat16,bfloat16"], id="a gate per row"),
            pytest.param([SWIGLU[0], SWIGLU[1], SWIGLU[1], SWIGLU[2]], id="a layer after the activation"),
            pytest.param([f"aten::rms_norm dims={X} types=bfloat16"], id="one operator"),
        ],
    )
    def test_for(self, operators: list[str]) -> None:
        assert pieces(job(operators)) == []

    def test_an_optimizer(self) -> None:
        profile = draw(
            "ProfilerStep#1 0-2000\n  Optimizer.step#Adafactor.step 1-1999\n"
            + "\n".join(
                f"    {name} {10 + 100 * at}-{90 + 100 * at} {inputs} kernel=k@{20 + 100 * at}-{100 + 100 * at}"
                for at, (name, _, inputs) in enumerate(operator.partition(" ") for operator in RMSNORM)
            ),
            A100,
        )
        assert pieces(profile) == []


class TestRecordings:
    def test_a_model_that_generates(self) -> None:
        """24 layers: two norms each and one at the end, queries and keys turned, one gate. An expert's first word."""
        (file,) = find_traces(shared("traces/h100_qwen_generate"))
        findings = read_file(file, Job(rules=(DecoderPiecesWrittenOut(),))).report.findings
        assert sorted(finding.matches for finding in findings) == [24, 48, 49]
