"""`tb-tidy rules`: the catalogue."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table

from tb_tidy_plugin.errors import NotFoundError
from tb_tidy_plugin.rulekit import Rule
from tb_tidy_plugin.rulekit.page import page_of
from tb_tidy_plugin.rules import all_rules


@click.command()
def rules() -> None:
    """List all rules."""
    table = Table("Code", "Rule", "Category", "Needs", "Finds", box=None, pad_edge=False)
    for rule in all_rules():
        table.add_row(rule.code, rule.name(), rule.category(), ", ".join(sorted(rule.needs)), page_of(rule).title)
    Console().print(table)


def chosen_rules(names: Sequence[str]) -> tuple[type[Rule], ...]:
    """The rules with these names or codes; all where no name is given.

    Raises:
        NotFoundError: there is no such rule; says which name is near.
    """
    if not names:
        return all_rules()
    known = {rule.name(): rule for rule in all_rules()}
    by_code = {rule.code.lower(): rule for rule in all_rules()}
    chosen = []
    for name in names:
        rule = known.get(name) or by_code.get(name.lower())
        if rule is None:
            near = difflib.get_close_matches(name, known, 1)
            advice = f"Did you mean `{near[0]}`?" if near else "`tb-tidy rules` lists all rules."
            raise NotFoundError(f"There is no rule `{name}`.", advice)
        chosen.append(rule)
    return tuple(dict.fromkeys(chosen))
