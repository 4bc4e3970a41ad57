"""recurrent-cell-in-loop: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, Gpu, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.python_loops.recurrent_cell_in_loop import RecurrentCellInLoop

LSTM = "dims=4x16,4x32+4x32,128x16,128x32,128,128 types=float,TensorList,float,float,float,float"
GRU = "dims=4x16,4x32,96x16,96x32,96,96 types=float,float,float,float,float,float"


def job(
    calls: int = 8, cell: str = "aten::lstm_cell", given: str = LSTM, between: str = "select", gpu: Gpu | None = None
) -> Profile:
    """A loop in which each call of the cell takes 50 µs."""
    lines = ["ProfilerStep#1 0-9000", "  tagger.py(12): forward 1-8999"]
    for number in range(calls):
        at = 10 + 100 * number
        kernel = f"kernel=lstm@{at + 20}-{at + 60}" if gpu else ""
        lines += [
            f"    aten::{between} {at}-{at + 5} dims=12x4x16,, types=float,Scalar,Scalar",
            f"    nn.Module: LSTMCell_0 {at + 9}-{at + 65}",
            f"      torch/nn/modules/rnn.py(1732): forward {at + 9}-{at + 65}",
            f"        {cell} {at + 10}-{at + 60} {given} {kernel}",
        ]
    return draw("\n".join(lines), gpu)


def by_letter(
    calls: int = 8,
    picked: str = "aten::slice",
    indices: str = "long",
    after: str = "aten::linear",
    sequence: str = "4x1x16",
    module: str = "aten::gru",
    state: str = "1x4x32",
) -> Profile:
    """A loop that embeds a letter, calls a module of 50 µs, and decodes what comes out."""
    lines = ["ProfilerStep#1 0-9000", "  speaker.py(12): forward 1-8999"]
    for number in range(calls):
        at = 10 + 100 * number
        lines += [
            f"    {picked} {at}-{at + 5} dims=4x12, types={indices},Scalar",
            f"    aten::embedding {at + 6}-{at + 9} dims=100x16,4x1 types=float,long",
            f"    {module} {at + 10}-{at + 60} dims={sequence},{state},96x16+96x32+96+96 types=float,float,TensorList",
            f"    {after} {at + 61}-{at + 70} dims=4x1x32,100x32 types=float,float",
        ]
    return draw("\n".join(lines))


class TestReports:
    @pytest.mark.parametrize(
        ("module", "sequence", "state", "expected_ns"),
        [
            ("aten::gru", "4x1x16", "1x4x32", 400_000 * 0.35),
            ("aten::gru", "1x4x16", "1x4x32", 400_000 * 0.35),
            ("aten::lstm", "4x1x16", "1x4x32+1x4x32", 400_000 * 0.7),
        ],
    )
    def test_a_module_that_gets_one_position_a_call(
        self, module: str, sequence: str, state: str, expected_ns: float
    ) -> None:
        profile = by_letter(module=module, sequence=sequence, state=state)
        (finding,) = findings(RecurrentCellInLoop, profile)
        name = module.removeprefix("aten::").upper()
        assert finding.message == f"A loop calls `{name}` 8 times, which takes 400 µs"
        assert finding.fix.startswith(
            f"Call `nn.{name}` once for the whole sequence, and the operators before and after it"
        )
        _, expected, _ = saving_ns(RecurrentCellInLoop, profile)
        assert expected == pytest.approx(expected_ns, rel=0.01)

    def test_a_loop_at_the_users_function(self) -> None:
        (finding,) = findings(RecurrentCellInLoop, job())
        assert finding.message == "A loop calls `LSTMCell` 8 times, which takes 400 µs"
        assert finding.fix.startswith("Call `nn.LSTM` once for the whole sequence")
        assert [(place.file, place.function) for place in finding.places] == [("tagger.py", "forward")]

    @pytest.mark.parametrize(
        ("cell", "given", "begin"),
        [("lstm", LSTM, "(hidden, torch.zeros_like(hidden))"), ("gru", GRU, "(hidden)")],
    )
    def test_benchmarks_of_the_recorded_sizes(self, cell: str, given: str, begin: str) -> None:
        (match,) = matches_of(RecurrentCellInLoop, job(cell=f"aten::{cell}_cell", given=given))
        pair = RecurrentCellInLoop().benchmark(match.evidence)
        assert pair is not None
        assert f"Cell(16, 32, device=device)\nfused = torch.nn.{cell.upper()}(16, 32" in pair.setup
        assert pair.setup.endswith(f"begin = {begin}")
        for statement in (pair.setup, pair.before, pair.after):
            ast.parse(statement)


class TestSaves:
    @pytest.mark.parametrize(
        ("cell", "given", "gpu", "left"),
        [
            ("aten::lstm_cell", LSTM, None, (0.4, 0.2)),
            ("aten::gru_cell", GRU, None, (0.9, 0.7)),
        ],
    )
    def test_what_the_module_takes_less(
        self, cell: str, given: str, gpu: Gpu | None, left: tuple[float, float]
    ) -> None:
        _, expected, high = saving_ns(RecurrentCellInLoop, job(cell=cell, given=given, gpu=gpu))
        assert (expected, high) == pytest.approx(tuple(400_000 * (1 - part) for part in left), rel=0.01)

    def test_of_a_gpu_by_its_own_factors(self) -> None:
        (match,) = matches_of(RecurrentCellInLoop, job(gpu=A100))
        assert match.evidence.on_gpu


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(calls=7), id="fewer calls"),
            pytest.param(job(between="embedding"), id="an output that may be the next input"),
            pytest.param(job(cell="aten::linear"), id="no cell"),
            pytest.param(by_letter(calls=7), id="fewer calls of a module"),
            pytest.param(by_letter(sequence="4x12x16"), id="whole sequences"),
            pytest.param(by_letter(sequence="12x1x16", state="1x1x32"), id="whole sequences of one sample"),
            pytest.param(by_letter(picked="aten::argmax"), id="an index that was chosen"),
            pytest.param(by_letter(after="aten::argmax"), id="an index that may be chosen of the output"),
            pytest.param(by_letter(indices="float"), id="no piece of indices"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(RecurrentCellInLoop, profile) == ()
