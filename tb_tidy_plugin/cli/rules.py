"""`tb-tidy rules`: the catalogue, and the user's own rules."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table

from tb_tidy_plugin.cli.configured import with_configuration
from tb_tidy_plugin.configuration.checks import known_rules
from tb_tidy_plugin.configuration.files import Configuration
from tb_tidy_plugin.rulekit.page import page_of


@click.command()
@with_configuration
def rules(configuration: Configuration) -> None:
    """List all rules."""
    table = Table("Code", "Rule", "Category", "Needs", "Finds", box=None, pad_edge=False)
    for rule in known_rules(configuration):
        table.add_row(rule.code, rule.name(), rule.category(), ", ".join(sorted(rule.needs)), page_of(rule).title)
    Console().print(table)
