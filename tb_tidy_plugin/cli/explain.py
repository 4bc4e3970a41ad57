"""`tb-tidy explain`: the page of one rule."""

from __future__ import annotations

import click
import msgspec

from tb_tidy_plugin.cli.configured import rule_names, with_configuration
from tb_tidy_plugin.cli.rules import RuleRow, rule_row
from tb_tidy_plugin.configuration.checks import known_rules, rules_called
from tb_tidy_plugin.configuration.files import Configuration
from tb_tidy_plugin.report.model import SCHEMA_VERSION
from tb_tidy_plugin.rulekit.page import page_of
from tb_tidy_plugin.rulekit.rule import AnyRule


class ExplainedRule(RuleRow, frozen=True, kw_only=True):
    """`tb-tidy explain RULE --format json`: the rule, and the sections of its page as Markdown."""

    schema: int = SCHEMA_VERSION
    sections: dict[str, str]


@click.command(short_help="Show the page of a rule.")
@click.argument("rule", metavar="RULE", shell_complete=rule_names)
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
@with_configuration
def explain(configuration: Configuration, rule: str, form: str) -> None:
    """Show the page of RULE: what it finds, why it is slow, how to fix it. RULE is a name or a code.

    JSON is the rule as `tb-tidy rules --format json` lists it, with `schema` and `sections`: Markdown by heading.
    """
    (kind,) = rules_called([rule], known_rules(configuration))
    if form == "json":
        row = msgspec.structs.asdict(rule_row(kind))
        explained = ExplainedRule(**row, sections=page_of(kind).sections)
        click.echo(msgspec.json.format(msgspec.json.encode(explained), indent=2).decode())
    elif form == "markdown":
        click.echo(_page(kind))
    else:
        _say(_page(kind))


def _page(kind: type[AnyRule]) -> str:
    """The page as Markdown."""
    page = page_of(kind)
    needs = ", ".join(sorted(kind.needs)) or "nothing but operators"
    parts = [f"# {page.title}", f"`{kind.name()}` · {kind.code} · {kind.category()} · needs {needs}"]
    parts += [f"## {heading}\n\n{text}" for heading, text in page.sections.items()]
    if thresholds := [f"- `{each.key} = {each.default}`: {each.reason}" for each in rule_row(kind).thresholds]:
        place = f"Set them below `[tool.tb-tidy.thresholds.{kind.name()}]`."
        parts += ["## Thresholds", place, "\n".join(thresholds)]
    return "\n\n".join(parts)


def _say(page: str) -> None:
    from rich.markdown import Markdown

    from tb_tidy_plugin.cli.printed import say

    say(Markdown(page))
