"""`tb-tidy`: the group of all commands, and how errors of the user are shown."""

from __future__ import annotations

import sys

import click

from tb_tidy_plugin import __version__
from tb_tidy_plugin.cli.annotate import annotate
from tb_tidy_plugin.cli.bench import bench
from tb_tidy_plugin.cli.check import check
from tb_tidy_plugin.cli.compare import compare
from tb_tidy_plugin.cli.doctor import doctor
from tb_tidy_plugin.cli.explain import explain
from tb_tidy_plugin.cli.merge_device_events import merge_device_events
from tb_tidy_plugin.cli.rules import rules
from tb_tidy_plugin.cli.summary import summary
from tb_tidy_plugin.errors import TidyError

NOTHING_READ = 2
"""Exit code when nothing could be read or found."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tb-tidy")
def commands() -> None:
    """Name the performance anti-patterns in recorded PyTorch profiles."""


commands.add_command(annotate)
commands.add_command(bench)
commands.add_command(check)
commands.add_command(compare)
commands.add_command(doctor)
commands.add_command(explain)
commands.add_command(merge_device_events)
commands.add_command(rules)
commands.add_command(summary)


def main() -> None:
    """Runs the command line; what a user can mend is shown as a message, not as a traceback."""
    try:
        commands()
    except TidyError as error:
        click.echo(f"tb-tidy: {error.error}\n{error.advice}", err=True)
        sys.exit(NOTHING_READ)
