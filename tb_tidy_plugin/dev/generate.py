"""The generated files: their content, and the check that they are current.

They are made from the report's model, the web API's answers, the rules' pages and PyTorch's schema, and are checked
in, so that a change of any of these shows in review. The page's TypeScript types follow from `docs/api.schema.json`
(see the Makefile).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tb_tidy_plugin.ask.skill import SKILL, skill_text
from tb_tidy_plugin.dev import operator_table
from tb_tidy_plugin.dev.openapi import openapi
from tb_tidy_plugin.dev.schemas import api_schema, report_schema
from tb_tidy_plugin.rulekit import AnyRule
from tb_tidy_plugin.rulekit.page import page_of
from tb_tidy_plugin.rulekit.thresholds import shown_name, thresholds_of
from tb_tidy_plugin.rules import catalogue, source_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = Path("docs", "rules")
README = Path("README.md")
START, END = "<!-- rules:start -->", "<!-- rules:end -->"

_NEEDS = {
    "stacks": "Python stacks (`with_stack=True`)",
    "shapes": "input shapes (`record_shapes=True`)",
    "memory": "memory events (`profile_memory=True`)",
    "device": "device activity (`ProfilerActivity.CUDA`)",
    "steps": "steps (a `schedule`, and `prof.step()`)",
}
"""Data that a rule needs, with the profiler option that records it."""


@dataclass(frozen=True, slots=True)
class GeneratedFile:
    """One generated file: its path, relative to the repository, and its content; None for a leftover to delete."""

    path: Path
    text: str | None

    def is_current(self, root: Path) -> bool:
        """True if the file below `root` has exactly this content."""
        path = root / self.path
        return path.read_text(encoding="utf-8") == self.text if path.is_file() else self.text is None

    def write(self, root: Path) -> None:
        """Brings the file below `root` to this state."""
        path = root / self.path
        if self.text is None:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text, encoding="utf-8", newline="\n")


class ReadmeError(Exception):
    """The README cannot take the table of rules; the message says why."""


def generated_files(root: Path = ROOT) -> Iterator[GeneratedFile]:
    """All generated files except the README, which is only partly generated; the operators' only with torch."""
    rules = catalogue()
    yield GeneratedFile(Path("docs", "report.schema.json"), report_schema())
    yield GeneratedFile(Path("docs", "api.schema.json"), api_schema())
    yield GeneratedFile(Path("docs", "openapi.json"), openapi())
    yield GeneratedFile(Path("docs", "agents.md"), _skill_page())
    if not operator_table.left_out():
        yield GeneratedFile(operator_table.TABLE, operator_table.table_text())
    pages = {PAGES / f"{rule.name()}.md": page_text(rule) for rule in rules}
    for path, text in pages.items():
        yield GeneratedFile(path, text)
    for path in sorted((root / PAGES).glob("*.md")):
        if path.relative_to(root) not in pages:
            yield GeneratedFile(path.relative_to(root), None)


def readme(root: Path = ROOT) -> GeneratedFile:
    """The README with the current table of rules between its marks.

    Raises:
        ReadmeError: there is no README, or no marks in it.
    """
    path = root / README
    if not path.is_file():
        raise ReadmeError(f"{README} is missing, so its table of rules was left out.")
    before, start, rest = path.read_text(encoding="utf-8").partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ReadmeError(f"{README} has no lines `{START}` and `{END}`, in this order, around its table of rules.")
    return GeneratedFile(README, f"{before}{START}\n{rules_table(catalogue())}{END}{after}")


def page_text(rule: type[AnyRule]) -> str:
    """A rule's page as a Markdown file of its own."""
    page = page_of(rule)
    needs = ", ".join(text for need, text in _NEEDS.items() if need in rule.needs) or "nothing but operators"
    source = source_of(rule).relative_to(ROOT).as_posix()
    facts = {"Rule": f"`{rule.name()}`", "Code": rule.code, "Category": rule.category(), "Needs": needs}
    table = "\n".join(["| | |", "|---|---|", *(f"| {label} | {value} |" for label, value in facts.items())])
    sections = [f"## {heading}\n\n{text}" for heading, text in page.sections.items()]
    sections.append(f"## Thresholds\n\n{thresholds_table(rule)}")
    mark = f"<!-- Generated from {source}; do not edit; run `make generate`. -->"
    return "\n\n".join([mark, f"# {page.title}", table, *sections]) + "\n"


def _skill_page() -> str:
    """The skill file as a page of the docs, without the parts for assistants only."""
    mark = f"<!-- Generated from {SKILL.relative_to(ROOT).as_posix()}; do not edit; run `make generate`. -->"
    return f"{mark}\n\n# {skill_text().partition(chr(10) + '# ')[2]}"


def thresholds_table(rule: type[AnyRule]) -> str:
    """The numbers that users may set, with their defaults and reasons."""
    lines = [
        f"| `{shown_name(name)}` | {threshold.default} | {threshold.reason} |"
        for name, threshold in thresholds_of(rule).items()
    ]
    head = f"Set them in the [configuration](../configuration.md), below `[tool.tb-tidy.thresholds.{rule.name()}]`."
    return "\n".join([head, "", "| name | default | why |", "|---|---|---|", *lines])


def rules_table(rules: Sequence[type[AnyRule]]) -> str:
    """The README's table: one line per rule, by code."""
    lines = [
        f"| {rule.code} | [{rule.name()}]({(PAGES / rule.name()).as_posix()}.md) | {page_of(rule).title} |"
        for rule in rules
    ]
    return "\n".join(["", "| code | rule | what it finds |", "|---|---|---|", *lines, "", ""])
