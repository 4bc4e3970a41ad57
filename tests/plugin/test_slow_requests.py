"""Bodies that do not come, or without end, against the server that TensorBoard starts: no thread waits for long."""

from __future__ import annotations

import argparse
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tensorboard.program import WerkzeugServer

from tb_tidy_plugin.plugin import answers, web
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tests.support.waiting import until

PATIENCE_S = 0.2
LIMIT_S = 120.0  # of a test: a request that is never given up takes longer, a busy machine does not
OURS = "X-TorchTidy: 1\r\nContent-Type: application/json\r\n"
MUTE = b'{"mute": {"findings": ["a1"], "rules": []}, "unmute": {"findings": [], "rules": []}}'


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """Where it listens; its mutes are in `tmp_path`. At the end no request may be open."""
    monkeypatch.setattr(answers, "POST_PATIENCE_S", PATIENCE_S)
    app = web.create_app(Profiles([]), (), MuteStore([Logdir(str(tmp_path))]))
    serving = WerkzeugServer(app, argparse.Namespace(host="127.0.0.1", port=0, bind_all=False, reuse_port=False))
    before = threading.active_count()
    thread = threading.Thread(target=serving.serve_forever, args=(0.02,))
    thread.start()
    yield "127.0.0.1", serving.server_port
    until(lambda: threading.active_count() == before + 1, LIMIT_S)
    serving.shutdown()
    thread.join()
    serving.server_close()


def begun(server: tuple[str, int], length: int, body: bytes, headers: str = OURS) -> socket.socket:
    """A POST that says it has `length` bytes, of which `body` is sent."""
    connection = socket.create_connection(server, timeout=LIMIT_S)
    head = f"POST /api/mutes HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def answer(connection: socket.socket) -> str:
    """All that is answered until the connection is closed."""
    with connection:
        return b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()


def test_a_body_that_stops_is_given_up(server: tuple[str, int], tmp_path: Path) -> None:
    began = time.monotonic()
    assert answer(begun(server, len(MUTE), MUTE[:-1])).startswith("HTTP/1.1 400 ")
    assert PATIENCE_S <= time.monotonic() - began < LIMIT_S
    assert not any(tmp_path.iterdir())


def test_so_is_one_of_which_nothing_comes(server: tuple[str, int]) -> None:
    assert answer(begun(server, len(MUTE), b"")).startswith("HTTP/1.1 400 ")


def test_one_that_comes_slowly_is_read(server: tuple[str, int]) -> None:
    connection = begun(server, len(MUTE), b"")
    for start in range(0, len(MUTE), 20):
        time.sleep(PATIENCE_S / 4)
        connection.sendall(MUTE[start : start + 20])
    assert answer(connection).startswith("HTTP/1.1 200 ")


def test_one_that_is_refused_is_not_waited_for_either(server: tuple[str, int]) -> None:
    assert answer(begun(server, 1 << 20, b"[" * (1 << 18), headers="")).startswith("HTTP/1.1 403 ")


def test_one_that_says_it_is_huge_is_refused_before_it_comes_and_others_are_answered_meanwhile(
    server: tuple[str, int], tmp_path: Path
) -> None:
    huge = [begun(server, 1 << 40, b"[" * (1 << 20)) for _ in range(3)]
    with urllib.request.urlopen("http://{}:{}/api/mutes".format(*server), timeout=LIMIT_S) as other:
        assert other.status == 200
    for said in map(answer, huge):
        assert said.startswith("HTTP/1.1 400 ")
        assert "Post at most 64 KiB of JSON." in said
    assert not any(tmp_path.iterdir())


def test_one_that_does_not_say_how_long_it_is_is_refused(server: tuple[str, int]) -> None:
    headers = f"{OURS}Transfer-Encoding: chunked\r\n"
    assert answer(begun(server, 0, b"5\r\n[[[[[\r\n", headers)).startswith("HTTP/1.1 400 ")
