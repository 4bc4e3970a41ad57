"""The questions over the Model Context Protocol, asked by the SDK's own client."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.ask.folder import Folder
from tb_tidy_plugin.ask.pages import tokens_in
from tb_tidy_plugin.ask.questions import QUESTION_KINDS, WRITING
from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.words.errors import TidyError
from tests.ask.assistant import asking, rows_of
from tests.support.whole_run import write_run

HAS_MCP = importlib.util.find_spec("mcp") is not None
needs_mcp = pytest.mark.skipif(not HAS_MCP, reason="the extra `mcp` is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(write_run(tmp_path / "run").parent, Job())


def with_client(server: Any, do: Callable[[Any], Awaitable[None]]) -> None:  # noqa: ANN401 - the SDK's
    """Has a client do something with a server: one in this process, or what leads to another."""
    import anyio
    from mcp import Client

    async def connected() -> None:
        async with Client(server) as client:
            await do(client)

    with ThreadPoolExecutor(1) as threads:  # in the main thread the browser tests keep a loop running
        threads.submit(anyio.run, connected).result()


def in_process(folder: Folder) -> Any:  # noqa: ANN401 - the SDK's
    from tb_tidy_plugin.ask.server import question_server

    return question_server(folder)


@needs_mcp
class TestServer:
    @pytest.mark.parametrize("allows", [False, True])
    def test_lists_the_questions_as_tools(self, folder: Folder, allows: bool) -> None:
        async def listed(client: Any) -> None:  # noqa: ANN401 - the SDK's
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == set(QUESTION_KINDS) - (set() if allows else WRITING)
            assert {name for name, tool in tools.items() if not tool.annotations.read_only_hint} == set(tools) & WRITING
            assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools.values())
            size = tokens_in(json.dumps([tool.input_schema for tool in tools.values()]).encode())
            assert size < 3_000

        with_client(in_process(Folder(folder.root, folder.job, allows_apply=allows)), listed)

    def test_answers_as_ask_does(self, folder: Folder) -> None:
        async def asked(client: Any) -> None:  # noqa: ANN401 - the SDK's
            for name in ("runs", "ledger", "findings", "operators"):
                found = await client.call_tool(name, {})
                assert not found.is_error
                assert found.content[0].text.encode() == asking(folder)({"question": name})

        with_client(in_process(folder), asked)

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("none", {}),
            ("ledger", {"path": "../"}),
            ("runs", {"question": "apply_fix", "path": 1}),
            ("apply_fix", {"finding": "x"}),
            ("verify", {"before": ".", "command": ["true"]}),
        ],
    )
    def test_errors_say_what_to_do(self, folder: Folder, name: str, arguments: dict[str, object]) -> None:
        async def asked(client: Any) -> None:  # noqa: ANN401 - the SDK's
            found = await client.call_tool(name, arguments)
            assert found.is_error
            assert set(json.loads(found.content[0].text)) == {"error", "advice"}

        with_client(in_process(folder), asked)

    def test_speaks_over_stdin_and_stdout(self, folder: Folder, tmp_path: Path) -> None:
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        code = "from tb_tidy_plugin.cli.main import script; script()"
        server = StdioServerParameters(
            command=sys.executable,
            args=["-c", code, "mcp", str(folder.root), "--isolated"],
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        )

        async def asked(client: Any) -> None:  # noqa: ANN401 - the SDK's
            found = await client.call_tool("findings", {})
            assert "cat-in-loop" in {row["rule"] for row in rows_of(json.loads(found.content[0].text))}

        with_client(stdio_client(server), asked)


@needs_mcp
@pytest.mark.skipif(os.name == "nt", reason="signals end processes in another way here")
def test_ctrl_c_ends_the_server_while_its_input_is_open(folder: Folder) -> None:
    version = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": version}
    code = "from tb_tidy_plugin.cli.main import script; script()"
    command = [sys.executable, "-c", code, "mcp", str(folder.root), "--isolated"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "torchtidy"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == -signal.SIGINT


class TestCommands:
    def test_without_the_extra_the_server_says_how_to_install_it(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tb_tidy_plugin.cli.mcp.find_spec", lambda _: None)
        problem = CliRunner().invoke(commands, ["mcp", str(folder.root), "--isolated"]).exception
        assert isinstance(problem, TidyError)
        assert problem.advice == "Run `pip install 'tb-tidy-plugin[mcp]'`."

    def test_ask_takes_a_question_from_stdin(self, folder: Folder) -> None:
        done = CliRunner().invoke(commands, ["ask", "--path", str(folder.root), "--isolated"], '{"question": "runs"}')
        assert (done.exit_code, done.output.encode()) == (0, asking(folder)({"question": "runs"}) + b"\n")

    @pytest.mark.parametrize("path", ["none", "s3://bucket/run"])
    def test_ask_says_errors_as_json(self, path: str, folder: Folder, tmp_path: Path) -> None:
        given = ["ask", '{"question": "runs"}', "--isolated", "--path", path if "://" in path else str(tmp_path / path)]
        done = CliRunner().invoke(commands, given)
        assert (done.exit_code, set(json.loads(done.output))) == (2, {"error", "advice"})

    def test_ask_lists_all_questions(self) -> None:
        done = CliRunner().invoke(commands, ["ask", "--list", "--isolated"])
        listed = json.loads(done.output)
        assert [each["question"] for each in listed] == list(QUESTION_KINDS)
        assert {each["question"] for each in listed if each["needs"]} == WRITING
