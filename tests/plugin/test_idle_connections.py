"""Connections to `tb-tidy serve` that ask nothing: no thread and no file descriptor is held for long."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tb_tidy_plugin.plugin import server as serving
from tb_tidy_plugin.plugin.listener import HOME, Token, listening
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.server import ServerOptions, server_of
from tests.support.recordings import ROOT
from tests.support.waiting import PATIENCE_S, until

HEAD_PATIENCE_S = 0.5
IDLE = 40
HEAD = b"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\n"

WITH_FEW_DESCRIPTORS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from tb_tidy_plugin.cli.main import main
sys.argv[0] = "tb-tidy"
main()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """Where a server listens, which waits less than others."""
    monkeypatch.setattr(serving, "HEAD_PATIENCE_S", HEAD_PATIENCE_S)
    wanted = ServerOptions(Logdir(str(tmp_path)), cache="off")
    with listening(HOME, 0) as listener, server_of(wanted, Token(), listener) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield HOME, listener.getsockname()[1]
        server.shutdown()
        thread.join()


def answer(connection: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    with connection:
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def test_connections_that_ask_nothing_are_closed(place: tuple[str, int]) -> None:
    before = threading.active_count()
    idle = [socket.create_connection(place, timeout=PATIENCE_S) for _ in range(IDLE)]
    assert [answer(connection) for connection in idle] == [b""] * IDLE
    until(lambda: threading.active_count() <= before)


def test_so_are_those_that_stop_in_a_head(place: tuple[str, int]) -> None:
    for begun in (b"G", b"GET /api/runs HTTP/1.1\r\n", HEAD):
        connection = socket.create_connection(place, timeout=PATIENCE_S)
        connection.sendall(begun)
        assert b"200" not in answer(connection)


def test_and_those_that_send_one_letter_after_the_other(place: tuple[str, int]) -> None:
    connection = socket.create_connection(place, timeout=PATIENCE_S)
    with pytest.raises(OSError, match=r"[Rr]eset|[Bb]roken"):
        send_slowly(connection)
    connection.close()


def send_slowly(connection: socket.socket) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        connection.sendall(b"G")
        time.sleep(HEAD_PATIENCE_S / 5)


def test_a_slow_request_is_answered(place: tuple[str, int]) -> None:
    connection = socket.create_connection(place, timeout=PATIENCE_S)
    connection.sendall(HEAD)
    time.sleep(HEAD_PATIENCE_S / 5)
    connection.sendall(b"\r\n")
    assert answer(connection).startswith(b"HTTP/1.1 403 ")


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's limits and times of processes")
def test_without_file_descriptors_the_server_rests_and_goes_on_later(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITH_FEW_DESCRIPTORS, "serve", "--no-open", "--no-cache", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().rpartition(" at ")[2]
            port = int(address.partition("?")[0].rstrip("/").rpartition(":")[2])
            assert asked(port).startswith(b"HTTP/1.1 403 ")  # it has imported everything
            idle = [socket.create_connection((HOME, port), timeout=PATIENCE_S) for _ in range(100)]
            time.sleep(1)
            before, began = processor_s(process.pid), time.monotonic()
            time.sleep(2)
            assert (processor_s(process.pid) - before) / (time.monotonic() - began) < 0.1
            for connection in idle:
                connection.close()
            assert asked(port).startswith(b"HTTP/1.1 403 ")
        finally:
            process.kill()


def asked(port: int) -> bytes:
    connection = socket.create_connection((HOME, port), timeout=PATIENCE_S)
    connection.sendall(HEAD + b"\r\n")
    return answer(connection)


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
