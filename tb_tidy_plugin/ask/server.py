"""The questions as tools of a server of the Model Context Protocol, over stdin and stdout.

Needs the extra `mcp`, which no other module imports.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import anyio
import msgspec
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from tb_tidy_plugin import __version__
from tb_tidy_plugin.ask.folder import Folder
from tb_tidy_plugin.ask.questions import QUESTION_KINDS, WRITING, answer, description_of, error, schema_of
from tb_tidy_plugin.ask.skill import in_short
from tb_tidy_plugin.words.errors import TidyError

if TYPE_CHECKING:
    from typing import Any

_NAME = "torchtidy"


def serve_over_stdio(folder: Folder) -> None:
    """Answers until the client closes the server's input, or a signal ends the process.

    One question at a time, in the main thread: limits of an analysis use signals, which only that thread receives.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an event loop would wait for the thread that reads the input
    anyio.run(_serve, folder)


async def _serve(folder: Folder) -> None:
    server = question_server(folder)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def question_server(folder: Folder) -> Server[dict[str, Any]]:
    """The server for a folder; lists tools that write files or run programs only if the folder allows them."""
    names = [name for name in QUESTION_KINDS if folder.allows_apply or name not in WRITING]

    async def listed(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool_of(name) for name in names])

    async def called(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            question = {**(params.arguments or {}), "question": params.name}
            text, failed = answer(msgspec.json.encode(question), folder), False
        except TidyError as problem:
            text, failed = error(problem), True
        except SystemExit as ended:  # by a signal; programs and folders are already removed
            os._exit(int(ended.code or 0))
        return types.CallToolResult(content=[types.TextContent(type="text", text=text.decode())], is_error=failed)

    return Server(_NAME, version=__version__, instructions=in_short(), on_list_tools=listed, on_call_tool=called)


def tool_of(name: str) -> types.Tool:
    """A question as a tool."""
    writes = name in WRITING
    hints = types.ToolAnnotations(read_only_hint=not writes, destructive_hint=writes, open_world_hint=name == "verify")
    return types.Tool(name=name, description=description_of(name), input_schema=schema_of(name), annotations=hints)
