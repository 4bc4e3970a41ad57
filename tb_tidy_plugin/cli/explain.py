"""`tb-tidy explain`: the page of one rule."""

from __future__ import annotations

import click
from rich.console import Console
from rich.markdown import Markdown

from tb_tidy_plugin.cli.rules import chosen_rules
from tb_tidy_plugin.rulekit.page import page_of


@click.command()
@click.argument("rule", metavar="RULE")
def explain(rule: str) -> None:
    """Show the page of RULE: what it finds, why it is slow, how to fix it. RULE is a name or a code."""
    (kind,) = chosen_rules([rule])
    page = page_of(kind)
    needs = ", ".join(sorted(kind.needs)) or "nothing but operators"
    parts = [f"# {page.title}", f"`{kind.name()}` · {kind.code} · {kind.category()} · needs {needs}"]
    parts += [f"## {heading}\n\n{text}" for heading, text in page.sections.items()]
    Console().print(Markdown("\n\n".join(parts)))
