"""What holds for every rule: its page, names, texts, size and test, and that the generated files are current."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.checker import Found, check_rule
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.dev.generate import ROOT, ReadmeError, generated_files, readme
from tb_tidy_plugin.rulekit import AnyRule, Match, Profile, Rule
from tb_tidy_plugin.rulekit.evidence import names_in
from tb_tidy_plugin.rulekit.page import SECTIONS, page_of
from tb_tidy_plugin.rules import all_rules, catalogue, source_of
from tb_tidy_plugin.rules.settings.recording_not_steady import RecordingNotSteady
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared

CURES = ("use-", "avoid-", "prefer-")
PARTS = ("reports", "saves", "stays quiet")
LONGEST_ACTION = 12  # words
NEEDS = {"stacks", "shapes", "memory", "device", "steps"}

RECORDINGS = sorted(ROOT.glob("sample_runs/*/*.pt.trace.json.gz"))

every_rule_over_a_profile = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name())
every_rule = pytest.mark.parametrize("rule", catalogue(), ids=lambda rule: rule.name())


@cache
def source(rule: type[AnyRule]) -> str:
    return source_of(rule).read_text(encoding="utf-8")


@cache
def recording(path: Path) -> Profile:
    return Profile(read_trace(path))


def place_of(rule: type[AnyRule]) -> Path:
    """The rule's file, or its folder where its detectors lie beside it."""
    file = source_of(rule)
    return file.parent if file.name == "__init__.py" else file


class TestPage:
    @every_rule
    def test_it_has_all_sections_in_order_and_each_says_something(self, rule: type[AnyRule]) -> None:
        page = page_of(rule)
        assert tuple(page.sections) == SECTIONS
        assert all(page.sections.values())
        assert page.title

    @every_rule
    def test_both_examples_are_python(self, rule: type[AnyRule]) -> None:
        page = page_of(rule)
        ast.parse(page.before)
        ast.parse(page.after)
        assert page.before != page.after

    @every_rule
    def test_nothing_is_left_to_be_written(self, rule: type[AnyRule]) -> None:
        assert "TODO" not in source(rule)

    def test_titles_are_told_apart(self) -> None:
        titles = [page_of(rule).title for rule in catalogue()]
        assert len(titles) == len(set(titles))


class TestNames:
    def test_codes_are_unique(self) -> None:
        codes = [rule.code for rule in catalogue()]
        assert len(codes) == len(set(codes))

    def test_names_are_unique(self) -> None:
        names = [rule.name() for rule in catalogue()]
        assert len(names) == len(set(names))

    @every_rule
    def test_the_code_is_tt_and_a_number_from_101_on(self, rule: type[AnyRule]) -> None:
        assert re.fullmatch(r"TT[1-9]\d{2,3}", rule.code)

    @every_rule
    def test_the_name_says_the_pattern_in_kebab_case(self, rule: type[AnyRule]) -> None:
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", rule.name())
        assert not rule.name().startswith(CURES)

    @every_rule
    def test_file_and_class_agree(self, rule: type[AnyRule]) -> None:
        assert rule.__name__ == "".join(word.capitalize() for word in rule.name().split("-"))
        assert place_of(rule).stem.replace("_", "-") == rule.name()

    @every_rule
    def test_a_category_is_a_folder_of_whole_words(self, rule: type[AnyRule]) -> None:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", rule.category())
        assert place_of(rule).parent.name == rule.category()


class TestTexts:
    @every_rule
    def test_they_name_only_what_the_rules_evidence_has(self, rule: type[AnyRule]) -> None:
        texts = (rule.action, rule.message, rule.why, rule.fix)
        assert set().union(*map(names_in, texts)) <= rule.names()

    @every_rule
    def test_an_action_is_short_and_begins_with_its_verb(self, rule: type[AnyRule]) -> None:
        first, *others = rule.action.split()
        assert first.istitle()
        assert 1 <= len(others) < LONGEST_ACTION

    def test_actions_are_told_apart(self) -> None:
        actions = [rule.action for rule in catalogue()]
        assert len(actions) == len(set(actions))

    @every_rule_over_a_profile
    def test_every_match_in_a_recording_has_the_rules_evidence(self, rule: type[Rule]) -> None:
        found = [match for path in RECORDINGS for match in _matches(rule, recording(path))]
        assert {type(match.evidence) for match in found} <= {rule.evidence()}

    @every_rule_over_a_profile
    def test_benchmarks_of_matches_in_a_recording_are_python(self, rule: type[Rule]) -> None:
        found = [match for path in RECORDINGS for match in _matches(rule, recording(path))]
        for benchmark in filter(None, (rule().benchmark(match.evidence) for match in found)):
            for statement in (benchmark.setup, benchmark.before, benchmark.after):
                ast.parse(statement)

    @every_rule
    def test_a_sentence_has_no_full_stop_of_its_own(self, rule: type[AnyRule]) -> None:
        assert not rule.message.endswith(".")
        assert not rule.fix.endswith(".")
        assert not rule.action.endswith(".")

    @every_rule
    def test_needs_are_known(self, rule: type[AnyRule]) -> None:
        assert set(rule.needs) <= NEEDS


def _matches(rule: type[Rule], profile: Profile) -> tuple[Match, ...]:
    outcome = check_rule(profile, rule())
    return outcome.matches if isinstance(outcome, Found) else ()


class TestFiles:
    @every_rule
    def test_its_test_has_the_three_parts(self, rule: type[AnyRule]) -> None:
        path = ROOT / "tests" / "rules" / rule.category() / f"test_{place_of(rule).stem}.py"
        assert path.is_file(), f"{path.relative_to(ROOT)} is missing"
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        names = {_words(node.name) for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        missing = [part for part in PARTS if not any(part in name for name in names)]
        assert not missing, f"{path.relative_to(ROOT)} has no part {missing}"

    def test_every_test_belongs_to_a_rule_or_to_a_detector_of_one(self) -> None:
        places = {(rule.category(), place_of(rule)) for rule in catalogue()}
        tested = {
            (category, f"test_{file.stem}.py") for category, place in places for file in (place, *place.glob("*"))
        }
        tests = {(path.parent.name, path.name) for path in (ROOT / "tests" / "rules").glob("*/test_*.py")}
        assert tests <= tested


def _words(name: str) -> str:
    """`TestStaysQuiet` and `test_stays_quiet` alike as `test stays quiet`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").lower()


class TestGeneratedFiles:
    def test_they_are_current(self) -> None:
        stale = [str(file.path) for file in generated_files() if not file.is_current(ROOT)]
        assert not stale, "stale: run `make generate`"

    def test_the_readmes_table_is_current(self) -> None:
        try:
            current = readme().is_current(ROOT)
        except ReadmeError as error:
            pytest.fail(str(error))
        assert current, "stale: run `make generate`"


class TestLedger:
    """A rule that asks for the ledger would stop all rules after it until the ledger is there."""

    @pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.parent.name)
    def test_no_rule_reads_it_without_saying_so(self, path: Path) -> None:
        self._check(Profile(read_trace(path)))

    @pytest.mark.parametrize("name", ["h100_vit_pipeline", "mi300_ddp8_resnet_checkpoint", "mi300_sglang_graph_decode"])
    def test_nor_with_a_device(self, name: str) -> None:
        [file, *_] = find_traces(shared(f"traces/{name}"))
        self._check(read_file(file, Job()).profile)

    def _check(self, profile: Profile) -> None:
        for rule in all_rules():
            if not rule.reads_ledger:
                check_rule(profile, rule())
                assert not any("account_of" in name for name in vars(profile)), rule.name()

    def test_the_check_sees_one_that_does(self) -> None:
        profile = recording(RECORDINGS[0])
        check_rule(profile, RecordingNotSteady())
        assert any("account_of" in name for name in vars(profile))


SEEN_IN_GRAPHS = {
    "float32-beside-bfloat16-units": "for jobs on a CPU",
    "tensor-created-on-cpu-then-moved": "a graph cannot copy from memory that is not pinned",
    "tensor-shrunk-in-loop": "a graph has fixed sizes",
}
"""Rules that read shapes, and yet nothing that a replayed graph hides."""


class TestHiddenWork:
    """In a replayed graph, a rule about operators sees nothing, which must not read as clean."""

    def test_rules_that_read_shapes_say_that_they_read_operators(self) -> None:
        silent = {rule.name() for rule in all_rules() if "shapes" in rule.needs and not rule.reads_operators}
        assert silent == set(SEEN_IN_GRAPHS)
