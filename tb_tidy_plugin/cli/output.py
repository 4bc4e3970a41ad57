"""Output of commands: documents in the requested format, and files written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from tb_tidy_plugin.render.document import Document, Form
from tb_tidy_plugin.report.model import Problem
from tb_tidy_plugin.system.files import write_whole as replaced
from tb_tidy_plugin.words.errors import TidyError
from tb_tidy_plugin.words.visible import visible

STANDARD = "-"
"""Stdin as a path to read, stdout as one to write."""


def write_output(path: Path, text: str) -> None:
    """Writes `text` beside `path` and renames it, so that nobody reads a part of it; writes pipes and devices directly.

    `-` is stdout, as for other commands.

    Raises:
        TidyError: `path` cannot be written; existing content is unchanged.
    """
    if str(path) == STANDARD:
        click.echo(text, nl=False)
        return
    try:
        if path.exists() and not path.is_file():  # also `/dev/stdout`, a link to what is not a path
            path.write_bytes(text.encode())
        else:
            replaced(_behind_links(path), text.encode())  # a link stays a link
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise TidyError(f"`{path}` could not be written: {reason}.", "Choose another path with `-o`.") from None


def say_problems(problems: Iterable[Problem]) -> None:
    """Prints traces that could not be read to stderr, since stdout may be JSON."""
    for problem in problems:
        click.echo(f"{visible(problem.path)}: {visible(problem.error)}\n{visible(problem.advice)}", err=True)


def _behind_links(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path, strict=True))
    except FileNotFoundError:  # a new file, or a broken link
        return Path(os.path.realpath(path))


def as_text(document: Document, form: Form) -> str:
    """The document as the text of a file. Imports only the printer that it needs."""
    if form == "markdown":
        from tb_tidy_plugin.render.markdown import to_markdown

        return to_markdown(document)
    if form == "html":
        from tb_tidy_plugin.render.html import to_html

        return to_html(document)
    from tb_tidy_plugin.cli.printed import as_lines
    from tb_tidy_plugin.render.terminal import to_text

    return as_lines(to_text(document))


def print_document(document: Document) -> None:
    """Prints the document on the terminal."""
    from tb_tidy_plugin.cli.printed import say
    from tb_tidy_plugin.render.terminal import to_text

    say(to_text(document))
