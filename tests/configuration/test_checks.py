"""From settings and a command line to the rules that are run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.configuration.checks import WantedRules, job_of, known_rules
from tb_tidy_plugin.configuration.files import Configuration, ConfigurationSettings
from tb_tidy_plugin.configuration.selectors import chosen_rules
from tb_tidy_plugin.rules import catalogue
from tb_tidy_plugin.words.errors import ConfigurationError, NotFoundError
from tests.support.user_rule import write_rule

MEMSET, SINGLE, TF32 = "zero-grad-memset", "optimizer-single-tensor", "fp32-matmul-no-tf32"
OPTIMIZER = {rule.name() for rule in catalogue() if rule.category() == "optimizer"}
EVERYTHING = {rule.name() for rule in catalogue()}
TT3 = {rule.name() for rule in catalogue() if rule.code.startswith("TT3")}
TT30 = {rule.name() for rule in catalogue() if rule.code.startswith("TT30")}


def configured(**settings: object) -> Configuration:
    return Configuration(msgspec.convert(settings, ConfigurationSettings, from_attributes=True), Path("tb-tidy.toml"))  # noqa: TID251


def asked(wanted: WantedRules | None = None, **settings: object) -> Job:
    return job_of(configured(**{name.replace("_", "-"): value for name, value in settings.items()}), wanted)


def names(job: Job) -> set[str]:
    return {rule.name() for rule in job.rules}


class TestSelection:
    def test_nothing_said_is_everything(self) -> None:
        assert [rule.name() for rule in job_of(Configuration()).rules] == [rule.name() for rule in catalogue()]

    @pytest.mark.parametrize("selector", [MEMSET, "TT302", "tt302"])
    def test_one_rule(self, selector: str) -> None:
        assert names(asked(select=[selector])) == {MEMSET}

    @pytest.mark.parametrize(("selector", "expected"), [("TT3", TT3), ("tt30", TT30), ("optimizer", OPTIMIZER)])
    def test_a_prefix_and_a_category(self, selector: str, expected: set[str]) -> None:
        assert names(asked(select=[selector])) == expected

    @pytest.mark.parametrize("selector", ["host_device", "host-device"])
    def test_a_category_of_two_words(self, selector: str) -> None:
        assert names(asked(ignore=[selector])) == {
            rule.name() for rule in catalogue() if rule.category() != "host_device"
        }

    @pytest.mark.parametrize(
        ("select", "ignore", "expected"),
        [
            (["ALL"], ["TT3"], EVERYTHING - TT3),
            (["TT302"], ["TT3"], {MEMSET}),
            (["TT3"], ["TT302"], TT3 - {MEMSET}),
            (["TT302"], [MEMSET], set()),  # equally close
            (["TT30"], ["TT3"], TT30),
            (["TT3"], ["TT30"], TT3 - TT30),
            (["TT3"], ["optimizer"], TT3),  # a prefix is closer than a category
            (["optimizer"], ["ALL"], OPTIMIZER),
            ([], [], set()),
        ],
    )
    def test_the_closer_selector_decides(self, select: list[str], ignore: list[str], expected: set[str]) -> None:
        assert names(asked(select=select, ignore=ignore)) == expected

    def test_the_order_is_that_of_the_catalogue(self) -> None:
        rules = chosen_rules(["TT5", "TT3"], [], catalogue())
        assert list(rules) == [rule for rule in catalogue() if rule in rules]


class TestCommandLine:
    def test_select_goes_before_both_keys(self) -> None:
        assert names(asked(WantedRules(select=["TT302"]), select=["TT4"], ignore=["TT302"])) == {MEMSET}

    def test_ignore_takes_away_from_what_the_file_selects(self) -> None:
        assert names(asked(WantedRules(ignore=["TT302"]), select=["TT3", "TT401"])) == {TF32} | TT3 - {MEMSET}

    def test_both(self) -> None:
        assert names(asked(WantedRules(select=["TT3"], ignore=["TT301"]))) == TT3 - {SINGLE}

    def test_only_one_rule_whatever_the_file_says(self) -> None:
        job = asked(WantedRules(only=["TT302"]), ignore=["TT3"], thresholds={MEMSET: {"min-share": 0.5}})
        assert [(rule.name(), rule.min_share) for rule in job.rules] == [(MEMSET, 0.5)]

    def test_only_what_is_not_there(self) -> None:
        with pytest.raises(NotFoundError, match="Did you mean `zero-grad-memset`"):
            asked(WantedRules(only=["zero-grad-memst"]))

    @pytest.mark.parametrize(
        ("wanted", "option"),
        [(WantedRules(select=["TT9999"]), "--select"), (WantedRules(ignore=["x"]), "--ignore")],
    )
    def test_an_unknown_selector_names_the_option(self, wanted: WantedRules, option: str) -> None:
        with pytest.raises(ConfigurationError, match=f"in `{option}` names no rule"):
            asked(wanted)


class TestThresholds:
    def test_they_reach_the_rule_and_no_other(self) -> None:
        by_name = {rule.name(): rule for rule in asked(thresholds={MEMSET: {"min-share": 0.25}}).rules}
        assert (by_name[MEMSET].min_share, by_name[SINGLE].min_share) == (0.25, 0.005)

    @pytest.mark.parametrize(
        ("thresholds", "error", "advice"),
        [
            (
                {"zero-grad-memse": {}},
                "that does not exist: `zero-grad-memse`",
                "Did you mean `zero-grad-memset`?",
            ),
            ({MEMSET: {"min-shard": 1}}, "no threshold `min-shard`", "Did you mean `min-share`?"),
            ({MEMSET: {"min_share": 1}}, "no threshold `min_share`", "Did you mean `min-share`?"),
            ({MEMSET: {"xyz": 1}}, "no threshold `xyz`", "It has `min-share`."),
            ({MEMSET: {"min-share": -1}}, "must be a number, 0 or greater", "The default is 0.005."),
            ({MEMSET: {"min-share": float("nan")}}, "must be a number, 0 or greater", "The default is 0.005."),
            ({MEMSET: {"min-share": 10**400}}, "must be a number, 0 or greater", "The default is 0.005."),
            ({MEMSET: {"min-share": float("inf")}}, "must be a number, 0 or greater", "The default is 0.005."),
        ],
    )
    def test_what_is_wrong_is_named(self, thresholds: object, error: str, advice: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            asked(thresholds=thresholds)
        assert error in caught.value.error
        assert "tb-tidy.toml" in caught.value.error
        assert caught.value.advice == advice

    def test_of_a_rule_that_is_not_selected_they_are_checked_all_the_same(self) -> None:
        with pytest.raises(ConfigurationError):
            asked(ignore=[MEMSET], thresholds={MEMSET: {"min-shard": 1}})


class TestPathIgnores:
    def test_selectors_become_rules(self) -> None:
        ignores = asked(per_path_ignores={"tests/**": ["TT3"], "a.py": ["ALL"]}).ignores
        assert ignores.rules == {"tests/**": TT3, "a.py": EVERYTHING}

    def test_an_unknown_selector_names_its_glob(self) -> None:
        with pytest.raises(
            ConfigurationError, match=r'`optimiser` in `per-path-ignores."a.py"` in `tb-tidy.toml`'
        ) as caught:
            asked(per_path_ignores={"a.py": ["optimiser"]})
        assert caught.value.advice == "Did you mean `optimizer`?"


class TestUserRules:
    def test_they_come_behind_the_catalogue_and_are_selected_like_others(self, tmp_path: Path) -> None:
        write_rule(tmp_path)
        file = tmp_path / "tb-tidy.toml"
        everything = Configuration(ConfigurationSettings(rules=["slow_multiplication.py"]), file)
        assert [rule.name() for rule in known_rules(everything)] == [
            *(rule.name() for rule in catalogue()),
            "slow-multiplication",
        ]
        for selector in ("user", "TT999", "slow-multiplication"):
            settings = ConfigurationSettings(rules=["slow_multiplication.py"], select=[selector])
            assert names(job_of(Configuration(settings, file))) == {"slow-multiplication"}

    def test_they_have_thresholds(self, tmp_path: Path) -> None:
        write_rule(tmp_path)
        settings = ConfigurationSettings(
            rules=["slow_multiplication.py"], thresholds={"slow-multiplication": {"min-share": 0.5}}
        )
        rule = job_of(Configuration(settings, tmp_path / "tb-tidy.toml")).rules[-1]
        assert (rule.name(), rule.min_share) == ("slow-multiplication", 0.5)
