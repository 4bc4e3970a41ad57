"""`python -m tb_tidy_plugin.dev new-rule`: what it writes passes the checks, and its test fails until it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tb_tidy_plugin.dev.__main__ import dev
from tb_tidy_plugin.dev.new_rule import RuleNameError, next_code, write_rule
from tests.support.copied import Copy, copy_package

RULE = "tb_tidy_plugin/rules/weather/rain_in_step.py"
TEST = "tests/rules/weather/test_rain_in_step.py"
TEST_OF_CALLS = "tests/rules/weather/test_snow_in_step.py"


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(dev, ["new-rule", *arguments], obj=root)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    copied = copy_package(tmp_path_factory.mktemp("repository"))
    written = run(copied.root, "weather/rain-in-step")
    assert written.exit_code == 0, written.output
    assert written.output.splitlines()[:3] == [
        "wrote tb_tidy_plugin/rules/weather/__init__.py",
        f"wrote {RULE}",
        f"wrote {TEST}",
    ]
    of_calls = run(copied.root, "weather/snow-in-step", "--calls")
    assert of_calls.exit_code == 0, of_calls.output
    return copied


def test_ruff_has_nothing_to_say(copy: Copy) -> None:
    files = ("tb_tidy_plugin/rules/weather", "tests/rules/weather")
    checked = copy.python("-m", "ruff", "check", *files)
    assert checked.returncode == 0, checked.stdout
    formatted = copy.python("-m", "ruff", "format", "--check", *files)
    assert formatted.returncode == 0, formatted.stdout


def test_the_rule_is_found_and_has_a_page(copy: Copy) -> None:
    shown = copy.python(
        "-c",
        "from tb_tidy_plugin.rules import all_rules\n"
        "from tb_tidy_plugin.rulekit.page import page_of\n"
        "for rule in all_rules():\n"
        "    if rule.category() == 'weather': print(rule.__name__, rule.needs, len(page_of(rule).sections))",
    )
    expected = "RainInStep frozenset({'shapes'}) 5\nSnowInStep frozenset({'stacks'}) 5\n"
    assert shown.stdout == expected, shown.stderr


@pytest.mark.parametrize("test", [TEST, TEST_OF_CALLS])
def test_its_test_fails_until_it_is_written(copy: Copy, test: str) -> None:
    tested = copy.python("-m", "pytest", "-q", "-p", "no:cacheprovider", test)
    assert tested.returncode == 1, tested.stdout + tested.stderr
    assert "3 failed" in tested.stdout
    assert "Failed: to be written" in tested.stdout
    assert "AssertionError" not in tested.stdout  # what comes before holds


def test_a_file_that_is_there_is_kept(copy: Copy) -> None:
    rule = copy.root / RULE
    text = rule.read_text()
    again = run(copy.root, "weather/rain_in_step")
    assert again.exit_code == 2
    assert "already" in again.stderr
    assert rule.read_text() == text


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("rain_in_step", "not a CATEGORY/NAME"),
        ("weather/RainInStep", "not a CATEGORY/NAME"),
        ("weather/rain in step", "not a CATEGORY/NAME"),
        ("../weather/rain", "not a CATEGORY/NAME"),
        ("weather/avoid_rain", "not the cure"),
        ("weather/use-umbrella", "not the cure"),
        ("weather/fp32-matmul-no-tf32", "already"),
    ],
)
def test_names_that_break_the_law(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(RuleNameError, match=reason):
        write_rule(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_codes_go_on_in_a_category_and_begin_a_hundred_in_a_new_one() -> None:
    assert next_code("precision").startswith("TT4")
    assert next_code("precision") != "TT401"
    assert next_code("weather")[-2:] == "01"
