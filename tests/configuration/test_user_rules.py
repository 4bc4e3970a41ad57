"""Rules of the user's own: how they are loaded, and what is said of one that cannot be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.assemble import checked
from tb_tidy_plugin.analysis.checker import Clean
from tb_tidy_plugin.configuration import user_rules
from tb_tidy_plugin.configuration.files import Configuration, ConfigurationSettings
from tb_tidy_plugin.configuration.user_rules import with_user_rules
from tb_tidy_plugin.rulekit import AnyRule, Rule
from tb_tidy_plugin.rulekit.page import page_of
from tb_tidy_plugin.rulekit.testing import draw
from tb_tidy_plugin.rules import catalogue
from tb_tidy_plugin.words.errors import ConfigurationError
from tests.support import made_up_rule
from tests.support.user_rule import forget_user_rules, write_rule

CODE = 'code = "TT999"'


@pytest.fixture(autouse=True)
def _nothing_stays_loaded() -> Iterator[None]:
    yield
    forget_user_rules()


def loaded(folder: Path, *rules: str) -> tuple[type[AnyRule], ...]:
    configuration = Configuration(ConfigurationSettings(rules=list(rules)), folder / "tb-tidy.toml")
    return with_user_rules(configuration, catalogue())[len(catalogue()) :]


def complaint(folder: Path, *rules: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        loaded(folder, *rules)
    return caught.value.error


class TestFiles:
    def test_name_category_and_page(self, tmp_path: Path) -> None:
        write_rule(tmp_path / "anywhere at all")
        (rule,) = loaded(tmp_path, "anywhere at all/slow_multiplication.py")
        assert (rule.name(), rule.category(), rule.code) == ("slow-multiplication", "user", "TT999")
        assert page_of(rule).title == "Every multiplication is too slow"

    def test_an_absolute_path(self, tmp_path: Path) -> None:
        path = write_rule(tmp_path / "elsewhere")
        (rule,) = loaded(tmp_path / "here", str(path))
        assert rule.name() == "slow-multiplication"

    def test_a_changed_file_is_read_anew(self, tmp_path: Path) -> None:
        write_rule(tmp_path)
        loaded(tmp_path, "slow_multiplication.py")
        write_rule(tmp_path, "slow_multiplication.py", ("TT999", "MY12345"))
        assert loaded(tmp_path, "slow_multiplication.py")[0].code == "MY12345"

    def test_it_runs_only_where_it_is_named(self, tmp_path: Path) -> None:
        write_rule(tmp_path, "slow_multiplication.py", ("class Slow", "raise RuntimeError\n\n\nclass Slow"))
        assert loaded(tmp_path) == ()

    def test_a_class_that_others_derive_from_is_no_second_rule(self, tmp_path: Path) -> None:
        base = "class Base(Rule[Evidence]):\n    pass\n\n\nclass SlowMultiplication(Base)"
        write_rule(tmp_path, "slow_multiplication.py", ("class SlowMultiplication(Rule[Evidence])", base))
        assert loaded(tmp_path, "slow_multiplication.py")[0].__name__ == "SlowMultiplication"


class TestWhatIsSaid:
    def test_no_such_file(self, tmp_path: Path) -> None:
        assert (
            complaint(tmp_path, "no_rule.py") == f"There is no file `{tmp_path / 'no_rule.py'}`, which `rules` names."
        )

    def test_a_folder_of_the_name(self, tmp_path: Path) -> None:
        (tmp_path / "rule.py").mkdir()
        assert complaint(tmp_path, "rule.py").startswith(
            f"`{tmp_path / 'rule.py'}`, which `rules` names, cannot be read: "
        )

    def test_a_path_that_can_be_none(self, tmp_path: Path) -> None:
        assert "cannot be read: embedded null byte" in complaint(tmp_path, "nu\0ll/rule.py")

    @pytest.mark.parametrize(
        ("broken", "error"),
        [
            ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
            ("1 / 0", "ZeroDivisionError: division by zero"),
            ("def broken(:", "SyntaxError: invalid syntax"),
            ("raise SystemExit(3)", "SystemExit: 3"),
        ],
    )
    def test_an_error_while_it_is_imported(self, tmp_path: Path, broken: str, error: str) -> None:
        first = "from collections.abc import Iterator"
        path = write_rule(tmp_path, "slow_multiplication.py", (first, f"{first}\n{broken}"))
        line = path.read_text().splitlines().index(broken) + 1
        said = complaint(tmp_path, "slow_multiplication.py")
        assert said == f"`{path}` cannot be imported: line {line} of `{path}`: {error}."
        assert "tb_tidy_user_rules.user.slow_multiplication" not in sys.modules

    def test_an_error_deep_in_the_standard_library_is_told_by_the_users_line(self, tmp_path: Path) -> None:
        first = "from collections.abc import Iterator"
        path = write_rule(tmp_path, "slow_multiplication.py", (first, f"{first}\nimport json; json.loads('x')"))
        assert f"of `{path}`: JSONDecodeError: Expecting value" in complaint(tmp_path, "slow_multiplication.py")

    def test_no_rule_in_it(self, tmp_path: Path) -> None:
        (tmp_path / "empty.py").write_text("from tb_tidy_plugin.rulekit import Rule\n")
        assert complaint(tmp_path, "empty.py").endswith(
            "must contain one class derived from `Rule`, but contains none."
        )

    def test_a_rule_without_detect(self, tmp_path: Path) -> None:
        write_rule(tmp_path, "slow_multiplication.py", ("def detect", "def find"))
        assert complaint(tmp_path, "slow_multiplication.py").endswith("none; `SlowMultiplication` has no `detect`.")

    def test_two_rules_in_it(self, tmp_path: Path) -> None:
        two = "class Another(SlowMultiplication):\n    pass\n"
        path = write_rule(tmp_path)
        path.write_text(path.read_text() + two)
        assert "`SlowMultiplication`, `Another`" in complaint(tmp_path, "slow_multiplication.py")

    @pytest.mark.parametrize("name", ["Rule.py", "my rule.py", "a.b.py", "_rule.py"])
    def test_a_name_that_is_none_for_a_rule(self, tmp_path: Path, name: str) -> None:
        write_rule(tmp_path, name)
        assert "the file's name becomes the rule's" in complaint(tmp_path, name)

    @pytest.mark.parametrize(
        ("change", "missing"),
        [
            (('    code = "TT999"\n', ""), "it has no `code`"),
            (('"TT999"', "999"), "it has no `code`"),
            (('"TT999"', '"mine"'), "the code `mine` is not capital letters and a number, as in `MY1`"),
            (('    fix = "Add instead"\n', ""), "it has no `fix`"),
            (('{"shapes"}', '{"shapse"}'), "`needs` knows stacks, shapes, memory, device, steps, and not shapse"),
            (("multiplies {size}", "multiplies {sizes}"), "name `sizes`, and it has evidence without them"),
            (("Rule[Evidence]", "Rule"), "and it has no evidence; derive it from `Rule[Evidence]`"),
            (("## Why it is slow", "## Why"), "the page needs the sections What it finds, Why it is slow"),
            (("c = d", "c = d\n```\n\n```python\n"), "the example needs two code blocks, before and after"),
        ],
    )
    def test_a_rule_that_is_not_whole(self, tmp_path: Path, change: tuple[str, str], missing: str) -> None:
        write_rule(tmp_path, "slow_multiplication.py", change)
        said = complaint(tmp_path, "slow_multiplication.py")
        assert missing in said
        assert str(tmp_path / "slow_multiplication.py") in said

    def test_a_code_of_the_catalogue(self, tmp_path: Path) -> None:
        path = write_rule(tmp_path, "slow_multiplication.py", ("TT999", "TT302"))
        said = complaint(tmp_path, "slow_multiplication.py")
        assert said.startswith(f"`SlowMultiplication` in `{path}` is called `TT302`, and so is `ZeroGradMemset` in `")

    def test_a_name_of_the_catalogue(self, tmp_path: Path) -> None:
        write_rule(tmp_path, "zero_grad_memset.py")
        assert "is called `zero-grad-memset`, and so is" in complaint(tmp_path, "zero_grad_memset.py")

    def test_a_code_of_another_rule_of_ones_own(self, tmp_path: Path) -> None:
        write_rule(tmp_path, "one.py")
        write_rule(tmp_path, "two.py")
        assert "is called `TT999`, and so is" in complaint(tmp_path, "one.py", "two.py")


class TestYields:
    def test_to_a_rule_that_is_named_after_it(self, tmp_path: Path) -> None:
        self._write(tmp_path, "late", "first")
        write_rule(tmp_path, "first.py")
        rules = [rule() for rule in loaded(tmp_path, "late.py", "first.py") if issubclass(rule, Rule)]
        outcomes, findings = checked(
            draw("ProfilerStep#1  0-10\n  aten::mm  1-9  dims=4x4,4x4  types=float,float"), rules
        )
        assert [evidence.finding.rule for evidence in findings] == ["first"]
        assert outcomes["late"] == Clean("Left out: 1 finding that `first` covers.")

    def test_to_a_rule_of_the_catalogue(self, tmp_path: Path) -> None:
        self._write(tmp_path, "late", "cat-in-loop")
        assert [rule.name() for rule in loaded(tmp_path, "late.py")] == ["late"]

    def test_to_a_rule_that_does_not_exist(self, tmp_path: Path) -> None:
        self._write(tmp_path, "late", "cat-in-lop")
        with pytest.raises(ConfigurationError, match="yields to `cat-in-lop`, but no rule") as caught:
            loaded(tmp_path, "late.py")
        assert "cat-in-loop" in caught.value.advice

    def test_to_a_rule_about_several_ranks(self, tmp_path: Path) -> None:
        self._write(tmp_path, "late", "collective-straggler")
        assert "no rule over one profile has this name" in complaint(tmp_path, "late.py")

    def test_to_one_another(self, tmp_path: Path) -> None:
        self._write(tmp_path, "late", "later")
        self._write(tmp_path, "later", "late")
        assert complaint(tmp_path, "late.py", "later.py").startswith("Rules yield to one another: `late")

    def test_to_a_text(self, tmp_path: Path) -> None:
        write_rule(tmp_path, "late.py", (CODE, f'{CODE}\n    yields_to = "first"'))
        assert "`yields_to` is not a tuple of names of rules" in complaint(tmp_path, "late.py")

    @staticmethod
    def _write(folder: Path, name: str, other: str) -> None:
        code = CODE.replace("999", f"98{len(name)}")
        write_rule(folder, f"{name}.py", (CODE, f'{code}\n    yields_to = ("{other}",)'))


class TestEntryPoints:
    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What packages would bring by `[project.entry-points."tb_tidy.rules"]`."""
        values = {
            "made-up": [f"{made_up_rule.__name__}:SlowMultiplication"],
            "gone": ["no_such_package:Rule"],
            "function": [f"{made_up_rule.__name__}:tensor_bytes"],
            "abstract": ["tb_tidy_plugin.rulekit:Rule"],
            "twice": ["a:B", "c:D"],
        }
        points = [EntryPoint(name, value, "tb_tidy.rules") for name, given in values.items() for value in given]
        monkeypatch.setattr(user_rules, "entry_points", lambda group: EntryPoints(points).select(group=group))

    def test_name_and_category_are_those_of_its_module(self, tmp_path: Path) -> None:
        (rule,) = loaded(tmp_path, "made-up")
        assert (rule.name(), rule.category()) == ("made-up-rule", "support")

    @pytest.mark.parametrize(
        ("name", "error"),
        [
            ("made-upp", "no installed package has an entry point `made-upp` in the group `tb_tidy.rules`"),
            ("twice", "there is more than one entry point `twice` in the group `tb_tidy.rules`: a:B, c:D"),
            ("gone", "cannot be imported: ModuleNotFoundError: No module named 'no_such_package'"),
            ("function", "is not a class of a rule"),
            ("abstract", "is not a class of a rule"),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path: Path, name: str, error: str) -> None:
        assert error in complaint(tmp_path, name)

    def test_the_one_that_was_meant(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match=r"Did you mean `made-up`\?"):
            loaded(tmp_path, "made-upp")
