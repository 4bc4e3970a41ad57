"""The worst forms that docs/style.md names stay out of docs, texts and docstrings."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tb_tidy_plugin"
STYLE = ROOT / "docs" / "style.md"  # it quotes such forms
WORST = (
    "Counted are",
    "Counted is",
    "Expected are",
    "Steps that are not marked",
    "do not hold exactly one",
    "do not hold one",
    "is there no more",
    "nobody would act on it",
    "nothing is won",
    "told by",
)
OPENINGS = re.compile(r"(?:What|Which|Whether|How|Where|Whose|When|Asked|Counted|Told)\b")


@cache
def texts() -> dict[str, str]:
    """Pages and sources, with one space between words."""
    pages = {*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/rules/*.md")} - {STYLE}
    return {
        str(path.relative_to(ROOT)): " ".join(path.read_text("utf-8").split())
        for path in sorted({*pages, *PACKAGE.rglob("*.py")})
    }


@pytest.mark.parametrize("form", WORST)
def test_worst_forms(form: str) -> None:
    assert [place for place, text in texts().items() if form in text] == []


def test_module_docstrings_open_with_the_noun() -> None:
    sources = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    opened = {place: ast.get_docstring(ast.parse(text)) or "" for place, text in sources.items()}
    assert {place: text for place, text in opened.items() if OPENINGS.match(text)} == {}
