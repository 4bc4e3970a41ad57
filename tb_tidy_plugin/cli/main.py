"""`tb-tidy`: the group of all commands, and how errors of the user are shown."""

from __future__ import annotations

import logging
import sys
from importlib import import_module

import click

from tb_tidy_plugin import __version__, allowance
from tb_tidy_plugin.errors import TidyError
from tb_tidy_plugin.visible import log_called, visible

NOTHING_READ = 2
"""Exit code when nothing could be read or found."""

COMMANDS = (
    "annotate",
    "bench",
    "cache",
    "check",
    "compare",
    "doctor",
    "explain",
    "merge-device-events",
    "rules",
    "summary",
)
"""Each is a function in a module of its name."""


class Commands(click.Group):
    """Imports a command when it is asked for: most of a short command's time would go into importing the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        try:
            command: click.Command = getattr(import_module(f"tb_tidy_plugin.cli.{name}"), name)
        except ModuleNotFoundError as missing:
            error = f"The package {missing.name}, which TorchTidy needs, is not installed."
            advice = "`pip install tb-tidy-plugin` installs what is missing; in a checkout, `pip install -e .`."
            raise TidyError(error, advice) from missing
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tb-tidy")
def commands() -> None:
    """Name the performance anti-patterns in recorded PyTorch profiles."""


class _OnStderr(logging.Handler):
    """Shows warnings beside what a command prints."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"tb-tidy: {record.getMessage()}", err=True)


def main() -> None:
    """Runs the command line; what a user can mend is shown as a message, not as a traceback."""
    log, shown = log_called("tb_tidy_plugin"), _OnStderr()
    log.addHandler(shown)
    allowance.enforce(raising=True)
    try:
        commands()
    except TidyError as error:
        click.echo(f"tb-tidy: {visible(error.error)}\n{visible(error.advice)}", err=True)
        sys.exit(NOTHING_READ)
    finally:
        log.removeHandler(shown)
