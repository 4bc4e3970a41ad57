"""`tb-tidy doctor`: installed and missing parts, how to get them, and whether a logdir can be read."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator

import click
import msgspec

from tb_tidy_plugin import __version__
from tb_tidy_plugin.cli.examined import Check, of_analysis, of_cache, of_logdir, of_package, of_plugin, of_tensorboard
from tb_tidy_plugin.cli.exit_codes import code_of
from tb_tidy_plugin.cli.places import PLACE, with_links
from tb_tidy_plugin.trace.remote import AnyPath


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """All checks, as `--format json` prints them; `ok` is true if nothing is wrong."""

    schema: int = 1
    version: str
    python: str
    platform: str
    ok: bool
    checks: list[Check]


@click.command(short_help="Show what is installed and what is missing.")
@click.argument("logdir", type=PLACE, required=False)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@with_links
def doctor(logdir: AnyPath | None, form: str, follow_links: bool) -> None:
    """Show what is installed and what is missing; with a LOGDIR, also whether its traces can be read.

    Everything else works without the optional parts; each line says what the part would add. The exit code is 1 if
    something is wrong and must be fixed.
    """
    checks = [*of_package(), of_analysis(), *of_plugin(), *of_tensorboard(), of_cache()]
    checks += [of_logdir(logdir, follow_links=follow_links)] if logdir is not None else []
    found = Examination(
        version=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        ok=all(check.state != "wrong" for check in checks),
        checks=checks,
    )
    for line in _lines(found) if form == "text" else [msgspec.json.format(msgspec.json.encode(found)).decode()]:
        click.echo(line)
    sys.exit(code_of(found=not found.ok, unread=False))


def _lines(found: Examination) -> Iterator[str]:
    yield f"tb-tidy {found.version}, Python {found.python} on {found.platform}"
    for check in found.checks:
        yield f"{'WRONG: ' if check.state == 'wrong' else ''}{check.text}"
        if check.advice:
            yield f"  {check.advice}"
    wrong = sum(check.state == "wrong" for check in found.checks)
    yield "Nothing is wrong." if found.ok else f"{wrong} {'thing is' if wrong == 1 else 'things are'} wrong."
