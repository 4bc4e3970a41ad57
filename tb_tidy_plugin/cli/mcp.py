"""`tb-tidy mcp`: the questions for assistants, over the Model Context Protocol."""

from __future__ import annotations

from importlib.util import find_spec

import click

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.cli.asked import folder_at, with_apply
from tb_tidy_plugin.cli.jobs import with_job
from tb_tidy_plugin.cli.places import PLACE
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.words.errors import TidyError


@click.command(short_help="Answer an assistant's questions over MCP.")
@click.argument("path", type=PLACE, default=".")
@with_apply
@with_job
def mcp(job: Job, path: AnyPath, allow_apply: bool) -> None:
    """Answer an assistant's questions about the recordings below PATH (default: the current folder).

    The server speaks the Model Context Protocol over stdin and stdout until its input ends. It only reads, unless
    `--allow-apply` is given.

    Exit codes: 0 done, 2 nothing to serve.
    """
    if find_spec("mcp") is None:
        raise TidyError("`tb-tidy mcp` needs the MCP SDK.", "Run `pip install 'tb-tidy-plugin[mcp]'`.")
    from tb_tidy_plugin.ask.server import serve_over_stdio

    serve_over_stdio(folder_at(path, job, allow_apply=allow_apply))
