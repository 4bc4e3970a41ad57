"""A real TensorBoard process and its answers."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from tests.support.environments import same_imports
from tests.support.waiting import PATIENCE_S, until

ADDRESS = re.compile(r"at (http://[^ ]+:\d+[^ ]*)")
API = "data/plugin/torchtidy/api"

MAIN = """
import sys
from tensorboard import default
from tensorboard.main import run_main
is_old = not hasattr(default, "_iter_entry_points")  # before 2.17
owner, name = (default.pkg_resources, "iter_entry_points") if is_old else (default, "_iter_entry_points")
points = getattr(owner, name)
setattr(owner, name, lambda group: [each for each in points(group) if each.name not in {without!r}])
sys.argv[0] = "tensorboard"
run_main()
"""
"""TensorBoard's own main function, without the plugins that a test leaves out."""


@dataclass(frozen=True)
class Reply:
    """One HTTP answer, whatever its status."""

    status: int
    headers: Message
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - any JSON
        return json.loads(self.body)


@dataclass(frozen=True)
class Served:
    """A TensorBoard that serves. `started_s` is the time until it said so."""

    address: str
    log: Path
    process: subprocess.Popen[bytes]
    started_s: float

    def get(self, path: str, method: str = "GET", **headers: str) -> Reply:
        """The answer to `path`, relative to TensorBoard's own address."""
        wanted = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.address + path, headers=wanted, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return Reply(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.headers, error.read())

    def api(self, question: str) -> Any:  # noqa: ANN401 - any JSON
        """The answer of the plugin's API."""
        reply = self.get(f"{API}/{question}")
        assert reply.status == 200, reply.body
        return reply.json()

    def runs(self) -> list[str]:
        return [run["run"] for run in self.api("runs")["runs"]]

    def progress(self, key: str) -> Iterator[Any]:
        """The states of an analysis, each as soon as the server sends it."""
        with urllib.request.urlopen(f"{self.address}{API}/progress?{key}", timeout=PATIENCE_S) as answer:
            yield from map(json.loads, answer)

    def analysed(self, key: str) -> Any:  # noqa: ANN401 - any JSON
        """The report on `key`, once its analysis is over."""
        *_, last = self.progress(key)
        assert last["state"] in {"done", "error"}
        return self.api(f"report?{key}")


def needs_the_installed_plugin() -> None:
    """Skips the test, visibly, if TensorBoard would not find the plugin."""
    if not any(point.name == "torchtidy" for point in entry_points(group="tensorboard_plugins")):
        pytest.skip("TensorBoard finds the plugin only where it is installed: pip install -e .")


@contextmanager
def tensorboard(*arguments: str, folder: Path, without: tuple[str, ...] = ()) -> Iterator[Served]:
    """TensorBoard with `arguments`, started in `folder`, which also gets its log; without the plugins named."""
    program = [sys.executable, "-c", MAIN.format(without=without), *arguments]
    environment = same_imports()
    with started(program, folder, environment) as served:
        yield served


@contextmanager
def started(program: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> Iterator[Served]:
    """A TensorBoard of any environment, once it serves."""
    log = folder / "tensorboard.log"
    reset = [shutil.which("env") or "env", "--default-signal=INT"]  # background processes ignore this signal
    command = [*reset, *program, "--port", "0", "--host", "localhost"]
    began = time.monotonic()
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, cwd=folder, env={**environment, "PYTHONUNBUFFERED": "1"}, stderr=output, stdout=output
        ) as process,
    ):
        try:
            address = until(lambda: ADDRESS.search(log.read_text()) or process.poll() is not None)
            assert isinstance(address, re.Match), log.read_text()
            yield Served(address[1].rstrip("/") + "/", log, process, time.monotonic() - began)
        finally:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends TensorBoard as a terminal would, so that other plugins end their processes too."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
