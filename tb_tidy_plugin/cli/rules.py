"""`tb-tidy rules`: the catalogue, and the user's own rules."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
import msgspec

from tb_tidy_plugin.cli.configured import with_configuration
from tb_tidy_plugin.cli.printed import say_aligned
from tb_tidy_plugin.configuration.checks import known_rules
from tb_tidy_plugin.configuration.files import Configuration
from tb_tidy_plugin.report.model import SCHEMA_VERSION
from tb_tidy_plugin.rulekit.page import page_of
from tb_tidy_plugin.rulekit.rule import AnyRule
from tb_tidy_plugin.rulekit.thresholds import shown_name, thresholds_of

HEADINGS = ("Code", "Rule", "Category", "Needs", "Finds")


class ThresholdRow(msgspec.Struct, frozen=True):
    """A number of a rule that users may set, as its key in the configuration."""

    key: str
    default: float
    reason: str


class RuleRow(msgspec.Struct, frozen=True, kw_only=True):
    """A rule in the JSON of `rules` and `explain`.

    Attributes:
        needs: what a recording must contain for it.
        finds: one sentence, without its full stop.
        thresholds: its numbers that users may set.
    """

    code: str
    rule: str
    category: str
    needs: list[str]
    finds: str
    thresholds: list[ThresholdRow]


class RuleList(msgspec.Struct, frozen=True):
    """`tb-tidy rules --format json`."""

    schema: int
    rules: list[RuleRow]


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@with_configuration
def rules(configuration: Configuration, form: str) -> None:
    """List all rules, also your own.

    Without a terminal, each rule is one line of five columns, separated by two spaces or more. JSON is `{"schema",
    "rules": [{"code", "rule", "category", "needs", "finds", "thresholds": [{"key", "default", "reason"}]}]}`.
    """
    rows = [rule_row(rule) for rule in known_rules(configuration)]
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(RuleList(SCHEMA_VERSION, rows)), indent=2).decode())
    elif sys.stdout.isatty():
        _say_table(rows)
    else:
        say_aligned([HEADINGS, *map(_cells, rows)])


def rule_row(rule: type[AnyRule]) -> RuleRow:
    """The rule as a row of the list."""
    thresholds = [
        ThresholdRow(shown_name(name), each.default, f"{each.reason}.") for name, each in thresholds_of(rule).items()
    ]
    return RuleRow(
        code=rule.code,
        rule=rule.name(),
        category=rule.category(),
        needs=sorted(rule.needs),
        finds=page_of(rule).title,
        thresholds=thresholds,
    )


def _cells(row: RuleRow) -> Sequence[str]:
    return row.code, row.rule, row.category, ",".join(row.needs) or "-", row.finds


def _say_table(rows: Sequence[RuleRow]) -> None:
    """Prints the rules on a terminal: names are whole, however narrow it is, and the last column takes the rest."""
    from rich.table import Table

    from tb_tidy_plugin.cli.printed import say

    table = Table(box=None, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold", no_wrap=heading in {"Code", "Rule"})
    for row in rows:
        table.add_row(*_cells(row))
    say(table)
