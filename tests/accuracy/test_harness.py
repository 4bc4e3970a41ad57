"""The harness: which programs there are, how they run, and that rights and wrongs are counted as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.rulekit import Match, Profile, Rule
from tb_tidy_plugin.rulekit.testing import draw
from tb_tidy_plugin.rulekit.testing.drawn import draw_into
from tb_tidy_plugin.rules import catalogue
from tests.accuracy.corpus import CorpusError, Program, few, programs
from tests.accuracy.page import page, proof_in
from tests.accuracy.processes import ProgramError, record_in
from tests.accuracy.record import ACTIVE, ACTIVE_TOGETHER
from tests.accuracy.verdicts import Answer, Count, Verdict, both, count, judged, merged, total, verdict_on
from tests.support.made_up_rule import SlowMultiplication
from tests.support.recordings import ROOT

STEP = "ProfilerStep#1  0-1000\n"
PRODUCT = "  aten::mm  100-300  dims=4x4,4x4  types=float,float\n"
OTHER = "  aten::add  400-500  dims=4x4,4x4  types=float,float\n"
SUM = "  aten::sum  400-500  dims=4x4  types=float\n"


TRAINING = """
import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step():
        optimizer.zero_grad()
        model(torch.ones(8, 8)).sum().backward()
        optimizer.step()

    return step
"""


class Named(SlowMultiplication):
    """A rule that is called what a test calls it, and finds what is called what it looks for."""

    __module__ = SlowMultiplication.__module__  # and its page
    called, looks_for = "", "aten::mm"

    @classmethod
    def name(cls) -> str:
        return cls.called

    def detect(self, profile: Profile) -> Iterator[Match]:
        for row in profile.named(self.looks_for).tolist():
            yield Match(row, (row,), self.evidence_of(profile, row))


class Sums(Named):
    __module__ = SlowMultiplication.__module__
    called, looks_for = "sums", "aten::sum"


class Products(Named):
    __module__ = SlowMultiplication.__module__
    called = "products"


class Broken(Named):
    __module__ = SlowMultiplication.__module__
    called = "broken"

    def detect(self, profile: Profile) -> Iterator[Match]:
        raise ValueError("no idea")


class NeedsDevice(Named):
    __module__ = SlowMultiplication.__module__
    called = "device-only"
    needs = frozenset({"device"})


def write(folder: Path, files: Mapping[str, str]) -> list[Program]:
    """The corpus of these files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return programs(folder)


def only(folder: Path, text: str, name: str = "sums/slow.py") -> Program:
    """A corpus of one program."""
    (program,) = write(folder, {name: text})
    return program


def test_each_rule_and_each_kind_has_programs_in_every_run_of_the_tests() -> None:
    everything = [each for each in programs() if not each.timed]
    chosen = few(everything)
    for kind in ("slow", "fixed", "near"):
        assert {each.rule for each in chosen if each.kind == kind} == {
            each.rule for each in everything if each.kind == kind
        }
    clean = [sum(each.kind == "clean" for each in some) for some in (chosen, everything)]
    assert clean[1] / 3 <= clean[0] < clean[1] / 3 + 1
    assert len(chosen) < len(everything)


class TestCorpus:
    def test_a_program_is_what_its_folder_and_file_say(self, tmp_path: Path) -> None:
        found = write(tmp_path, dict.fromkeys(["sums/slow.py", "sums/fixed.txt", "sums/near_one.py", "clean/a.py"], ""))
        assert [(str(each), each.kind, each.rule, each.is_drawn) for each in found] == [
            ("clean/a.py", "clean", "", False),
            ("sums/fixed.txt", "fixed", "sums", True),
            ("sums/near_one.py", "near", "sums", False),
            ("sums/slow.py", "slow", "sums", False),
        ]

    def test_it_is_read_without_running_it(self, tmp_path: Path) -> None:
        program = only(tmp_path, 'ALSO = {\n    "products": "has "\n    "one"\n}\nRANKS = 2\nraise ValueError\n')
        assert (program.also, program.ranks) == ({"products": "has one"}, 2)

    def test_a_drawn_one_says_the_same_in_comments(self, tmp_path: Path) -> None:
        program = only(tmp_path, f"# device: A100\n# also: products: has one: really\n{STEP}", "sums/slow.txt")
        assert (program.also, program.ranks) == ({"products": "has one: really"}, 1)

    @pytest.mark.parametrize("name", ["sums/slower.py", "sums/near.py", "sums/Near_it.py"])
    def test_other_files_are_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(CorpusError, match="neither slow, fixed nor near"):
            only(tmp_path, "", name)

    def test_a_false_header_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(CorpusError, match="dict of reasons"):
            only(tmp_path, 'ALSO = ["products"]')

    def test_ours_is_about_rules_that_exist_and_gives_reasons(self) -> None:
        names = {rule.name() for rule in catalogue()}
        for program in programs():
            assert {program.rule} - {""} <= names, program
            assert set(program.also) <= names - {program.rule}, program
            assert all(program.also.values()), f"{program}: a reason is missing"

    def test_ours_has_a_fixed_program_and_a_near_miss_beside_each_slow_one(self) -> None:
        kinds: dict[str, set[str]] = {}
        for program in programs():
            kinds.setdefault(program.rule, set()).add(program.kind)
        lacking = {rule: found for rule, found in kinds.items() if rule and found != {"slow", "fixed", "near"}}
        assert not lacking


class TestRuns:
    SMALL = "def build():\n    import torch\n    x = torch.ones(4, 4)\n    return lambda: x @ x\n"

    @pytest.mark.torch
    def test_a_program_is_recorded_for_a_few_steps_with_shapes_and_stacks(self, tmp_path: Path) -> None:
        record_in(tmp_path, only(tmp_path, self.SMALL))
        (profile,) = profiles_in(tmp_path)
        assert profile.steps.count == ACTIVE
        assert {"shapes", "stacks", "steps"} <= set(profile.recorded)

    @pytest.mark.torch
    def test_the_recording_is_that_of_a_process_of_its_own(self, tmp_path: Path) -> None:
        program = only(tmp_path, TRAINING)
        command = [sys.executable, "-m", "tests.accuracy.record", str(program.path), "--into", str(tmp_path / "own")]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        (tmp_path / "forked").mkdir()
        record_in(tmp_path / "forked", program)
        own, forked = (operators_in(tmp_path / folder) for folder in ("own", "forked"))
        assert own["aten::addmm"] == 2 * ACTIVE
        assert forked == own

    @pytest.mark.torch
    def test_each_rank_writes_its_trace(self, tmp_path: Path) -> None:
        text = """RANKS = 2\ndef build():
            import torch
            x = torch.ones(4)
            return lambda: torch.distributed.all_reduce(x)"""
        record_in(tmp_path, only(tmp_path, text))
        profiles = profiles_in(tmp_path)
        assert sorted(profile.rank or 0 for profile in profiles) == [0, 1]
        assert [profile.steps.count for profile in profiles] == [ACTIVE_TOGETHER, ACTIVE_TOGETHER]

    @pytest.mark.torch
    def test_no_program_sees_what_another_left(self, tmp_path: Path) -> None:
        text = "import torch\nassert not hasattr(torch, 'left')\ntorch.left = 1\ndef build():\n    return lambda: 1"
        for _ in range(2):
            record_in(tmp_path, only(tmp_path, text))

    @pytest.mark.torch
    def test_what_breaks_says_so(self, tmp_path: Path) -> None:
        with pytest.raises(ProgramError, match=r"(?s)^sums/slow.py ended with exit status 1\n.*ValueError: no build"):
            record_in(tmp_path, only(tmp_path, "def build():\n    raise ValueError('no build')"))

    @pytest.mark.torch
    def test_a_rank_that_breaks_does_not_leave_the_other_waiting(self, tmp_path: Path) -> None:
        text = """RANKS = 2\ndef build():
            import torch
            assert torch.distributed.get_rank() == 0, "rank 1 is gone"
            torch.distributed.barrier()"""
        with pytest.raises(ProgramError, match=r"(?s)sums/slow.py ended with exit status 1.*rank 1 is gone"):
            record_in(tmp_path, only(tmp_path, text))

    @pytest.mark.torch
    def test_what_does_not_end_is_ended(self, tmp_path: Path) -> None:
        text = "def build():\n    print('here we are', flush=True)\n    while True:\n        pass"
        with pytest.raises(ProgramError, match=r"sums/slow.py did not end within 2 s\nhere we are"):
            record_in(tmp_path, only(tmp_path, text), limit_s=2)


def profiles_in(folder: Path) -> list[ProfileReport]:
    return analyze_path(folder, Job([])).runs[0].profiles


def operators_in(folder: Path) -> Counter[str]:
    """How often each operator ran."""
    (path,) = folder.glob("*.json")
    return Counter(
        event["name"] for event in json.loads(path.read_text())["traceEvents"] if event.get("cat") == "cpu_op"
    )


class TestVerdicts:
    """Three rules over seven drawn programs; what is right and wrong of them is written beside them."""

    RULES: Sequence[Rule] = (Sums(), Products(), Broken(), NeedsDevice())
    CORPUS: ClassVar = {
        "sums/slow.txt": STEP + SUM,  # right
        "sums/fixed.txt": "# also: products: it has one\n" + STEP + PRODUCT + SUM,  # right, and a false alarm of sums
        "sums/near_it.txt": STEP + PRODUCT,  # a false alarm of products
        "products/slow.txt": STEP + SUM,  # a miss of products, a false alarm of sums
        "products/fixed.txt": STEP + OTHER,  # right
        "device-only/slow.txt": "# also: products: it has one\n" + STEP + OTHER,  # a miss, and nothing of products
        "clean/a.txt": "# also: sums: it has one\n" + STEP + SUM + PRODUCT,  # right, and a false alarm of products
    }

    @pytest.fixture
    def verdicts(self, tmp_path: Path) -> dict[str, Verdict]:
        return {str(program): verdict_on(program, self.RULES) for program in write(tmp_path, self.CORPUS)}

    def test_misses_false_alarms_and_what_is_stale_are_told_apart(self, verdicts: dict[str, Verdict]) -> None:
        wrong = {
            name: [sorted(each) for each in (verdict.missed, verdict.false_alarms, verdict.stale)]
            for name, verdict in verdicts.items()
        }
        assert wrong == {
            "sums/slow.txt": [[], [], []],
            "sums/fixed.txt": [[], ["sums"], []],
            "sums/near_it.txt": [[], ["products"], []],
            "products/slow.txt": [["products"], ["sums"], []],
            "products/fixed.txt": [[], [], []],
            "device-only/slow.txt": [["device-only"], [], ["products"]],
            "clean/a.txt": [[], ["products"], []],
        }

    def test_they_are_counted_by_rule(self, verdicts: dict[str, Verdict]) -> None:
        given = verdicts.values()
        sums, products = count(given, "sums"), count(given, "products")
        assert sums == Count(present=1, found=1, true=2, false_alarms=2, checked=7)
        assert products == Count(present=1, found=0, true=1, false_alarms=2, checked=7)
        assert count(given, "device-only") == Count(present=1)
        assert (sums.recall, sums.precision) == (1.0, 0.5)
        assert (products.recall, products.precision) == (0.0, 1 / 3)
        assert total([sums, products]) == Count(present=2, found=1, true=3, false_alarms=4, checked=14)
        assert total([]) == Count()
        assert (Count().recall, Count().precision) == (None, None)

    def test_a_rule_that_breaks_is_wrong_everywhere(self, verdicts: dict[str, Verdict]) -> None:
        assert all(verdict.answer.failed == {"broken": "ValueError: no idea"} for verdict in verdicts.values())
        assert all("broken" in verdict.wrong for verdict in verdicts.values())

    def test_complaints_say_what_and_where(self, verdicts: dict[str, Verdict]) -> None:
        broken = "broke: broken: ValueError: no idea"
        assert verdicts["sums/slow.txt"].complaints == [broken]
        assert verdicts["products/slow.txt"].complaints == [
            "missed: products.",
            "false alarm: sums: `aten::sum` multiplies 64 B",
            broken,
        ]
        missed, stale, _ = verdicts["device-only/slow.txt"].complaints
        assert missed.startswith("missed: device-only. The profile has no device activity")
        assert stale == "ALSO names products, which finds nothing"

    def test_what_is_wrong_once_is_unsteady(self, tmp_path: Path, verdicts: dict[str, Verdict]) -> None:
        program = verdicts["products/slow.txt"].program
        wrong, right = (
            judged(program, Answer(checked=frozenset({"products"}))),
            judged(program, verdicts["sums/near_it.txt"].answer),
        )
        assert both(wrong, wrong) == wrong
        for verdict in (both(wrong, right), both(right, wrong)):
            assert verdict.unsteady == {"products"}
            assert not verdict.missed
            assert [found.message for found in verdict.answer.findings["products"]] == ["`aten::mm` multiplies 64 B"]
            assert count([verdict], "products") == Count(present=1, found=0, unsteady=1, checked=1)

    def test_ranks_speak_together(self, tmp_path: Path) -> None:
        answer = merged([_report(tmp_path / "quiet", STEP), _report(tmp_path / "loud", STEP + SUM)])
        assert set(answer.findings) == {"sums"}
        assert set(answer.not_checked) == {"device-only"}


def _report(folder: Path, text: str) -> ProfileReport:
    folder.mkdir()
    draw_into(folder, text)
    return analyze_path(folder, Job([Sums(), NeedsDevice()])).runs[0].profiles[0]


class TestPage:
    @pytest.fixture
    def text(self, tmp_path: Path) -> str:
        corpus = TestVerdicts.CORPUS | {"clean/b.py": '"""Nothing at all."""\n'}
        rules: Sequence[Rule] = (Sums(), Products(), NeedsDevice())
        judgements = [
            verdict_on(program, rules) if program.is_drawn else Verdict(program, Answer())
            for program in write(tmp_path, corpus)
        ]
        return page(judgements, [rule.name() for rule in rules], "2.13.0", "## Do the fixes help?\n\nYes.\n")

    def test_the_summary_is_what_is_so(self, text: str) -> None:
        assert "| recall | 100 % | 33.3 % (1 of 3) |" in text
        assert "| precision | ≥ 95 % | 42.9 % (3 of 7) |" in text
        assert "| findings of high severity in clean programs | 0 | 2 |" in text
        assert "8 programs: 1 recorded, 7 drawn. torch 2.13.0" in text

    def test_each_rule_has_its_line(self, text: str) -> None:
        assert "| `sums` | 1 + 1 + 1, drawn | 1 of 1 | high | 2 | 0 | 100 % | 50 % | 7 |" in text
        assert "| `products` | 1 + 1 + 0, drawn | 0 of 1 | – | 2 | 0 | 0 % | 33.3 % | 7 |" in text

    def test_each_false_alarm_has_its_message_and_share(self, text: str) -> None:
        section = text.partition("## False alarms")[2].partition("\n## ")[0]
        assert [line for line in section.splitlines() if line] == [
            "- clean/a.txt: `products`, high, 20 % of the step: `aten::mm` multiplies 64 B",
            "- products/slow.txt: `sums`, high, 10 % of the step: `aten::sum` multiplies 64 B",
            "- sums/fixed.txt: `sums`, high, 10 % of the step: `aten::sum` multiplies 64 B",
            "- sums/near_it.txt: `products`, high, 20 % of the step: `aten::mm` multiplies 64 B",
        ]

    def test_misses_say_why_nobody_looked(self, text: str) -> None:
        assert "- device-only/slow.txt: not checked. The profile has no device activity" in text
        assert "- products/slow.txt\n" in text

    def test_what_is_unsteady_says_what_it_costs(self, tmp_path: Path) -> None:
        program = only(tmp_path, STEP + SUM, "sums/fixed.txt")
        once = both(verdict_on(program, [Sums()]), judged(program, Answer()))
        section = page([once], ["sums"], "2.13.0", "").partition("## Unsteady")[2].partition("\n## ")[0]
        assert section.strip() == "- sums/fixed.txt: `sums`, high, 10 % of the step: `aten::sum` multiplies 64 B"

    def test_clean_programs_say_what_they_are(self, text: str) -> None:
        assert "| b | Nothing at all | nothing |" in text
        assert "| a | drawn | `products` (high, 20 % of the step), `sums` (high, 10 % of the step) |" in text

    def test_the_proof_stays_when_counts_are_renewed(self, text: str) -> None:
        assert proof_in(text) == "## Do the fixes help?\n\nYes.\n"
        assert proof_in("# Accuracy\n") == ""


def test_a_drawn_file_names_its_device() -> None:
    kernel = "ProfilerStep#1  0-900\n  aten::mm  100-300  dims=4x4,4x4  kernel=gemm@200-400\n"
    (device,) = draw(f"# device: A100\n# any words\n{kernel}").metadata.devices
    assert device.name == "NVIDIA A100-SXM4-80GB"
    with pytest.raises(AssertionError, match="no such device"):
        draw(f"# device: A1000\n{kernel}")
