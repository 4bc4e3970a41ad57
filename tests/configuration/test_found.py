"""Which configuration is found, how far up, and what of it is used if it may be somebody else's."""

from __future__ import annotations

import importlib.util
import os
import py_compile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tb_tidy_plugin.configuration.checks import job_of, known_rules
from tb_tidy_plugin.configuration.files import KEYS, Configuration, ConfigurationSettings
from tb_tidy_plugin.configuration.found import MOST_CONFIGURATION_BYTES, find_configuration
from tb_tidy_plugin.rules import catalogue
from tb_tidy_plugin.trace.limits import USUAL_LIMITS
from tb_tidy_plugin.words.errors import ConfigurationError
from tests.support.owners import Owners
from tests.support.user_rule import forget_user_rules, write_rule

OWN = 'ignore = ["zero-grad-memset"]\n'
PROJECT = '[tool.tb-tidy]\nselect = ["TT3"]\n'
OTHER_PROJECT = "[tool.ruff]\nline-length = 120\n"
RULES = 'rules = ["slow_multiplication.py"]\n'


def written(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", "-").replace("_", ".")).write_text(text, encoding="utf-8")
    return folder


class TestWhichFileCounts:
    @pytest.fixture(autouse=True)
    def _repository(self, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()

    def test_none(self, tmp_path: Path) -> None:
        written(tmp_path, pyproject_toml=OTHER_PROJECT)
        found = find_configuration(tmp_path)
        assert (found.settings, found.path) == (ConfigurationSettings(), None)
        assert found.settings.select == ["ALL"]

    def test_the_projects(self, tmp_path: Path) -> None:
        found = find_configuration(written(tmp_path, pyproject_toml=PROJECT))
        assert (found.settings.select, found.path) == (["TT3"], tmp_path / "pyproject.toml")

    def test_our_own_before_the_projects_and_alone(self, tmp_path: Path) -> None:
        found = find_configuration(written(tmp_path, pyproject_toml=PROJECT, tb__tidy_toml=OWN))
        assert found.path == tmp_path / "tb-tidy.toml"
        assert (found.settings.select, found.settings.ignore) == (["ALL"], ["zero-grad-memset"])

    def test_the_nearest_folder_ends_the_search(self, tmp_path: Path) -> None:
        written(tmp_path, tb__tidy_toml=OWN)
        inner = written(tmp_path / "a", pyproject_toml=PROJECT) / "b" / "c"
        inner.mkdir(parents=True)
        assert find_configuration(inner).path == tmp_path / "a" / "pyproject.toml"

    def test_a_project_without_our_table_does_not_end_it(self, tmp_path: Path) -> None:
        written(tmp_path, tb__tidy_toml=OWN)
        assert (
            find_configuration(written(tmp_path / "a", pyproject_toml=OTHER_PROJECT)).path == tmp_path / "tb-tidy.toml"
        )

    def test_a_folder_of_the_name_is_no_file(self, tmp_path: Path) -> None:
        (tmp_path / "a" / "tb-tidy.toml").mkdir(parents=True)
        written(tmp_path, tb__tidy_toml=OWN)
        assert find_configuration(tmp_path / "a").path == tmp_path / "tb-tidy.toml"


class TestHowFarUp:
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))

    @pytest.mark.parametrize(
        ("at", "folder", "found"),
        [
            (".", ".", True),  # neither in a repository nor at home: this folder alone
            (".", "a", False),
            ("repository", "repository/a/b", True),
            ("repository/a", "repository/a/b", True),
            (".", "repository", False),
            (".", "repository/a", False),
            ("repository", "repository/submodule", False),
            ("repository/submodule", "repository/submodule/c", True),
            ("home", "home/project/job", True),
            ("home", "home", True),
            (".", "home/project", False),
            (".", "home", False),
            ("home", "home/clone/a", False),
        ],
    )
    def test_to_the_repository_or_home(self, tmp_path: Path, at: str, folder: str, found: bool) -> None:
        for made in ("a", "repository/.git", "repository/a/b", "repository/submodule/c", "home/project/job"):
            (tmp_path / made).mkdir(parents=True, exist_ok=True)
        (tmp_path / "home" / "clone" / "a").mkdir(parents=True)
        (tmp_path / "home" / "clone" / ".git").symlink_to(tmp_path / "nowhere")
        (tmp_path / "repository" / "submodule" / ".git").write_text("gitdir: ../.git/modules/submodule\n")
        written(tmp_path / at, tb__tidy_toml=OWN)
        assert (find_configuration(tmp_path / folder).path is not None) == found

    def test_a_home_folder_in_a_repository_is_the_end_all_the_same(self, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        written(tmp_path, tb__tidy_toml=OWN)
        assert find_configuration(written(tmp_path / "home" / "work")).path is None

    def test_without_a_home_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def unknown() -> Path:
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.setattr(Path, "home", unknown)
        written(tmp_path, tb__tidy_toml=OWN)
        assert find_configuration(tmp_path).path == tmp_path / "tb-tidy.toml"
        assert find_configuration(written(tmp_path / "a")).path is None


def test_one_that_is_too_long_for_any(tmp_path: Path) -> None:
    written(tmp_path, tb__tidy_toml=OWN + "#" * MOST_CONFIGURATION_BYTES)
    with pytest.raises(ConfigurationError, match="is larger than 1 MiB"):
        find_configuration(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="files have no owner here")
class TestOfSomebodyElse:
    """Settings that are data are taken, and those of rules that are not there do no harm."""

    @pytest.fixture
    def owners(self, monkeypatch: pytest.MonkeyPatch) -> Owners:
        return Owners(monkeypatch)

    def found(self, folder: Path, owners: Owners, text: str) -> Configuration:
        owners.give_away(written(folder, tb__tidy_toml=text) / "tb-tidy.toml")
        return find_configuration(folder)

    def test_data_alone_is_all_taken_and_nothing_is_withheld(self, tmp_path: Path, owners: Owners) -> None:
        found = self.found(tmp_path, owners, OWN)
        assert found == Configuration(ConfigurationSettings(ignore=["zero-grad-memset"]), tmp_path / "tb-tidy.toml")

    def test_rules_are_withheld_and_what_is_said_of_them_is_passed_over(self, tmp_path: Path, owners: Owners) -> None:
        text = f"""
            {RULES}
            select = ["TT3", "MY1", "user"]
            ignore = ["slow-multiplication", "TT301"]
            [per-path-ignores]
            "tests/**" = ["MY1", "TT302"]
            [thresholds.slow-multiplication]
            min-share = 0.5
            [thresholds.zero-grad-memset]
            min-share = 0.25
        """
        found = self.found(tmp_path, owners, text)
        assert (found.withheld, found.doubt) == (
            ("rules",), f"`{tmp_path / 'tb-tidy.toml'}` belongs to another user"
        )  # fmt: skip
        assert known_rules(found) == catalogue()
        job = job_of(found)
        expected = {rule.name() for rule in catalogue() if rule.code.startswith("TT3") and rule.code != "TT301"}
        assert {rule.name() for rule in job.rules} == expected
        assert {rule.name(): rule.settings for rule in job.rules}["zero-grad-memset"] == {"min_share": 0.25}
        assert job.ignores.rules == {"tests/**": frozenset({"zero-grad-memset"})}

    @pytest.mark.parametrize(
        ("text", "error"),
        [
            ("selct = []", "unknown key `selct`"),
            ("thresholds.zero-grad-memset.min-shar = 1", "has no threshold `min-shar`"),
            ("limits.max-text = 1", "has no key `max-text`"),
        ],
    )
    def test_what_is_wrong_in_it_is_still_said(self, tmp_path: Path, owners: Owners, text: str, error: str) -> None:
        with pytest.raises(ConfigurationError, match=error):
            job_of(self.found(tmp_path, owners, RULES + text))

    def test_names_that_no_rule_has_are_errors_where_no_rule_is_withheld(self, tmp_path: Path, owners: Owners) -> None:
        found = self.found(tmp_path, owners, "ignore = ['MY1']\nlimits.max-text-gb = 1000")
        assert found.withheld == ("limits",)
        with pytest.raises(ConfigurationError, match="`MY1` in `ignore` in"):
            job_of(found)

    def test_limits_may_be_lowered_and_not_lifted(self, tmp_path: Path, owners: Owners) -> None:
        found = self.found(tmp_path, owners, "limits = { max-text-gb = 1000, max-inflation = 20 }")
        limits = job_of(found).limits
        assert (found.withheld, limits.text_bytes, limits.inflation) == (("limits",), USUAL_LIMITS.text_bytes, 20)
        mine = find_configuration(written(tmp_path / "mine", tb__tidy_toml="limits = { max-text-gb = 1000 }"))
        assert (mine.withheld, job_of(mine).limits.text_bytes) == ((), 1000 * 10**9)

    def test_a_key_that_nobody_has_thought_about_yet_is_withheld(self, tmp_path: Path, owners: Owners) -> None:
        """Whoever adds one has to say that it is only data."""
        text = """
            select = ["TT3"]
            ignore = ["TT301"]
            per-path-ignores.a = ["TT302"]
            rules = ["a.py"]
            thresholds.zero-grad-memset.min-share = 1
            limits.max-inflation = 1000
            device = "a"
            devices.a.gigabytes-per-second = 1
        """
        found = self.found(tmp_path, owners, text)
        taken = {key for key in KEYS if getattr(found.settings, key.replace("-", "_"))}
        assert set(found.withheld) == {"rules", "limits"} == set(KEYS) - taken

    def test_a_rule_that_is_not_there_is_no_error(self, tmp_path: Path, owners: Owners) -> None:
        assert self.found(tmp_path, owners, 'rules = ["nowhere.py", "no-entry-point"]').withheld == ("rules",)
        with pytest.raises(ConfigurationError, match=r"There is no file `.*nowhere.py`, which `rules` names\."):
            find_configuration(written(tmp_path / "mine", tb__tidy_toml='rules = ["nowhere.py"]'))

    def test_a_path_that_is_not_there_is_left_to_whoever_reads_it(self, tmp_path: Path) -> None:
        write_rule(written(tmp_path, tb__tidy_toml=RULES))
        assert find_configuration(tmp_path, [tmp_path / "nowhere" / "run"]).withheld == ()


class TestWhatRuns:
    """The text that was judged, whatever lies there a moment later, and nothing that is compiled already."""

    @pytest.fixture(autouse=True)
    def _forget(self) -> Iterator[None]:
        yield
        forget_user_rules()

    def test_the_text_that_was_judged(self, tmp_path: Path) -> None:
        rule = write_rule(written(tmp_path, tb__tidy_toml=RULES))
        found = find_configuration(tmp_path)
        rule.write_text("raise RuntimeError('replaced meanwhile')")
        assert known_rules(found)[-1].code == "TT999"
        rule.unlink()
        assert known_rules(found)[-1].code == "TT999"

    def test_no_compiled_file_beside_it(self, tmp_path: Path) -> None:
        rule = write_rule(written(tmp_path, tb__tidy_toml=RULES), "slow_multiplication.py", ("TT999", "MY777"))
        about = rule.stat()
        py_compile.compile(str(rule), doraise=True)
        compiled = Path(importlib.util.cache_from_source(str(rule)))
        write_rule(tmp_path, "slow_multiplication.py", ("TT999", "MY888"))
        os.utime(rule, ns=(about.st_atime_ns, about.st_mtime_ns))  # Python takes it for that of this text
        assert compiled.is_file()
        assert known_rules(find_configuration(tmp_path))[-1].code == "MY888"

    def test_no_future_that_the_file_did_not_ask_for(self, tmp_path: Path) -> None:
        looks = "class Slow", "def f(x: int) -> None: ...\nassert f.__annotations__['x'] is int\n\n\nclass Slow"
        write_rule(written(tmp_path, tb__tidy_toml=RULES), "slow_multiplication.py", looks)
        assert known_rules(find_configuration(tmp_path))[-1].code == "TT999"
