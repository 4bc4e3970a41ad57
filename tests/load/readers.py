"""Many readers at once, how long each of their questions took, and a recording that is long enough to wait for."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.written import event

ANSWER_LIMIT_S = 60.0
OPERATORS = 40  # of a step
GAP_US = 1000


@dataclass(frozen=True)
class Read:
    """What all readers of one question met.

    Attributes:
        seconds: one per answer, sorted.
        errors: what was not answered with 200.
    """

    seconds: list[float]
    errors: list[str]

    def at(self, share: float) -> float:
        """Seconds within which this share of the answers came."""
        return self.seconds[min(len(self.seconds) - 1, int(share * len(self.seconds)))]


def read(address: str, questions: Sequence[str], readers: int, for_s: float, pause_s: float = 0.0) -> dict[str, Read]:
    """`readers` threads ask in turn, each with `pause_s` between its questions as a page has it, for so long."""
    found: dict[str, tuple[list[float], list[str]]] = {question: ([], []) for question in questions}
    end_s = time.monotonic() + for_s

    def ask(number: int) -> None:
        while time.monotonic() < end_s:
            number += 1
            question = questions[number % len(questions)]
            seconds, errors = found[question]
            began_s = time.monotonic()
            try:
                with urllib.request.urlopen(address + question, timeout=ANSWER_LIMIT_S) as answer:
                    answer.read()
                seconds.append(time.monotonic() - began_s)
            except (urllib.error.URLError, OSError) as problem:
                errors.append(f"{question}: {problem}")
            time.sleep(pause_s)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {question: Read(sorted(seconds), errors) for question, (seconds, errors) in found.items()}


def write_long(path: Path, size: int) -> int:
    """A recording of about `size` bytes: steps with operators, one after the other. The number of its events."""
    path.parent.mkdir(parents=True, exist_ok=True)
    dims = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
    events = 0
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [\n')
        while file.tell() < size:
            step, start = divmod(events, OPERATORS + 1)[0], events * GAP_US
            entries = [event(f"ProfilerStep#{step}", start, GAP_US * OPERATORS, cat="user_annotation")]
            entries += [event(f"aten::op_{n}", start + n * GAP_US, 900, args=dims) for n in range(OPERATORS)]
            file.write(",\n".join(map(json.dumps, entries)) + ",\n")
            events += OPERATORS + 1
        file.write(json.dumps(event("aten::last", events * GAP_US, 1)) + '\n], "traceName": "x.json"}\n')
    return events + 1


def memory_of(process: int) -> int:
    """Bytes of memory that a process holds, as Linux tells."""
    status = Path(f"/proc/{process}/status").read_text()
    [kib] = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(kib) * 1024


def children_of(process: int) -> list[int]:
    """Processes that a process started and that live, as Linux tells; none where it is not Linux."""
    found: list[int] = []
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has just ended; what it started is another one's now
            found += map(int, children.read_text().split())
    return found
