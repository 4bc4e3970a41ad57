"""Records programs of the corpus and prints what the assistant's calls take on each, as a table in Markdown."""

from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tb_tidy_plugin.ask.pages import tokens_in
from tests.accuracy.corpus import programs
from tests.accuracy.processes import record_in
from tests.ask.assistant import asking, cause_in, folder_at

TIMES = 5

RECORDED = [
    each
    for each in programs()
    if each.kind == "slow" and not each.is_drawn and each.ranks == 1 and not each.timed and "compile" not in each.rule
]
"""Those that show on every machine, in seconds."""


def main() -> None:
    """Prints the table, how often the cause was found, and the longest call of a later round."""
    hits, again = 0, 0.0
    click.echo("| program and cause | calls | tokens | longest call | tokens of the trace |\n|---|---|---|---|---|")
    with TemporaryDirectory() as name:
        (cache := Path(name, "cache")).mkdir(mode=0o700)
        for program in RECORDED:
            folder = Path(name, program.rule)
            folder.mkdir()
            record_in(folder, program)
            ask = asking(folder_at(folder, cache))
            first, *later = (cause_in(ask) for _ in range(TIMES))
            assert {way.answers for way in later} == {first.answers}, program
            (trace,) = folder.rglob("*.pt.trace.json*")
            content = gzip.decompress(trace.read_bytes()) if trace.suffix == ".gz" else trace.read_bytes()
            hits += first.rule == program.rule
            again = max(again, *(way.seconds for way in later))
            calls = f"{len(first.answers)} | {first.tokens:,} | {first.seconds:.2f} s"
            click.echo(f"| {program.rule} | {calls} | {tokens_in(content):,} |")
    click.echo(f"\nFound in {hits} of {len(RECORDED)}. Later rounds take {again:.2f} s a call at most.")


if __name__ == "__main__":
    main()
