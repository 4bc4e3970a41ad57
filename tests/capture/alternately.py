"""How near short measurements of a machine come to one at leisure, in turns: `python -m tests.capture.alternately`.

Prints the ratio of each figure, short by long, as the median and the range over the turns.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Any

import torch  # noqa: F401 - as a job has imported it

from tb_tidy_plugin.capture.machine_speed import JOB_S, TIMES, _best, measured_apart
from tb_tidy_plugin.system.machine_file import LEISURE_S


def figures(machine: dict[str, Any]) -> dict[str, float]:
    """Rates and times by name."""
    host = machine["host"]
    rates = {f"{each['dtype']}, {each['threads']} threads": each["flops_per_second"] for each in host["products"]}
    rates |= {
        f"{each['bytes'] >> 10} KiB, {each['threads']} threads": each["bytes_per_second"] for each in host["copies"]
    }
    return rates | {"operator without work": host["operator_ns"], "page fault": host["page_fault_ns"]}


def main(turns: int = 5) -> None:
    """Measures in turns: three times shortly, as three recordings do, and once at leisure."""
    ratios: dict[str, list[float]] = {}
    took_s = []
    for _ in range(turns):
        short: dict[str, Any] | None = None
        for _ in range(TIMES):
            began_s = time.perf_counter()
            found = measured_apart(JOB_S)
            took_s.append(time.perf_counter() - began_s)
            short = short if found is None else _best(short, found)
        long = measured_apart(LEISURE_S)
        if short is None or long is None:
            print("The machine is busy.")  # noqa: T201
            continue
        for name, value in figures(short).items():
            if name in figures(long):
                ratios.setdefault(name, []).append(value / figures(long)[name])
    print(f"One short measurement takes {median(took_s):.3f} s ({min(took_s):.3f} to {max(took_s):.3f}).")  # noqa: T201
    for name, each in ratios.items():
        print(f"{name:28} {median(each):.2f}  ({min(each):.2f} to {max(each):.2f})")  # noqa: T201


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
