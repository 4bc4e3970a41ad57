"""`tb-tidy ask`: one question of a program or an assistant, and its answer as JSON."""

from __future__ import annotations

import sys

import click
import msgspec

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.ask.questions import (
    LONGEST_QUESTION,
    QUESTION_KINDS,
    WRITING,
    answer,
    description_of,
    error,
    schema_of,
)
from tb_tidy_plugin.cli.asked import folder_at, with_apply
from tb_tidy_plugin.cli.exit_codes import DONE, NOT_READ
from tb_tidy_plugin.cli.jobs import with_job
from tb_tidy_plugin.cli.places import PLACE
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.words.errors import TidyError


@click.command(short_help="Answer one question as compact JSON, for programs and assistants.")
@click.argument("question", required=False, metavar="JSON")
@click.option(
    "--path", type=PLACE, default=".", show_default=True, help="Answer only about recordings below this path."
)
@click.option("--list", "lists", is_flag=True, help="Print all questions with the schemas of their arguments.")
@with_apply
@with_job
def ask(job: Job, question: str | None, path: AnyPath, lists: bool, allow_apply: bool) -> None:
    """Answer a question such as `{"question": "findings"}`; without JSON it is read from stdin.

    The answer is one line of JSON; so is an error: `{"error", "advice"}`. `tb-tidy skill` explains the order of
    questions.

    Exit codes: 0 answered, 2 not answered; the JSON says why.
    """
    if lists:
        known = [
            {
                "question": name,
                "description": description_of(name),
                "arguments": schema_of(name),
                "needs": ["--allow-apply"] if name in WRITING else [],
            }
            for name in QUESTION_KINDS
        ]
        click.echo(msgspec.json.encode(known))
        sys.exit(DONE)
    try:
        text = question if question is not None else sys.stdin.read(LONGEST_QUESTION + 1)
        said = answer(text, folder_at(path, job, allow_apply=allow_apply))
    except TidyError as problem:
        click.echo(error(problem))
        sys.exit(NOT_READ)
    click.echo(said)
    sys.exit(DONE)
