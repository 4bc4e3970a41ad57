"""`tb-tidy skill`: the skill file for assistants."""

from __future__ import annotations

import click

from tb_tidy_plugin.ask.skill import skill_text


@click.command(short_help="Print instructions for assistants that ask about recordings.")
def skill() -> None:
    """Print the skill file for assistants, which explains the order of the questions of `ask` and `mcp`."""
    click.echo(skill_text(), nl=False)
