"""`python -m tests.load.starts`: starts of `tb-tidy serve` and of TensorBoard with a warm cache, with All runs opened.

The cache is filled by a first start. Each later one gets the page's first requests at the same time, so that several
threads read their first results from the cache. A start counts as died unless the process still answers afterwards.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tb_tidy_plugin.decoders import decode
from tests.support.environments import same_imports
from tests.support.recordings import ROOT
from tests.support.served import API, end

ADDRESS = re.compile(r"at (http://\S+)")
PATIENCE_S = 120.0
OTHERS = ("torch_profiler",)

Ask = Callable[[str], Any]
"""The answer of the page's API."""


def main() -> None:
    """Prints how many starts died, and the log of each that did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", type=int, default=200, metavar="N", help="starts of `tb-tidy serve`")
    parser.add_argument("--tensorboard", type=int, default=50, metavar="N", help="starts of TensorBoard")
    parser.add_argument("--logdir", type=Path, default=ROOT / "sample_runs")
    given = parser.parse_args()
    died = 0
    with tempfile.TemporaryDirectory(prefix="torchtidy-starts-") as name:
        folder = Path(name)
        for program, count in (("serve", given.serve), ("tensorboard", given.tensorboard)):
            if count:
                open_all_runs(program, given.logdir, folder)
                logs = [log for _ in range(count) if (log := open_all_runs(program, given.logdir, folder)) is not None]
                died += len(logs)
                print(f"{program}: {len(logs)} of {count} starts died", flush=True)  # noqa: T201
                print(*logs, sep="\n\n")  # noqa: T201
    sys.exit(died > 0)


def open_all_runs(program: str, logdir: Path, folder: Path) -> str | None:
    """Starts a server and opens All runs until all results are known; the log of a server that ended by itself."""
    with _served(program, logdir, folder) as (ask, log), suppress(OSError):  # a server that died is counted
        with ThreadPoolExecutor(3) as pool:
            asked = [pool.submit(ask, question) for question in ("board?analyse=all", "runs", "board?analyse=all")]
            while any(each.result()["pending"] for each in asked[::2]):
                time.sleep(0.05)
                asked = [pool.submit(ask, "board?analyse=all") for _ in range(3)]
        ask("runs")
    return log.read_text() if log.with_suffix(".died").exists() else None


@contextmanager
def _served(program: str, logdir: Path, folder: Path) -> Iterator[tuple[Ask, Path]]:
    """The API of a server, and the file with its log."""
    log, cache = folder / f"{program}.log", folder / "cache"
    log.with_suffix(".died").unlink(missing_ok=True)
    environment = {**same_imports(), "XDG_CACHE_HOME": str(cache), "PYTHONUNBUFFERED": "1"}
    flags = ["--port", "0", "--host", "127.0.0.1"]
    if program == "serve":
        command = [str(Path(sys.executable).with_name("tb-tidy")), "serve", str(logdir), "--no-open", *flags]
    else:
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), *flags]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output, env=environment) as process:
        try:
            yield _api(_address(process, log), program), log
        finally:
            if (code := process.poll()) is not None:
                log.with_suffix(".died").write_text(str(code))
                output.write(f"\nended by itself with {code}\n".encode())
            end(process)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while (found := ADDRESS.search(log.read_text())) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise OSError(log.read_text())
        time.sleep(0.02)
    return found[1]


def _api(address: str, program: str) -> Ask:
    cookie = ""
    if program == "serve":
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
            cookie = answer.headers["Set-Cookie"].partition(";")[0]
    root = address.partition("?")[0] + ("api" if program == "serve" else API)

    def ask(question: str) -> Any:  # noqa: ANN401 - any JSON
        request = urllib.request.Request(f"{root}/{question}", headers={"Cookie": cookie})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return decode(answer.read())

    return ask


if __name__ == "__main__":
    main()
