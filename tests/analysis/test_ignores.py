"""Globs of files, as recorded on any machine."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
import pytest

from tb_tidy_plugin.analysis.assemble import checked
from tb_tidy_plugin.analysis.checker import Clean, Found
from tb_tidy_plugin.analysis.ignores import PathIgnores, fits
from tb_tidy_plugin.report.model import Finding
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings
from tests.support.made_up_rule import SlowMultiplication

NAME = SlowMultiplication.name()

TWO_FILES = """
ProfilerStep#1                  0-1000
  train.py(10): step            1-999
    aten::mm                    100-299  dims=4x4,4x4  types=float,float
    tests/model.py(30): helper  600-900
      aten::mm                  700-799  dims=8x8,8x8  types=float,float
"""


@pytest.mark.parametrize(
    ("glob", "file"),
    [
        ("train.py", "train.py"),
        ("train.py", "/home/me/job/train.py"),
        ("./train.py", "./train.py"),
        ("train.py", "C:\\job\\train.py"),
        ("job/*.py", "C:\\job\\train.py"),
        ("tests/*.py", "/home/me/job/tests/model.py"),
        ("tests/**", "tests/deep/down/model.py"),
        ("tests/**", "tests/model.py"),
        ("**/tests/**", "tests/model.py"),
        ("a/**/b.py", "a/b.py"),
        ("a/**/b.py", "a/x/y/b.py"),
        ("/home/**", "/home/me/train.py"),
        ("C:/job/*", "C:\\job\\train.py"),
        ("model_?.py", "model_1.py"),
        ("[ab].py", "a.py"),
        ("**", "anything/at/all.py"),
        ("../outside.py", "../../outside.py"),
    ],
)
def test_fits(glob: str, file: str) -> None:
    assert fits(glob, file)


@pytest.mark.parametrize(
    ("glob", "file"),
    [
        ("train.py", "pretrain.py"),
        ("train.py", "train.pyx"),
        ("train.py", "train.py/other.py"),
        ("tests/*.py", "tests/deep/model.py"),
        ("tests/*", "mytests/model.py"),
        ("/train.py", "/home/train.py"),
        ("/home/**", "home/me/train.py"),
        ("Train.py", "train.py"),
        ("a.py", "axpy"),
        ("", "train.py"),
    ],
)
def test_does_not_fit(glob: str, file: str) -> None:
    assert not fits(glob, file)


def test_no_glob_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is compared with each part of a path once at most; there are 10^14 ways in which this one may fit."""
    compared = 0

    def counted(name: str, part: str) -> bool:
        nonlocal compared
        compared += 1
        assert compared <= 26 * 51
        return fnmatchcase(name, part)

    monkeypatch.setattr("tb_tidy_plugin.analysis.ignores.fnmatchcase", counted)
    assert not fits("**/a/" * 25 + "b.py", "a/" * 50 + "c.py")
    assert compared


def found(profile: Profile) -> list[Finding]:
    return findings(SlowMultiplication, profile)


def covers(ignores: PathIgnores, finding: Finding) -> bool:
    return ignores.cover(finding.rule, [place.file for place in finding.places])


def covered(globs: dict[str, set[str]]) -> list[bool]:
    ignores = PathIgnores({glob: frozenset(rules) for glob, rules in globs.items()})
    return [covers(ignores, finding) for finding in found(draw(TWO_FILES))]


def test_only_findings_of_the_rule_in_the_file_are_covered() -> None:
    assert covered({"tests/**": {NAME}}) == [False, True]
    assert covered({"tests/**": {"another"}}) == [False, False]
    assert covered({"tests/**": {NAME}, "train.py": {NAME}}) == [True, True]


def test_all_places_must_be_covered_and_two_globs_may_do_it() -> None:
    first, second = found(draw(TWO_FILES))
    both = msgspec.structs.replace(first, places=[*first.places, *second.places])
    assert not covers(PathIgnores({"tests/**": frozenset({NAME})}), both)
    assert covers(PathIgnores({"tests/**": frozenset({NAME}), "train.py": frozenset({NAME})}), both)


def test_a_finding_without_places_is_never_covered() -> None:
    (finding,) = found(draw("ProfilerStep#1 0-1000\n  aten::mm 100-299 dims=4x4,4x4 types=float,float"))
    assert finding.places == []
    assert not covers(PathIgnores({"**": frozenset({NAME})}), finding)


class TestReport:
    def test_some_are_left_out_and_it_is_said(self) -> None:
        outcomes, ranked = checked(
            draw(TWO_FILES), [SlowMultiplication()], ignores=PathIgnores({"tests/**": frozenset({NAME})})
        )
        assert [evidence.finding.places[0].file for evidence in ranked] == ["train.py"]
        outcome = outcomes[NAME]
        assert isinstance(outcome, Found)
        assert outcome.left_out == "Left out: 1 finding in files of `per-path-ignores`."

    def test_all_are_left_out_and_it_is_said(self) -> None:
        outcomes, ranked = checked(
            draw(TWO_FILES), [SlowMultiplication()], ignores=PathIgnores({"**": frozenset({NAME})})
        )
        assert ranked == []
        assert outcomes[NAME] == Clean("Left out: 2 findings in files of `per-path-ignores`.")

    def test_each_is_counted_once_where_there_are_two_reasons(self) -> None:
        rule = SlowMultiplication({"min_share": 0.15})  # the second finding takes 10 % of the step
        outcomes, _ = checked(draw(TWO_FILES), [rule], ignores=PathIgnores({"train.py": frozenset({NAME})}))
        assert outcomes[NAME] == Clean(
            "Left out: 1 finding below 15 % of a step (`min-share`); 1 finding in files of `per-path-ignores`."
        )

    def test_nothing_is_left_out(self) -> None:
        outcomes, ranked = checked(draw(TWO_FILES), [SlowMultiplication()])
        outcome = outcomes[NAME]
        assert isinstance(outcome, Found)
        assert (len(ranked), outcome.left_out) == (2, None)


def test_the_path_of_a_trace_has_nothing_to_do_with_it(tmp_path: Path) -> None:
    assert covered({f"{tmp_path}/**": {NAME}}) == [False, False]
