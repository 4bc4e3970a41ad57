"""Pointwise operators in a row: what a chain says about itself."""

from __future__ import annotations

from tb_tidy_plugin.profile.work.pointwise import Chain, pointwise_chains
from tb_tidy_plugin.rulekit.testing.drawn import draw


def chain(*calls: str) -> Chain:
    """The only chain of calls `name dims dtypes`, one every 10 µs."""
    lines = []
    for at, call in enumerate(calls):
        name, dims, types = call.split()
        lines.append(f"aten::{name} {10 * at}-{10 * at + 5} dims={dims} types={types}")
    (found,) = pointwise_chains(draw("\n".join(lines)), 2)
    return found


class TestBytes:
    def test_unary_operators_move_each_tensor_twice(self) -> None:
        found = chain("exp 100 float", "log 100 float", "neg 100 float")
        assert found.moved_bytes == 3 * (400 + 400)
        assert (found.least_bytes, found.most_bytes) == (800, 800)

    def test_a_second_input_may_come_from_outside(self) -> None:
        found = chain("exp 100 float", "mul 100,100 float,float")
        assert found.moved_bytes == 800 + 1200
        assert (found.least_bytes, found.most_bytes) == (800, 1200)

    def test_what_is_broadcast_is_read_once(self) -> None:
        found = chain("exp 4x100 half", "add 4x100,100,- half,half,Scalar")
        assert found.moved_bytes == 1600 + (800 + 200 + 800)
        assert found.shape == (4, 100)

    def test_a_comparison_writes_a_byte_per_element(self) -> None:
        assert chain("gt 100,- double,Scalar", "where 100,100,100 bool,double,double").moved_bytes == 900 + 2500


class TestShape:
    def test_a_smaller_result_after_a_larger_one_is_a_restart(self) -> None:
        found = chain("exp 4x100 float", "neg 100 float", "mul 4x100,100 float,float", "log 4x100 float")
        assert found.restarts == 1

    def test_the_period_is_the_shortest_sequence_that_repeats(self) -> None:
        turns = ["mul 8 float", "add 8,8 float,float"]
        assert chain(*turns, *turns, *turns).period == 2
        assert chain(*turns, *turns, turns[0]).period == 2
        assert chain(*turns, "exp 8 float").period == 3
        assert chain("exp 8 float", "exp 8 float").period == 1
