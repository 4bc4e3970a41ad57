"""`tb-tidy explain`: the page of one rule."""

from __future__ import annotations

import click
from rich.console import Console
from rich.markdown import Markdown

from tb_tidy_plugin.cli.configured import with_configuration
from tb_tidy_plugin.configuration.checks import known_rules, rules_called
from tb_tidy_plugin.configuration.files import Configuration
from tb_tidy_plugin.rulekit.page import page_of
from tb_tidy_plugin.rulekit.thresholds import shown_name, thresholds_of


@click.command(short_help="Show the page of a rule.")
@click.argument("rule", metavar="RULE")
@with_configuration
def explain(configuration: Configuration, rule: str) -> None:
    """Show the page of RULE: what it finds, why it is slow, how to fix it. RULE is a name or a code."""
    (kind,) = rules_called([rule], known_rules(configuration))
    page = page_of(kind)
    needs = ", ".join(sorted(kind.needs)) or "nothing but operators"
    parts = [f"# {page.title}", f"`{kind.name()}` · {kind.code} · {kind.category()} · needs {needs}"]
    parts += [f"## {heading}\n\n{text}" for heading, text in page.sections.items()]
    thresholds = [
        f"- `{shown_name(name)} = {threshold.default}`: {threshold.reason}."
        for name, threshold in thresholds_of(kind).items()
    ]
    parts += ["## Thresholds", f"Set them below `[tool.tb-tidy.thresholds.{kind.name()}]`.", "\n".join(thresholds)]
    Console().print(Markdown("\n\n".join(parts)))
