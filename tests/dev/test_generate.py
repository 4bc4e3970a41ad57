"""`python -m tb_tidy_plugin.dev generate`: what it writes, and what `--check` says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tb_tidy_plugin.dev import generate
from tb_tidy_plugin.dev.__main__ import dev
from tb_tidy_plugin.dev.generate import END, START, GeneratedFile, ReadmeError, page_text, readme
from tb_tidy_plugin.dev.schemas import report_schema
from tb_tidy_plugin.rules import catalogue
from tb_tidy_plugin.rules.precision.fp32_matmul_no_tf32 import Fp32MatmulNoTf32

WITH_MARKS = f"# TorchTidy\n\nRules:\n\n{START}\nWhat stood here before.\n{END}\n\nThe end.\n"
PAGE = Path("docs", "rules", "fp32-matmul-no-tf32.md")


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(dev, ["generate", *arguments], obj=root)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text(WITH_MARKS)
    return tmp_path


@pytest.mark.torch  # which knows the schemas of its operators
def test_generate_writes_everything_and_then_all_is_current(root: Path) -> None:
    written = run(root)
    assert written.exit_code == 0, written.output
    assert f"wrote {PAGE}" in written.output
    assert (root / PAGE).read_text().count("\n## ") == 6
    assert json.loads((root / "docs" / "report.schema.json").read_text())["title"] == "TorchTidy report"
    assert json.loads((root / "docs" / "api.schema.json").read_text())["title"] == "Api"
    checked = run(root, "--check")
    assert (checked.exit_code, checked.stdout) == (0, "")
    assert run(root).stdout == ""


@pytest.mark.torch
def test_check_lists_what_is_stale_and_changes_nothing(root: Path) -> None:
    run(root)
    (root / PAGE).write_text("edited by hand\n")
    (root / "docs" / "api.schema.json").unlink()
    (root / "docs" / "rules" / "gone.md").write_text("of a rule that was removed\n")
    checked = run(root, "--check")
    assert checked.exit_code == 1
    assert checked.stdout.splitlines() == [
        "stale: docs/api.schema.json",
        f"stale: {PAGE}",
        "stale: docs/rules/gone.md",
    ]
    assert "make generate" in checked.stderr
    assert (root / PAGE).read_text() == "edited by hand\n"
    assert not (root / "docs" / "api.schema.json").exists()


def test_generate_removes_the_page_of_a_rule_that_is_no_more(root: Path) -> None:
    run(root)
    (root / "docs" / "rules" / "gone.md").write_text("of a rule that was removed\n")
    assert run(root).stdout == "removed docs/rules/gone.md\n"
    assert run(root, "--check").exit_code == 0


def test_a_missing_readme_is_said_and_the_rest_is_written(tmp_path: Path) -> None:
    written = run(tmp_path)
    assert written.exit_code == 1
    assert "README.md is missing" in written.stderr
    assert (tmp_path / PAGE).exists()
    assert not (tmp_path / "README.md").exists()


@pytest.mark.parametrize("text", ["no marks\n", f"{START}\nno end\n", f"{END}\nwrong order\n{START}\n"])
def test_a_readme_without_marks_is_said(text: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(text)
    with pytest.raises(ReadmeError, match="rules:start"):
        readme(tmp_path)


def test_the_readme_keeps_all_that_is_outside_the_marks(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(WITH_MARKS)
    text = readme(tmp_path).text
    assert text is not None
    assert text.startswith(f"# TorchTidy\n\nRules:\n\n{START}\n")
    assert text.endswith(f"{END}\n\nThe end.\n")
    assert "What stood here before" not in text
    (tmp_path / "README.md").write_text(text)
    assert readme(tmp_path).is_current(tmp_path)


def test_the_table_has_a_line_for_every_rule() -> None:
    lines = generate.rules_table(catalogue()).strip().splitlines()
    assert len(lines) == 2 + len(catalogue())
    assert f"| TT401 | [fp32-matmul-no-tf32]({PAGE.as_posix()}) | Float32 matrix product without TF32 |" in lines


def test_a_page_names_the_rule_its_code_category_and_needs() -> None:
    lines = page_text(Fp32MatmulNoTf32).splitlines()
    assert "tb_tidy_plugin/rules/precision/fp32_matmul_no_tf32.py" in lines[0]
    assert lines[2] == "# Float32 matrix product without TF32"
    assert lines[6:10] == [
        "| Rule | `fp32-matmul-no-tf32` |",
        "| Code | TT401 |",
        "| Category | precision |",
        "| Needs | input shapes (`record_shapes=True`), device activity (`ProfilerActivity.CUDA`) |",
    ]


def test_descriptions_in_the_schema_are_not_indented() -> None:
    definitions = json.loads(report_schema())["definitions"]
    described = [definition["description"] for definition in definitions.values() if "description" in definition]
    assert described
    for text in described:
        after_the_first = [line for line in text.splitlines()[1:] if line]
        assert not after_the_first or any(not line.startswith(" ") for line in after_the_first), text


def test_a_leftover_is_current_once_it_is_gone(tmp_path: Path) -> None:
    leftover = GeneratedFile(Path("gone.md"), None)
    (tmp_path / "gone.md").write_text("still here")
    assert not leftover.is_current(tmp_path)
    leftover.write(tmp_path)
    assert leftover.is_current(tmp_path)


def test_each_path_is_generated_once() -> None:
    paths = [file.path for file in generate.generated_files()]
    assert len(paths) == len(set(paths))
