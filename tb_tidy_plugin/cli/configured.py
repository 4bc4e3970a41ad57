"""The options by which commands find their configuration."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TypeVar

import click

from tb_tidy_plugin.configuration.checks import Wanted, checks_of, limits_of
from tb_tidy_plugin.configuration.files import Configuration, find_configuration, read_configuration

R = TypeVar("R")


def with_configuration(command: Callable[..., R]) -> Callable[..., R]:
    """Gives `command` the configuration that its `--config` and `--isolated` ask for, as its first argument."""

    @click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Use this file instead of the nearest `tb-tidy.toml` or `pyproject.toml`.",
    )
    @click.option("--isolated", is_flag=True, help="Use no configuration file.")
    @wraps(command)
    def configured(config: Path | None, isolated: bool, **others: object) -> R:
        if config and isolated:
            raise click.UsageError("Give either --config or --isolated.")
        return command(_configuration(config, isolated), **others)

    return configured


def _with_limit_options(command: Callable[..., R]) -> Callable[..., R]:
    """Gives `command`, after its configuration, what its options say by the keys of `[limits]`, as `given`."""

    @click.option("--max-text-gb", type=float, metavar="GB", help="Refuse traces with more text, inflated; usually 16.")
    @click.option("--max-inflation", type=float, metavar="TIMES", help="Refuse gz that inflates more; usually 300.")
    @wraps(command)
    def limited(
        configuration: Configuration, max_text_gb: float | None, max_inflation: float | None, **others: object
    ) -> R:
        limits = {"max-text-gb": max_text_gb, "max-inflation": max_inflation}
        given = {key: value for key, value in limits.items() if value is not None}
        return command(configuration, given=given, **others)

    return limited


def with_limits(command: Callable[..., R]) -> Callable[..., R]:
    """Gives `command` how much a trace may hold, by its configuration and its options, as `limits`."""

    @with_configuration
    @_with_limit_options
    @wraps(command)
    def limited(configuration: Configuration, given: dict[str, float], **others: object) -> R:
        return command(limits=limits_of(configuration.settings.limits | given, str(configuration.path)), **others)

    return limited


def with_checks(command: Callable[..., R]) -> Callable[..., R]:
    """Gives `command` what its configuration and its `--rule`, `--select` and `--ignore` ask for, as first argument."""

    @with_configuration
    @click.option(
        "--rule", "only", multiple=True, metavar="RULE", help="Check only this rule; may be given several times."
    )
    @click.option(
        "--select",
        callback=_listed,
        multiple=True,
        metavar="RULES",
        help="Check these instead of what the configuration selects: names, codes, code prefixes, categories or ALL, "
        "separated by commas.",
    )
    @click.option("--ignore", callback=_listed, multiple=True, metavar="RULES", help="Do not check these.")
    @_with_limit_options
    @wraps(command)
    def chosen(
        configuration: Configuration,
        only: tuple[str, ...],
        select: tuple[str, ...],
        ignore: tuple[str, ...],
        given: dict[str, float],
        **others: object,
    ) -> R:
        if only and (select or ignore):
            raise click.UsageError("Give either --rule or --select and --ignore.")
        return command(checks_of(configuration, Wanted(only, select, ignore, given)), **others)

    return chosen


def _listed(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for each in given for name in each.split(",") if name.strip())


def _configuration(config: Path | None, isolated: bool) -> Configuration:
    if config:
        return read_configuration(config)
    try:
        return Configuration() if isolated else find_configuration(Path.cwd())
    except FileNotFoundError:  # the current folder is there no more
        return Configuration()
