"""`python -m tb_tidy_plugin.dev`: the commands for work on TorchTidy itself."""

from __future__ import annotations

from pathlib import Path

import click

from tb_tidy_plugin.dev import operator_table
from tb_tidy_plugin.dev.generate import ROOT, ReadmeError, generated_files, readme
from tb_tidy_plugin.dev.new_rule import RuleNameError, write_rule

LISTS = "tb_tidy_plugin/dev/operator_table.py"


@click.group()
def dev() -> None:
    """Commands for work on TorchTidy itself."""


@dev.command()
@click.option("--check", is_flag=True, help="Change nothing; list what is stale and exit with 1.")
@click.pass_obj
def generate(root: Path, check: bool) -> None:
    """Write the generated files: schemas, the table of operators, pages of rules and questions, the README's table."""
    files = list(generated_files(root))
    complaint = ""
    try:
        files.append(readme(root))
    except ReadmeError as error:
        complaint = str(error)
    denied: list[str] = []
    if reason := operator_table.left_out():
        click.echo(f"left as it is: {operator_table.TABLE}, since {reason}", err=True)
        denied = operator_table.table_complaints()
    stale = [file for file in files if not file.is_current(root)]
    for file in stale:
        if check:
            click.echo(f"stale: {file.path}")
        else:
            file.write(root)
            click.echo(f"{'removed' if file.text is None else 'wrote'} {file.path}")
    for line in denied:
        click.echo(f"wrong in {operator_table.TABLE}: {line}")
    if denied:
        complaint = f"{operator_table.TABLE} must hold for older releases, too: correct the lists in {LISTS}."
    if complaint:
        raise click.ClickException(complaint)
    if check and stale:
        raise click.ClickException("Generated files are stale: run `make generate` and commit what it writes.")


@dev.command("check-operators")
@click.argument("native_functions", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def check_operators(native_functions: Path) -> None:
    """Hold the table of operators against another torch: list what it denies, and exit with 1.

    The file is `torchgen/packaged/ATen/native/native_functions.yaml` in the wheel of that torch, of any platform.
    """
    facts = operator_table.facts_by_name(operator_table.overloads_in(native_functions))
    found = list(operator_table.contradictions(facts))
    for line in found:
        click.echo(line)
    if found:
        raise click.ClickException(f"{operator_table.TABLE} says less of {len(found)} of {len(facts)} operators.")


@dev.command("new-rule")
@click.argument("name", metavar="CATEGORY/NAME")
@click.option("--calls", is_flag=True, help="The pattern is calls of a library function, found by their Python frames.")
@click.pass_obj
def new_rule(root: Path, name: str, calls: bool) -> None:
    """Write a new rule and its test, with all sections in place."""
    try:
        written = write_rule(root, name, calls=calls)
    except RuleNameError as error:
        raise click.UsageError(str(error)) from error
    for path in written:
        click.echo(f"wrote {path.relative_to(root)}")
    click.echo("Fill them in, then run `make generate`.")


if __name__ == "__main__":
    dev(prog_name="python -m tb_tidy_plugin.dev", obj=ROOT)
