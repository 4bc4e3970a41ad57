"""The options of `check` that name known findings."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from tb_tidy_plugin.cli.output import write_output
from tb_tidy_plugin.compare.baseline import FindingsBaseline, baseline_of, new_findings, read_baseline
from tb_tidy_plugin.report.model import Report

_R = TypeVar("_R")


class Baselines(msgspec.Struct, frozen=True):
    """What is known already, and where to write what is known from now on."""

    known: FindingsBaseline | None
    write_to: Path | None

    def new_in(self, report: Report) -> set[str] | None:
        """Ids of the findings that are new; None without a baseline, where all count."""
        return None if self.known is None else new_findings(report, self.known)

    def write(self, report: Report) -> None:
        """Writes the findings of `report` where that was asked for."""
        if self.write_to is not None:
            text = msgspec.json.format(msgspec.json.encode(baseline_of(report)), indent=1).decode()
            write_output(self.write_to, f"{text}\n")


def with_baselines(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives `command` what `--baseline` and `--write-baseline` say, as `baselines`."""

    @click.option(
        "--baseline",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="For `--fail-on`, count only findings that are not in FILE.",
    )
    @click.option(
        "--write-baseline", type=click.Path(path_type=Path), metavar="FILE", help="Write all findings to FILE."
    )
    @wraps(command)
    def based(baseline: Path | None, write_baseline: Path | None, **others: object) -> _R:
        known = None if baseline is None else read_baseline(baseline)
        return command(baselines=Baselines(known, write_baseline), **others)

    return based
