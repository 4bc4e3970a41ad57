"""Commands that start a worker process, well-behaved or not."""

from __future__ import annotations

import sys
from pathlib import Path

PATHS = "import sys; sys.path[:] = sys.argv[1:]; "

WITH_MADE_UP_RULE = (
    sys.executable,
    "-c",
    PATHS + "import tb_tidy_plugin.rules as rules; from tests.support.made_up_rule import SlowMultiplication; "
    "SlowMultiplication.min_share = 0; rules.catalogue = lambda: (SlowMultiplication,); "
    "from tb_tidy_plugin.plugin.analysis_worker import main; main()",
)
"""The real worker; its catalogue is one rule that finds every multiplication, however short."""


def script(code: str) -> tuple[str, ...]:
    """A worker that runs `code` instead."""
    return (sys.executable, "-c", PATHS + "import os, sys, time; " + code)


ASKED = (
    "import base64, json; from tb_tidy_plugin.system import child; line = child.question(); "
    "child.question = lambda: line; path = base64.b64decode(json.loads(line)['path']).decode(); "
)
"""Code that sets `path` to the trace that a worker is asked for."""


def held_by(gate: Path) -> tuple[str, ...]:
    """A worker that begins its work once the file `gate` exists."""
    *start, code = WITH_MADE_UP_RULE
    return (*start, waiting_for(gate) + code)


def waiting_for(gate: Path) -> str:
    """Code that waits for the file `gate` and gives up if the tests end without it."""
    return f"""
import os, time
tests = os.getppid()
while not os.path.exists({str(gate)!r}):
    time.sleep(0.1)
    if os.getppid() != tests:
        os._exit(1)
"""
