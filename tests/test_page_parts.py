"""Parts of pages that programs write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.page_parts import write_part


def test_a_part_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- one:start -->\n\nold\n\n<!-- one:end -->\nafter\n", encoding="utf-8")
    for text in ("new\n", "new"):
        write_part(page, "one", text)
        assert page.read_text(encoding="utf-8") == "before\n<!-- one:start -->\n\nnew\n\n<!-- one:end -->\nafter\n"


@pytest.mark.parametrize(
    "text", ["no marks", "<!-- one:start --> without an end", "<!-- one:end --> <!-- one:start -->"]
)
def test_a_page_without_the_part_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="lacks <!-- one:start -->"):
        write_part(page, "one", "new")
    assert page.read_text(encoding="utf-8") == text
