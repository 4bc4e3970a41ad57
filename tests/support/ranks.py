"""Runs of many small ranks, and a user's rule that misbehaves on one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.environments import same_imports
from tests.support.recorded_ranks import record

TB_TIDY = (sys.executable, "-c", "from tb_tidy_plugin.cli.main import script; script()")

MARKED = '''"""Product that is marked.

## What it finds
Every `aten::mm`, to show that the rule was there.

## Why it is slow
It is not.

## Example
```python
a @ b
```

Use instead:
```python
b @ a
```

## How the saving is estimated
All of it goes.

## When it stays quiet
Never.
"""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from tb_tidy_plugin.rulekit import Match, Profile, Rule


class Marked(Rule):
    """Product that is marked."""

    code = "MY7"
    message = "It was here"
    why = "It was here"
    fix = "Let it be"

    def detect(self, profile: Profile) -> Iterator[Match]:
        {act}
        yield from (Match(anchor=row, events=(row,)) for row in profile.named("aten::mm").tolist())
'''

NOTHING = "pass"
ENDS_ITS_WORKER = "if profile.metadata.rank == 2:\n            os.kill(os.getpid(), signal.SIGKILL)"


def run_of(folder: Path, ranks: int) -> Path:
    """A run of `ranks` ranks; each comes to each collective 10 µs after the previous one."""
    for rank in range(ranks):
        record(folder / "job", rank, comes_us=1000 + 10 * rank, clock_us=5 * rank)
    return folder


def configured(folder: Path, act: str = NOTHING) -> Path:
    """Writes a configuration with the rule above, which executes `act` first."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "marked.py").write_text(MARKED.replace("{act}", act), "utf-8")
    file = folder / "tb-tidy.toml"
    file.write_text('rules = ["marked.py"]\n', "utf-8")
    return file


def tb_tidy(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the command in a separate process."""
    environment = same_imports()
    return subprocess.run(
        [*TB_TIDY, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        cwd=cwd,
        check=False,
    )
