"""The pages of rules."""

from __future__ import annotations

from tb_tidy_plugin.ask import arguments
from tb_tidy_plugin.ask.folder import Folder
from tb_tidy_plugin.ask.pages import WholeAnswer
from tb_tidy_plugin.ask.reports import PART_COLUMNS, part_row
from tb_tidy_plugin.rulekit.page import page_of
from tb_tidy_plugin.rulekit.thresholds import shown_name, thresholds_of
from tb_tidy_plugin.words.errors import NotFoundError


def explain_answer(folder: Folder, asked: arguments.ExplainQuestion) -> WholeAnswer:
    """The page of one of the rules that are checked."""
    called = {name: type(rule) for rule in folder.job.rules for name in (rule.name(), rule.code.lower())}
    rule = called.get(asked.rule.lower())
    if rule is None:
        raise NotFoundError("No such rule is checked.", "`findings` names rules, `tb-tidy rules` lists all.")
    page = page_of(rule)
    head = {"rule": rule.name(), "code": rule.code, "category": rule.category(), "title": page.title}
    thresholds = [f"{shown_name(name)} = {each.default}: {each.reason}" for name, each in thresholds_of(rule).items()]
    parts = [*page.sections.items(), *(("Threshold", text) for text in thresholds)]
    return WholeAnswer(head | {"needs": sorted(rule.needs)}, PART_COLUMNS, [part_row(*part) for part in parts])
