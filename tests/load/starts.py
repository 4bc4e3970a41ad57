"""`python -m tests.load.starts`: starts of `tb-tidy serve` and of TensorBoard with a warm cache, with All runs opened.

The cache is filled by a first start. Each later one gets the page's first requests at the same time, so that several
threads read their first results from the cache. A start counts only if All runs, the report of each trace and one table
were answered with status 200 and the process still runs afterwards.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.support.environments import same_imports
from tests.support.recordings import ROOT
from tests.support.served import API, end

ADDRESS = re.compile(r"at (http://\S+)")
ANSWER_S, START_S = 120.0, 300.0  # on a busy machine
ALL_RUNS = "board?analyse=all"

Ask = Callable[[str], Any]
"""The answer of the page's API."""


def main() -> None:
    """Prints how many starts failed, and the log of each that did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", type=int, default=200, metavar="N", help="starts of `tb-tidy serve`")
    parser.add_argument("--tensorboard", type=int, default=50, metavar="N", help="starts of TensorBoard")
    parser.add_argument("--logdir", type=Path, default=ROOT / "sample_runs")
    given = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="torchtidy-starts-") as name:
        for program, count in (("serve", given.serve), ("tensorboard", given.tensorboard)):
            if count:
                failed += starts(program, command_of(program, given.logdir), count, Path(name))
    sys.exit(failed > 0)


def command_of(program: str, logdir: Path) -> list[str]:
    """The command that starts `serve` or `tensorboard` on a free port."""
    flags = ["--port", "0", "--host", "127.0.0.1"]
    if program == "serve":
        return [str(Path(sys.executable).with_name("tb-tidy")), "serve", str(logdir), "--no-open", *flags]
    return [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), *flags]


def starts(program: str, command: Sequence[str], count: int, folder: Path) -> int:
    """The number of failed ones among `count` starts, after one that fills the cache; prints it with their logs."""
    if first := failure(program, command, folder):
        print(f"{program}: the start that fills the cache failed\n\n{first}", flush=True)  # noqa: T201
        return 1
    logs: list[str] = []
    try:
        logs.extend(failure(program, command, folder) for _ in range(count))
    finally:  # Ctrl-C prints what is known
        found = [log for log in logs if log]
        print(f"{program}: {len(found)} of {len(logs)} starts failed", *found, sep="\n\n", flush=True)  # noqa: T201
    return len(found)


def failure(program: str, command: Sequence[str], folder: Path) -> str:
    """Starts a server; opens All runs, each report and a table. Why that failed, with the log; empty if it worked."""
    log, problem = folder / f"{program}.log", ""
    environment = {**same_imports(), "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output, env=environment) as process:
        try:
            _open_all(_api(_address(process, log), program))
        except (OSError, ValueError, LookupError, TypeError, http.client.HTTPException) as failed:
            problem = f"{type(failed).__name__}: {failed}"
        finally:
            code = process.poll()
            end(process)
    if code is not None:
        problem = f"the process ended by itself with {code}; {problem}"
    elif process.returncode < 0 and process.returncode != -signal.SIGINT:
        problem = f"Ctrl-C ended it with {process.returncode}; {problem}"
    return problem and f"{problem}\n{log.read_text(errors='replace')}"


def _open_all(ask: Ask) -> None:
    """Asks as the page does; an error if an answer is missing, or not what the page shows.

    Raises:
        OSError: an answer has another status than 200, or none comes.
        ValueError, LookupError, TypeError: an answer is not what the page reads.
    """
    deadline = time.monotonic() + START_S
    with ThreadPoolExecutor(3) as pool:
        *boards, listed = [pool.submit(ask, question) for question in (ALL_RUNS, ALL_RUNS, "runs")]
        listed.result()
        while any(each.result()["pending"] for each in boards):
            _not_after(deadline)
            time.sleep(0.05)
            boards = [pool.submit(ask, ALL_RUNS) for _ in range(3)]
        rows = boards[0].result()["runs"]
        if not rows or not all(row["known"] for row in rows):
            raise ValueError("All runs has no figures of some runs.")
        traces = [urlencode({name: row[name] for name in ("run", "worker", "span")}) for row in rows]
        reports = list(pool.map(ask, [f"report?{trace}" for trace in traces]))
        while not all(report["report"]["profiles"] for report in reports):
            _not_after(deadline)
            time.sleep(0.05)
            reports = list(pool.map(ask, [f"report?{trace}" for trace in traces]))
        if not ask(f"operators?{traces[0]}")["rows"]:
            raise ValueError("The table of operators is empty.")


def _not_after(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError("The analysis does not end.")


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_S
    while (found := ADDRESS.search(log.read_text(errors="replace"))) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise OSError("The server printed no address.")
        time.sleep(0.02)
    return found[1]


def _api(address: str, program: str) -> Ask:
    cookie = ""
    if program == "serve":
        with urllib.request.urlopen(address, timeout=ANSWER_S) as answer:
            cookie = answer.headers["Set-Cookie"].partition(";")[0]
    root = address.partition("?")[0] + ("api" if program == "serve" else API)

    def ask(question: str) -> Any:  # noqa: ANN401 - any JSON
        request = urllib.request.Request(f"{root}/{question}", headers={"Cookie": cookie})
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
            if answer.status != 200:
                raise OSError(f"{question} was answered with status {answer.status}.")
            return json.loads(answer.read())

    return ask


if __name__ == "__main__":
    main()
