"""`tests.load.starts` counts a server that dies, and one that lives but does not answer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.load import starts

SERVER = """
import json, os, signal, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BOARD = {{"pending": 0, "runs": [{{"known": True, "run": "r", "worker": "w", "span": ""}}]}}
ANSWERS = {{"board": BOARD, "runs": {{}}, "report": {{"report": {{"profiles": [1]}}}}, "operators": {{"rows": [1]}}}}

def end():
    os._exit(0)

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.rpartition("/")[2].partition("?")[0]
        {fault}
        body = json.dumps(ANSWERS[name]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    signal.signal(signal.SIGINT, lambda *_: end())  # which background processes ignore
    print(f"at http://127.0.0.1:{{server.server_port}}/", flush=True)
    server.serve_forever()
"""

FAULTS = {
    "refuses the table": 'if name == "operators": return self.send_error(403)',
    "refuses a report": 'if name == "report": return self.send_error(500)',
    "has no content": 'if name == "runs": self.send_response(204); return self.end_headers()',
    "never answers": 'if name == "report": import time; time.sleep(60)',
    "is never done": 'BOARD["pending"] = 1',
    "has no figures": 'BOARD["runs"][0]["known"] = False',
    "has no rows": 'ANSWERS["operators"]["rows"] = []',
    "crashes at Ctrl-C": "globals().update(end=os.abort)",
    "dies in the last answer": 'if name == "operators": os._exit(9)',
    "sends half": 'if name == "runs": return self.wfile.write(b"HTTP/1.1 200\\r\\nContent-Length: 9\\r\\n")',
}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "ANSWER_S", 5.0)
    monkeypatch.setattr(starts, "START_S", 20.0)


def of(fault: str, folder: Path) -> str:
    return starts.failure("tensorboard", [sys.executable, "-c", SERVER.format(fault=fault)], folder)


def test_a_server_that_answers_everything_counts(tmp_path: Path) -> None:
    assert of("", tmp_path) == ""


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_server_that_lives_but_does_not_answer_does_not_count(fault: str, tmp_path: Path) -> None:
    assert of(fault, tmp_path)


def test_a_death_before_the_address_is_counted_and_the_log_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no port is free')"]
    assert starts.starts("serve", command, 2, tmp_path) == 1
    printed = capsys.readouterr().out
    assert "ended by itself with 1" in printed
    assert "no port is free" in printed


def test_a_death_at_a_later_start_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = tmp_path / "started"
    fault = f"import pathlib; mark = pathlib.Path({str(first)!r})\n        if mark.exists(): os.abort()"
    fault += '\n        if name == "operators": mark.touch()'
    command = [sys.executable, "-c", SERVER.format(fault=fault)]
    assert starts.starts("tensorboard", command, 2, tmp_path) == 2
    assert "tensorboard: 2 of 2 starts failed" in capsys.readouterr().out
