"""`tb-tidy bench --machine`: the speed of this machine, measured at leisure."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import click
import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tb_tidy_plugin.benchmarks.process import NO_TORCH
from tb_tidy_plugin.benchmarks.runner import has_torch
from tb_tidy_plugin.cli.printed import say
from tb_tidy_plugin.render.terminal import plain
from tb_tidy_plugin.system import child
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.system.machine_file import EXIT_BUSY
from tb_tidy_plugin.trace.measured_machine import MeasuredHost, MeasuredMachine
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.words.errors import TidyError
from tb_tidy_plugin.words.units import Bytes

IMPORT_S = 120.0  # for the import of torch

_MEASURING = child.command_for("tb_tidy_plugin.capture.machine_speed")


def bench_machine(seconds: float, form: str) -> None:
    """Measures this machine in a process of its own, keeps the figures, and prints them.

    Raises:
        TidyError: PyTorch is missing, the machine is busy, or the measuring fails.
    """
    if not has_torch():
        raise TidyError(NO_TORCH.error, NO_TORCH.advice)
    command = [*_MEASURING, *child.import_folders()]
    try:
        done = subprocess.run(
            command, input=f"{seconds}\n".encode(), capture_output=True, timeout=seconds + IMPORT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise TidyError(f"This machine could not be measured: {type(problem).__name__}.", "Try again.") from None
    if done.returncode == EXIT_BUSY:
        raise TidyError("This machine is busy: other programs use its cores.", "Try again when it is idle.")
    try:
        machine = decode(done.stdout, MeasuredMachine)
    except NOT_JSON:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if said else f"it ended with {done.returncode}"
        raise TidyError(f"This machine could not be measured: {reason}.", "See the error, then try again.") from None
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(machine), indent=2).decode())
    else:
        say(_shown(machine))


def _shown(machine: MeasuredMachine) -> RenderableType:
    host = machine.host
    lines = [f"PyTorch {machine.torch}, {host.threads} threads; kept for reports on this machine's recordings."]
    if host.operator_ns is not None:
        lines.append(f"An operator without work takes {host.operator_ns:,.0f} ns.")
    if host.page_fault_ns is not None:
        lines.append(f"A page fault takes {host.page_fault_ns:,.0f} ns.")
    return Group(*(plain(line) for line in lines), Text(), _table(host))


def _table(host: MeasuredHost) -> Table:
    counts = sorted({rate.threads for rate in host.products} | {rate.threads for rate in host.copies})
    table = Table("Best rate of", *(f"{count} thread{'s' * (count > 1)}" for count in counts), box=None, pad_edge=False)
    for name, rates in _rows(host):
        table.add_row(name, *(rates.get(count, "–") for count in counts))
    return table


def _rows(host: MeasuredHost) -> Iterator[tuple[str, dict[int, str]]]:
    for dtype in dict.fromkeys(rate.dtype for rate in host.products):
        same = [rate for rate in host.products if rate.dtype == dtype]
        yield f"products in {dtype}", {rate.threads: f"{rate.flops_per_second / 1e9:,.1f} GFLOP/s" for rate in same}
    for size in sorted({rate.bytes for rate in host.copies}):
        same_size = [rate for rate in host.copies if rate.bytes == size]
        rates = {rate.threads: f"{rate.bytes_per_second / 1e9:,.1f} GB/s" for rate in same_size}
        yield f"memory, working set of {Bytes(size)}", rates
