"""The options that select the configuration of commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.cli.places import PLACE
from tb_tidy_plugin.configuration.checks import WantedRules, job_of
from tb_tidy_plugin.configuration.devices import checked_device, configured_devices
from tb_tidy_plugin.configuration.files import Configuration, read_configuration
from tb_tidy_plugin.configuration.found import find_configuration
from tb_tidy_plugin.configuration.limits import limits_of
from tb_tidy_plugin.trace.remote import on_this_machine
from tb_tidy_plugin.words.visible import visible

_R = TypeVar("_R")


def with_configuration(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives `command` the configuration for its `--config` and `--isolated`, as its first argument."""

    @click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Use this file instead of the nearest `tb-tidy.toml` or `pyproject.toml`.",
    )
    @click.option("--isolated", is_flag=True, help="Do not use a configuration file.")
    @wraps(command)
    def configured(config: Path | None, isolated: bool, **others: object) -> _R:
        if config and isolated:
            raise click.UsageError("Give either --config or --isolated.")
        return command(_configuration(config, isolated), **others)

    return configured


LIMIT_OPTIONS = {
    "max-text-gb": ("GB", "Refuse traces with more decompressed text; default 16."),
    "max-inflation": ("TIMES", "Refuse gz files with a larger ratio of text to file size; default 300."),
    "max-processor-s": (
        "S",
        "Stop analysing a trace after this much processor time; default 60, plus 1 for each MB of text.",
    ),
    "max-wall-s": ("S", "Stop analysing a trace after this time; default 600, plus 10 for each MB of text."),
    "max-memory-gb": (
        "GB",
        "Stop analysing a trace that needs more memory; default 0.16, plus 24 times its text. Linux only.",
    ),
}
"""Options by the keys of `[limits]`, each as one number for all traces."""


def _with_limit_options(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives `command`, after its configuration, the values of its options by the keys of `[limits]`, as `given`."""

    @wraps(command)
    def limited(configuration: Configuration, **others: object) -> _R:
        asked = {key: others.pop(key.replace("-", "_")) for key in LIMIT_OPTIONS}
        given = {key: value for key, value in asked.items() if value is not None}
        return command(configuration, given=given, **others)

    for key, (unit, help_text) in reversed(LIMIT_OPTIONS.items()):
        limited = click.option(f"--{key}", type=float, metavar=unit, help=help_text)(limited)
    return limited


def with_limits(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives `command` a job without rules, with the limits of its configuration and its options, as `job`."""

    @with_configuration
    @_with_limit_options
    @wraps(command)
    def limited(configuration: Configuration, given: dict[str, float], **others: object) -> _R:
        settings, where = configuration.settings, str(configuration.path)
        limits = limits_of(settings.limits | given, where)
        devices = configured_devices(settings.devices, where)
        device = checked_device(settings.device, devices, f"`device` in `{where}`")
        return command(job=Job((), limits=limits, devices=devices, device=device), **others)

    return limited


def rule_names(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Completes the name of a rule of the catalogue; an own rule is not imported for a key press."""
    return _completed(begun, "", with_categories=False)


def selectors(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Completes the last of several names of rules, codes or categories, separated by commas."""
    before, comma, last = begun.rpartition(",")
    return _completed(last, before + comma, with_categories=True)


def _completed(begun: str, before: str, *, with_categories: bool) -> list[CompletionItem]:
    from tb_tidy_plugin.rulekit.page import page_of
    from tb_tidy_plugin.rules import catalogue

    known = {rule.name(): page_of(rule).title for rule in catalogue()}
    if with_categories:
        known |= {"ALL": "all rules"} | {rule.category(): "a category" for rule in catalogue()}
    if begun[:1].isupper():
        known |= {rule.code: page_of(rule).title for rule in catalogue()}
    return [CompletionItem(before + name, help=text) for name, text in known.items() if name.startswith(begun)]


def with_checks(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives `command` the job for its configuration, `--rule`, `--select` and `--ignore`, as `job`."""

    @with_configuration
    @click.option(
        "--rule",
        "only",
        multiple=True,
        metavar="RULE",
        shell_complete=rule_names,
        help="Check only this rule; can be repeated.",
    )
    @click.option(
        "--select",
        callback=_listed,
        multiple=True,
        metavar="RULES",
        shell_complete=selectors,
        help=(
            "Check these rules instead of those that the configuration selects: names, codes, code prefixes, "
            "categories or ALL, separated by commas."
        ),
    )
    @click.option(
        "--ignore",
        callback=_listed,
        multiple=True,
        metavar="RULES",
        shell_complete=selectors,
        help="Do not check these rules.",
    )
    @_with_limit_options
    @wraps(command)
    def chosen(
        configuration: Configuration,
        only: tuple[str, ...],
        select: tuple[str, ...],
        ignore: tuple[str, ...],
        given: dict[str, float],
        **others: object,
    ) -> _R:
        if only and (select or ignore):
            raise click.UsageError("Give either --rule or --select and --ignore.")
        return command(job=job_of(configuration, WantedRules(only, select, ignore, given)), **others)

    return chosen


def _listed(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for each in given for name in each.split(",") if name.strip())


def _configuration(config: Path | None, isolated: bool) -> Configuration:
    if config:
        return read_configuration(config)
    if isolated:
        return Configuration()
    try:
        folder = Path.cwd()
    except FileNotFoundError:  # the current folder was deleted
        return Configuration()
    context = click.get_current_context()
    follow_links = context.params.get("follow_links", False)
    found = find_configuration(folder, [*_analysed(context)], follow_links=follow_links)
    if found.withheld:
        _say_what_is_withheld(found, folder)
    return found


def _analysed(context: click.Context) -> Iterator[Path]:
    """The paths on this machine that the command analyses."""
    for parameter in context.command.params:
        given = context.params.get(parameter.name or "") if parameter.type is PLACE else None
        for place in given if isinstance(given, tuple) else [given]:
            if place is not None and (path := on_this_machine(place)) is not None:
                yield path


def _say_what_is_withheld(configuration: Configuration, folder: Path) -> None:
    path = configuration.path
    assert path is not None
    keys = " and ".join(f"`{key}`" for key in configuration.withheld)
    verb = "is" if len(configuration.withheld) == 1 else "are"
    name = shlex.quote(path.name if path.parent == folder else str(path))
    said = f"{keys} in `{path}` {verb} not used: {configuration.doubt}."
    click.echo(visible(f"tb-tidy: {said} If you trust the file, give `--config {name}`."), err=True)
