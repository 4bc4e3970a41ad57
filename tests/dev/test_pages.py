"""The documentation: every page can be reached from the README by links, and what the API page shows is true."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path

import msgspec

import tb_tidy_plugin
from tb_tidy_plugin.capture import tidy_profile
from tb_tidy_plugin.report.model import Finding, ProfileReport, Report, RunReport
from tests.support.recordings import ROOT

LINK = re.compile(r"\]\((?!https?:)([^)#\s]+\.md)(?:#[^)]*)?\)")
API = (ROOT / "docs" / "api.md").read_text("utf-8")


def reached_from(page: Path) -> set[Path]:
    """All pages that links lead to, one after the other."""
    reached, waiting = {page}, [page]
    while waiting:
        at = waiting.pop()
        for target in LINK.findall(at.read_text("utf-8")):
            linked = Path(os.path.normpath(at.parent / target))
            if linked.is_file() and linked not in reached:
                reached.add(linked)
                waiting.append(linked)
    return reached


def test_every_page_is_reached_from_the_readme() -> None:
    pages = {*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"}
    assert {str(page.relative_to(ROOT)) for page in pages - reached_from(ROOT / "README.md")} == set()


def test_a_page_without_links_to_it_is_found(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("[a](docs/a.md#part) [elsewhere](https://example.org/b.md)\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("[back](../README.md)\n")
    (tmp_path / "docs" / "b.md").write_text("alone\n")
    assert {page.name for page in reached_from(tmp_path / "README.md")} == {"README.md", "a.md"}


def arguments_on_page(function: str) -> set[str]:
    """The arguments in the table below the heading of a function."""
    section = re.split(r"^## ", API, flags=re.MULTILINE)
    (text,) = [each for each in section if each.startswith(f"`{function}`")]
    return set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE))))


def test_the_page_of_the_api_names_all_arguments() -> None:
    """And no others."""
    for name, function in (("analyze", tb_tidy_plugin.analyze), ("show", tb_tidy_plugin.show)):
        arguments = set(inspect.signature(function).parameters)
        if name == "show":
            arguments -= set(inspect.signature(tb_tidy_plugin.analyze).parameters)
        assert arguments_on_page(name) == arguments
    assert arguments_on_page("tidy_profile") == set(inspect.signature(tidy_profile).parameters)


def test_the_page_of_the_api_names_fields_that_exist() -> None:
    for model in (Report, RunReport, ProfileReport, Finding):
        (row,) = re.findall(rf"^\| `{model.__name__}` \| (.*) \|$", API, re.MULTILINE)
        named = set(re.findall(r"`(\w+)`", row))
        assert named
        assert named <= {field.name for field in msgspec.structs.fields(model)}


def test_all_public_names_are_on_the_page() -> None:
    assert all(f"`{name}`" in API for name in tb_tidy_plugin.__all__)
    assert all(hasattr(tb_tidy_plugin, name) for name in tb_tidy_plugin.__all__)
