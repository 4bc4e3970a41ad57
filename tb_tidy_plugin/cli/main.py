"""`tb-tidy`: the group of all commands, and the display of user errors."""

from __future__ import annotations

import atexit
import io
import logging
import os
import sys
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

from tb_tidy_plugin import __version__
from tb_tidy_plugin.cli.exit_codes import INTERRUPTED, NOT_READ, READER_GONE
from tb_tidy_plugin.system import allocator, allowance
from tb_tidy_plugin.system.collector import held_off
from tb_tidy_plugin.words.errors import TidyError
from tb_tidy_plugin.words.visible import log_called, visible

COMMANDS = (
    "annotate",
    "ask",
    "bench",
    "cache",
    "check",
    "compare",
    "doctor",
    "explain",
    "fix",
    "mcp",
    "merge-device-events",
    "record",
    "rules",
    "serve",
    "skill",
    "summary",
    "verify",
)
"""Each is a function in the module of the same name."""


class Commands(click.Group):
    """Imports a command on first use: importing the others would take most of a short command's time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        with held_off():
            command: click.Command = getattr(import_module(f"tb_tidy_plugin.cli.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not ctx.resilient_parsing and args[0] not in COMMANDS and args[0][:1].isalnum():
            from tb_tidy_plugin.configuration.files import near

            meant = near(args[0].lower().replace("_", "-"), COMMANDS) or "`tb-tidy --help` lists all commands."
            raise TidyError(f"There is no command `{args[0]}`.", meant)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would exit with 1
            raise _ReaderGoneError from None


class _ReaderGoneError(Exception):
    """The process that reads the output has ended, such as `head`."""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tb-tidy")
def commands() -> None:
    """Name the performance anti-patterns in recorded PyTorch profiles."""


class _OnStderr(logging.Handler):
    """Prints warnings to stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"tb-tidy: {record.getMessage()}", err=True)


def script() -> None:
    """The console script: `main` in a process of its own, whose memory the system frees at once.

    Python would first free each object. That takes 15 ms, or 30 ms after a trace of 500 MB.
    """
    code = 0
    try:
        main()
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        code = end.code
    if all(thread.daemon for thread in threading.enumerate() if thread is not threading.current_thread()):
        atexit._run_exitfuncs()  # noqa: SLF001 - what Python itself would call
        with suppress(OSError, ValueError):  # Python tries again, and reports it
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    sys.exit(code)


def main() -> None:
    """Runs the command line; shows errors that a user can fix as a message, not as a traceback."""
    log, shown = log_called("tb_tidy_plugin"), _OnStderr()
    log.addHandler(shown)
    allowance.enforce(raising=True)
    allocator.spare_memory()
    _open_streams()
    code = 0
    try:
        code = commands(standalone_mode=False)  # an exit code only after an option such as --help
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except TidyError as error:
        code = _end(error)
    except (click.Abort, KeyboardInterrupt) as end:
        if isinstance(end.__cause__, EOFError):  # click takes it for Ctrl-D
            _end_unexpectedly()
        with suppress(OSError):
            click.echo("Interrupted.", err=True)
        code = INTERRUPTED
    except _ReaderGoneError:
        _say_no_more()
        code = READER_GONE
    except ModuleNotFoundError as missing:  # at any time, since commands import lazily
        advice = "`pip install tb-tidy-plugin` installs what is missing; in a checkout, `pip install -e .`."
        code = _end(TidyError(f"The package {missing.name}, which TorchTidy needs, is not installed.", advice))
    except OSError as problem:
        if problem.filename is not None:  # of a file, and not of an open stream: a bug of ours
            _end_unexpectedly()
        reason = problem.strerror or type(problem).__name__
        code = _end(TidyError(f"The output could not be written: {reason}.", "Free disk space, or write elsewhere."))
    except Exception:  # noqa: BLE001 - a bug; Python's own exit code for it, 1, means that `--fail-on` was reached
        _end_unexpectedly()
    finally:
        log.removeHandler(shown)
    sys.exit(code or 0)


def _end_unexpectedly() -> NoReturn:
    """Ends with the traceback of the exception that is being handled."""
    with suppress(OSError):
        traceback.print_exc()
    sys.exit(NOT_READ)


def _open_streams() -> None:
    """Makes stdin, stdout and stderr UTF-8, except on a terminal, which shows `?` for what its encoding lacks.

    Pipes and files have another encoding by default on Windows, and everywhere under `PYTHONIOENCODING`. JSON, Markdown
    and diffs are UTF-8 for whoever reads them, and the characters of a report are in few encodings.
    """
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # the parent process has closed it
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open until the end
        elif isinstance(stream, io.TextIOWrapper):
            with suppress(io.UnsupportedOperation):  # something has read from it before
                stream.reconfigure(encoding=stream.encoding if stream.isatty() else "utf-8", errors="replace")


def _end(error: TidyError) -> int:
    """Prints the error, if possible; returns the exit code."""
    with suppress(OSError):
        said = [f"    {visible(line)}" for line in error.said]
        click.echo("\n".join([f"tb-tidy: {visible(error.error)}", visible(error.advice), *said]), err=True)
    _say_no_more()
    return NOT_READ


def _say_no_more() -> None:
    """Sends output that cannot be written nowhere; it would fail again when Python ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with Path(os.devnull).open("wb") as nothing:
                os.dup2(nothing.fileno(), stream.fileno())
