"""`tb-tidy` in a process forked from one that has imported everything: as a user runs it, but faster to start.

Tests of the process's start (which modules are imported, and from where) start Python themselves.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.support.environments import same_imports
from tests.support.recordings import ROOT

LIMIT_S = 120
ARGUMENTS = (sys.executable, "-W", "error", "-m", __name__)


def tidy(
    *arguments: str | Path, cwd: Path = ROOT, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Output and exit code of `tb-tidy` with these arguments and only the given environment."""
    command = list(map(str, arguments))
    own = {"PATH": "", "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"], **(environment or {})}
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        server = _server()
        assert server.stdin
        assert server.stdout
        asked = {"arguments": command, "cwd": str(cwd), "environment": own, "out": str(out), "err": str(err)}
        server.stdin.write(f"{json.dumps(asked)}\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(command, code, out.read_text("utf-8"), err.read_text("utf-8"))


@cache
def _server() -> subprocess.Popen[str]:
    environment = same_imports()
    server = subprocess.Popen(ARGUMENTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    atexit.register(server.communicate)
    return server


# In the process


def main() -> None:
    """Runs each command in a fork, one per input line, and answers with the exit code."""
    import tb_tidy_plugin.cli.check
    import tb_tidy_plugin.cli.summary
    import tb_tidy_plugin.render.terminal
    import tb_tidy_plugin.report.json  # noqa: F401
    from tb_tidy_plugin.cli.main import main as command
    from tb_tidy_plugin.rules import all_rules

    all_rules()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _become(**json.loads(line))
            command()
            return
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _become(arguments: list[str], cwd: str, environment: dict[str, str], out: str, err: str) -> None:
    """Turns this process into one that a shell could have started."""
    signal.alarm(LIMIT_S)
    for number, path in enumerate((os.devnull, out, err)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    sys.stdin = open(0, encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115 - open until the end
    sys.stderr = open(2, "w", encoding=encoding, errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    os.chdir(cwd)
    sys.path[0] = ""
    sys.argv = ["tb-tidy", *arguments]


if __name__ == "__main__":
    main()
