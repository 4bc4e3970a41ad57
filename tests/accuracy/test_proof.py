"""The proof: slow programs timed against fixed ones, and how far what was predicted is from that."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.rulekit import Benchmark
from tests.accuracy import turns
from tests.accuracy.corpus import programs
from tests.accuracy.page import (
    PROOF_HEADING,
    REAL_HEADINGS,
    Promise,
    Proof,
    proof_in,
    proof_section,
    real_section,
    with_section,
)
from tests.accuracy.processes import capture_in, record_in
from tests.accuracy.proof import benchmarked, pairs, promised, proof
from tests.accuracy.record import REAL, STEADY
from tests.accuracy.test_harness import STEP, Products, only, write
from tests.accuracy.turns import StepSeconds
from tests.accuracy.verdicts import Answer, answer_in, answer_of
from tests.support.measurements import measurement


class TestProof:
    def test_pairs_are_slow_and_fixed_of_programs_that_run(self, tmp_path: Path) -> None:
        names = ["a-b/slow.py", "a-b/fixed.py", "a-b/near_c.py", "c-d/slow.py", "e-f/slow.txt", "e-f/fixed.txt"]
        found = list(pairs(write(tmp_path, dict.fromkeys([*names, "clean/slow.py"], ""))))
        assert [(str(slow), str(fixed)) for slow, fixed in found] == [("a-b/slow.py", "a-b/fixed.py")]

    @pytest.mark.torch
    @pytest.mark.slow
    def test_slow_is_held_against_fixed_in_every_round(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(turns, "TURNS", 2)
        work = "torch.ones(4), sum(range(50_000)), time.sleep({})"
        waits = f"def build():\n    import time, torch\n    return lambda: ({work})\n"
        files = {"a-b/slow.py": waits.format(0.06), "a-b/fixed.py": waits.format(0.001)}
        ((slow, fixed),) = pairs(write(tmp_path, files))
        measured = proof(slow, fixed, rounds=2)
        assert len(measured.ratios) == 2
        assert measured.cpu_ratio < min(measured.ratios), "sleeping takes no CPU time"
        assert min(measured.saved) > 0.5
        assert measured.promise is None
        assert measured.errors == []

    def test_the_table_has_the_median_and_the_range(self) -> None:
        text = proof_section([measured([1.5, 3.0, 2.0], Promise(4_000_000, 1_000_000, 3_000_000)), measured([4.0])], 3)
        assert text.splitlines()[-2:] == [
            "| `a-b` | 4.00 | 4.00 to 4.00 | 2.00 | – | 1.00 | – | 75 % | – | – | – | – | – |",
            "| `a-b` | 2.00 | 1.50 to 3.00 | 1.00 | 1.50 | 1.00 | +50 % | 50 % | 25 % | 75 % | yes | – | – |",
        ]

    def test_a_benchmark_has_an_error_and_a_bound_of_its_own(self) -> None:
        """Of 2 ms a quarter remains by the rule, half with the benchmark, and so much is saved."""
        by_rule, by_benchmark = Promise(2_000_000, 1_500_000, 2_000_000), Promise(2_000_000, 1_000_000, 900_000)
        both = replace(measured([2.0], by_rule), benchmarked=[by_benchmark])
        text = proof_section([both, measured([2.0], by_rule)], 1)
        assert text.splitlines()[-2].endswith("| -50 % | 50 % | 75 % | 100 % | yes | +0 % | no |")
        assert "Of 2 predictions the median error is 50 %" in text
        assert "With the benchmarks: Of 2 predictions the median error is 25 %" in text

    @pytest.mark.torch
    @pytest.mark.slow
    def test_a_benchmark_takes_the_place_of_the_factor_of_the_rule(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The measurement is made up, since a busy machine may measure nothing clear; `make proof` measures."""
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        asked = []

        def measure(rule: str, pair: Benchmark) -> Measurement:
            asked.append(rule)
            return measurement(rule, pair, ratio=(0.125, 0.12, 0.13))

        (slow,) = (program for program in programs() if program.name == "cat-in-loop/slow.py")
        (tmp_path / "trace").mkdir()
        record_in(tmp_path / "trace", slow)
        expected = promised(answer_in(tmp_path / "trace", slow), slow.rule)
        found = benchmarked(tmp_path / "trace", slow, measure)
        assert asked == [slow.rule]
        assert expected is not None
        assert found is not None
        assert found.expected_ns != expected.expected_ns
        assert found.step_ns == expected.step_ns
        assert len(list((tmp_path / "trace").glob("*.tidy-bench.json"))) == 1

    def test_the_error_is_that_of_each_round_by_its_own_promise(self) -> None:
        """2 ms of which 25 % remain are 0.5 ms, 4 ms of which half remains 2 ms; the fixed step takes 1 ms."""
        times = measured([2.0, 4.0]).rounds
        both = Proof("a-b", times, [Promise(1_000, 750, 1_000), Promise(1_000, 500, 1_000)])
        assert both.errors == [-0.5, 1.0]
        assert both.error == 0.25
        assert Proof("a-b", times, [None, Promise(1_000, 500, 1_000)]).errors == [1.0]

    def test_the_page_sums_the_errors_up(self) -> None:
        proofs = [measured([2.0], Promise(1_000, saved, 1_000)) for saved in (500, 450, 200)]  # 0, 10, 60 % too long
        assert "Of 3 predictions the median error is 10 % (aim: ≤ 8 %), 2 are within 30 %" in proof_section(proofs, 1)
        assert "worst is 60 % (`a-b`)" in proof_section(proofs, 1)
        assert "Nothing was predicted." in proof_section([measured([2.0])], 1)

    def test_real_conditions_have_a_section_of_their_own(self) -> None:
        """Each is measured again by itself and leaves the others as they are."""
        steady = proof_section([measured([2.0], Promise(1_000, 500, 1_000))], 1)
        text = with_section("# Accuracy\n\nCounts.\n", steady)
        for name, saved in (("library", 450), ("cores", 200), ("library", 550)):
            proofs = [measured([2.0], Promise(1_000, saved, 1_000))]
            text = with_section(text, real_section(name, proofs, 1, " (busy)"))
        headings = [line for line in text.splitlines() if line.startswith(("# ", "## "))]
        assert headings == ["# Accuracy", PROOF_HEADING, *REAL_HEADINGS.values()]
        errors = re.findall(r"median error is (\d+) %", text)
        assert errors == ["0", "0", "10", "60"], "the steady one with and without benchmarks, the later library, cores"
        assert with_section(text, steady) == text
        assert proof_in(text).count("## ") == 3

    def test_a_saving_is_of_the_step_and_not_of_its_mark_on_the_host(self, tmp_path: Path) -> None:
        """Three steps that the host marks every 1 ms; the device is done with one every 4 ms."""
        lines = [
            f"ProfilerStep#{at}  {1000 * at}-{1000 * at + 990}\n"
            f"  aten::mm  {1000 * at + 10}-{1000 * at + 20}  dims=4x4,4x4  types=float,float"
            f"  kernel=gemm@{4000 * at + 1020}-{4000 * at + 5000}\n"
            for at in range(3)
        ]
        program = only(tmp_path, "# device: A100\n" + "".join(lines), "products/slow.txt")
        assert answer_of(program, [Products()]).step_ns == 4_000_000

    @pytest.mark.parametrize(
        ("ratios", "most", "verdict"),  # 1.25, 1.4 and 1.6 times faster: 20, 29 and 38 % are saved
        [
            ([1.25, 1.4, 1.6], 0.3, "yes"),
            ([1.25, 1.4, 1.6], 0.25, "unsteady"),
            ([1.25, 1.4, 1.6], 0.15, "no"),
            ([0.9, 0.95, 1.1], 0.5, "unsteady"),
            ([0.8, 0.9, 0.95], 0.5, "no"),
        ],
    )
    def test_the_bound_holds_or_not(self, ratios: list[float], most: float, verdict: str) -> None:
        """Of the step that was recorded, whatever the machine made of the one that was timed."""
        for step_ns in (1_000_000, 9_000_000):
            promise = Promise(step_ns, step_ns // 20, round(step_ns * most))
            assert measured(ratios, promise).verdict == verdict

    def test_the_savings_of_all_findings_of_a_rule_are_promised_together(self, tmp_path: Path) -> None:
        called = "  model.py({0}): f{0}  {0}00-{0}90\n    aten::mm  {0}00-{0}80  dims=4x4,4x4  types=float,float\n"
        program = only(tmp_path, STEP + called.format(1) + called.format(3), "products/slow.txt")
        answer = answer_of(program, [Products()])
        assert len(answer.findings["products"]) == 2
        # At most as long again: half after each, where its memory may be given back, and half in what stays.
        assert promised(answer, "products") == Promise(step_ns=1_000_000, expected_ns=160_000, most_ns=320_000)

    def test_nothing_is_promised_where_nothing_is_found(self) -> None:
        assert promised(Answer(step_ns=1_000), "products") is None


def test_threads_are_shared_among_ranks() -> None:
    cores = os.cpu_count() or 1
    assert [REAL["cores"].threads(ranks) for ranks in (1, cores, 2 * cores)] == [cores, 1, 1]
    assert STEADY.threads(1) == REAL["library"].threads(1) == 1


@pytest.mark.torch
def test_a_program_has_the_threads_of_its_conditions(tmp_path: Path) -> None:
    text = "import torch\ndef build():\n    print('threads', torch.get_num_threads(), flush=True)\n    return int"
    program = only(tmp_path, text)
    capture_in(tmp_path, program, conditions=REAL["cores"])
    assert f"threads {os.cpu_count()}" in (tmp_path / "output-None.txt").read_text()


def measured(ratios: Sequence[float], promise: Promise | None = None) -> Proof:
    """Rounds of these ratios: the fixed program takes 1 ms, all of it on the CPU, and the slow one half of its own."""
    rounds = [(StepSeconds(ratio * 1e-3, ratio * 0.5e-3), StepSeconds(1e-3, 1e-3)) for ratio in ratios]
    return Proof("a-b", rounds, [promise] * len(rounds))
