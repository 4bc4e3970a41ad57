"""Which configuration file counts, and what is said of one that cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tb_tidy_plugin.configuration.files import Configuration, ConfigurationSettings, read_configuration
from tb_tidy_plugin.configuration.found import find_configuration
from tb_tidy_plugin.words.errors import ConfigurationError

OWN = 'ignore = ["zero-grad-memset"]\n'
OTHER_PROJECT = "[tool.ruff]\nline-length = 120\n"


def written(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", "-").replace("_", ".")).write_text(text, encoding="utf-8")
    return folder


def complaint(folder: Path, text: str) -> ConfigurationError:
    path = folder / "tb-tidy.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        read_configuration(path)
    assert str(path) in caught.value.error
    return caught.value


def test_a_file_of_any_name_when_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "strict.toml"
    path.write_text(OWN)
    assert read_configuration(path) == Configuration(ConfigurationSettings(ignore=["zero-grad-memset"]), path)


def test_all_keys(tmp_path: Path) -> None:
    text = """
        select = ["ALL"]
        ignore = []
        rules = ["a.py", "b"]
        [per-path-ignores]
        "tests/**" = ["TT3"]
        [thresholds.zero-grad-memset]
        min-share = 0.02
        min-bytes = 4096
    """
    path = tmp_path / "tb-tidy.toml"
    path.write_text(text)
    settings = read_configuration(path).settings
    assert settings.rules == ["a.py", "b"]
    assert settings.per_path_ignores == {"tests/**": ["TT3"]}
    assert settings.thresholds == {"zero-grad-memset": {"min-share": 0.02, "min-bytes": 4096}}
    assert isinstance(settings.thresholds["zero-grad-memset"]["min-bytes"], int)


class TestWhatIsSaid:
    def test_an_unknown_key_and_the_one_that_was_meant(self, tmp_path: Path) -> None:
        said = complaint(tmp_path, "per-path-ignore = {}")
        assert "unknown key `per-path-ignore`" in said.error
        assert said.advice == "Did you mean `per-path-ignores`?"

    def test_a_key_like_no_other(self, tmp_path: Path) -> None:
        known = "Known keys: select, ignore, per-path-ignores, rules, thresholds, limits, device, devices."
        assert complaint(tmp_path, "[tool.tb-tidy]").advice == known

    @pytest.mark.parametrize(
        ("text", "where", "must", "got"),
        [
            ('select = "TT2"', "`select`", "a list", "a string"),
            ("ignore = [[]]", "`ignore[0]`", "a string", "a list"),
            ("ignore = ['TT2', 3]", "`ignore[1]`", "a string", "a number"),
            ("rules = 1979-05-27", "`rules`", "a list", "`date`"),
            ("thresholds = 3", "`thresholds`", "a table", "a number"),
            ("thresholds.zero-grad-memset = 3", "`thresholds.zero-grad-memset`", "a table", "a number"),
            ("thresholds.a.min-share = 'x'", "`thresholds.a.min-share`", "a number", "a string"),
            ("thresholds.a.min-share = true", "`thresholds.a.min-share`", "a number", "true or false"),
            ("limits = {b = 6, a.b.c = 3}", "`limits.a`", "a number", "a table"),
            ("per-path-ignores.a = ['TT2']\nper-path-ignores.'b c/**' = 'x'", '`per-path-ignores."b c/**"`', "a list",
             "a string"),
        ],
    )  # fmt: skip
    def test_a_value_of_another_type(self, tmp_path: Path, text: str, where: str, must: str, got: str) -> None:
        said = complaint(tmp_path, text)
        assert said.error == f"{where} in `{tmp_path / 'tb-tidy.toml'}` must be {must}, but is {got}."
        assert said.advice.startswith("Write it as in `")

    def test_a_number_stands_for_any_threshold_and_nothing_else_does(self, tmp_path: Path) -> None:
        path = tmp_path / "tb-tidy.toml"
        path.write_text("thresholds.a = { b = 1, c = 0.5 }")
        assert read_configuration(path).settings.thresholds == {"a": {"b": 1, "c": 0.5}}

    @pytest.mark.parametrize("data", [b"select = ", b"select = [\xff]", b"a = " + 5000 * b"[", b"a = " + 5000 * b"9"])
    def test_no_toml(self, tmp_path: Path, data: bytes) -> None:
        path = tmp_path / "tb-tidy.toml"
        path.write_bytes(data)
        with pytest.raises(ConfigurationError, match="is not valid TOML"):
            find_configuration(tmp_path)

    def test_where_in_the_file(self, tmp_path: Path) -> None:
        assert "line 2" in complaint(tmp_path, "select = []\nignore =\nrules = []").error

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match=r"cannot be read: No such file"):
            read_configuration(tmp_path / "nowhere.toml")

    def test_a_project_that_was_named_and_has_no_table(self, tmp_path: Path) -> None:
        written(tmp_path, pyproject_toml=OTHER_PROJECT)
        with pytest.raises(ConfigurationError, match=r"has no table `\[tool\.tb-tidy\]`"):
            read_configuration(tmp_path / "pyproject.toml")

    def test_a_table_that_is_none(self, tmp_path: Path) -> None:
        written(tmp_path, pyproject_toml="[tool]\ntb-tidy = 3\n")
        with pytest.raises(ConfigurationError, match=r"`tool.tb-tidy` in `.*` is not a table"):
            find_configuration(tmp_path)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_a_file_that_may_not_be_read(self, tmp_path: Path) -> None:
        written(tmp_path, tb__tidy_toml=OWN)
        (tmp_path / "tb-tidy.toml").chmod(0)
        with pytest.raises(ConfigurationError, match="Permission denied"):
            find_configuration(tmp_path)
