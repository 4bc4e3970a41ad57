"""Struct types are described once, whichever threads decode them first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.recordings import ROOT

STARTS = 200
UNLOCKED = 4

TYPES = """
import sys, threading, time
from contextlib import nullcontext
import msgspec
from tb_tidy_plugin.system import decoders

described = threading.Event()

def pausing():
    described.set()  # the type around this one is published, and has no types of its fields yet
    time.sleep(0.5)
    return int

class Inside(msgspec.Struct):
    number: "pausing()"

class Around(msgspec.Struct):
    inside: Inside
    text: str

TEXT = b'{"inside": {"number": 1}, "text": "x"}'
"""
"""What happens by chance where threads meet, at every start: one type is described while another thread decodes."""

CALLS = {
    "decode": "decoders.decode(TEXT, Around)",
    "decode inside a list": "decoders.decode(b'[' + TEXT + b']', list[Around])",
    "convert": "decoders.convert({'inside': {'number': 1}, 'text': 'x'}, Around)",
    "decoder_of": "decoders.decoder_of(Around).decode(TEXT)",
    "type_info": "decoders.type_info(Around)",
    "schema_components": "decoders.schema_components([Around])",
}


def ended(call: str, *, locked: bool = True) -> subprocess.CompletedProcess[str]:
    """A process that makes this call first, while another thread decodes the same type."""
    program = TYPES + ("" if locked else "decoders._DESCRIBING = nullcontext()\n")
    program += f"thread = threading.Thread(target=lambda: {call})\nthread.start()\ndescribed.wait()\n"
    program += "decoders.decode(TEXT, Around)\nthread.join()\n"
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_type_that_another_thread_describes_is_waited_for(call: str) -> None:
    done = ended(call)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="the exit code is that of a signal")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_without_the_lock_that_ends_the_process(call: str) -> None:
    """If `msgspec` has mended that in all supported versions, `decoders` needs no lock."""
    assert ended(call, locked=False).returncode == -signal.SIGSEGV


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="starts processes that have imported everything")
class TestFirstDecodes:
    """Of every struct type in the package, in fresh processes."""

    def test_two_hundred_starts(self) -> None:
        assert "of which died: []" in deaths(str(STARTS))

    def test_without_the_lock_starts_would_die(self) -> None:
        assert str(-signal.SIGSEGV) in deaths(str(UNLOCKED), "unlocked")


def deaths(*arguments: str) -> str:
    command = [sys.executable, "-m", "tests.support.first_decodes", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


class TestLint:
    """No other module may describe a type; `make lint` says so for all files."""

    @pytest.mark.parametrize(
        "call",
        [
            "msgspec.json.decode(b'', type=int)",
            "msgspec.json.Decoder(int)",
            "msgspec.convert(1, int)",
            "msgspec.msgpack.decode(b'')",
            "msgspec.inspect.type_info(int)",
            "msgspec.json.schema(int)",
            "msgspec.json.schema_components([int])",
        ],
    )
    def test_what_describes_types_is_forbidden(self, call: str) -> None:
        assert forbidden(f"import msgspec\n\nprint({call})\n")

    def test_also_under_another_name(self) -> None:
        assert forbidden("from msgspec.json import decode as read\n\nprint(read(b''))\n")
        assert forbidden("from msgspec import json\n\nprint(json.decode(b''))\n")

    def test_what_describes_nothing_is_not(self) -> None:
        assert not forbidden("import msgspec\n\nprint(msgspec.json.encode(1), msgspec.structs.fields(int))\n")


def forbidden(text: str) -> bool:
    """True if the linter refuses a module with this text for the functions it calls."""
    command = [str(Path(sys.executable).with_name("ruff")), "check", "--select", "TID251", "--no-cache", "-"]
    name = f"--stdin-filename={ROOT / 'tb_tidy_plugin' / 'made_up.py'}"
    done = subprocess.run([*command, name], input=text, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode == 1
