"""From a configuration and a command line to the rules to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from tb_tidy_plugin.analysis.ignores import PathIgnores
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.configuration.devices import checked_device, configured_devices
from tb_tidy_plugin.configuration.files import Configuration, ConfigurationSettings, near
from tb_tidy_plugin.configuration.limits import LARGEST_SETTING, limits_of
from tb_tidy_plugin.configuration.selectors import check_selectors, chosen_rules, named_rules
from tb_tidy_plugin.words.errors import ConfigurationError, NotFoundError

if TYPE_CHECKING:
    from tb_tidy_plugin.rulekit import AnyRule


class WantedRules(msgspec.Struct, frozen=True):
    """Options of a command line about rules; they override the file.

    Attributes:
        only: names or codes of the only rules to check.
        select: selectors instead of those in the file's `select` and `ignore`.
        ignore: selectors of rules to remove from the rest.
        limits: limits on traces, by the keys of `[limits]`.
    """

    only: Sequence[str] = ()
    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    limits: Mapping[str, float] = msgspec.field(default_factory=dict)


def known_rules(configuration: Configuration) -> tuple[type[AnyRule], ...]:
    """The catalogue and the user's own rules.

    Raises:
        ConfigurationError: one of the user's own cannot be used.
    """
    from tb_tidy_plugin.configuration.user_rules import with_user_rules
    from tb_tidy_plugin.rules import catalogue

    return with_user_rules(configuration, catalogue())


def job_of(configuration: Configuration, wanted: WantedRules | None = None) -> Job:
    """Rules with thresholds, ignores and limits from a configuration, and from a command line, which overrides it.

    Raises:
        ConfigurationError: they name something that does not exist.
        NotFoundError: `wanted.only` names a rule that does not exist.
    """
    settings, wanted = configuration.settings, wanted or WantedRules()
    limits = limits_of(settings.limits | dict(wanted.limits), str(configuration.path))
    if settings == ConfigurationSettings(limits=settings.limits) and not (
        wanted.only or wanted.select or wanted.ignore
    ):
        return Job(limits=limits)
    known = known_rules(configuration)
    if not configuration.lacks_rules:
        _check_all_selectors(configuration, known)
    thresholds = _thresholds(configuration, known)
    rules = _chosen(configuration, wanted, known)
    ignored = {
        glob: frozenset(rule.name() for rule in named_rules(selectors, known))
        for glob, selectors in settings.per_path_ignores.items()
    }
    return Job(
        tuple(rule(thresholds.get(rule.name())) for rule in rules),
        PathIgnores(ignored),
        limits=limits,
        devices=configured_devices(settings.devices, str(configuration.path)),
        device=checked_device(settings.device, settings.devices, f"`device` in `{configuration.path}`"),
    )


def rules_called(names: Sequence[str], known: Sequence[type[AnyRule]]) -> tuple[type[AnyRule], ...]:
    """The rules with these names or codes.

    Raises:
        NotFoundError: there is no such rule; suggests a similar name.
    """
    by_name = {rule.name(): rule for rule in known}
    by_code = {rule.code.lower(): rule for rule in known}
    called = []
    for name in names:
        rule = by_name.get(name) or by_code.get(name.lower())
        if rule is None:
            advice = near(name, by_name) or "`tb-tidy rules` lists all rules."
            raise NotFoundError(f"There is no rule `{name}`.", advice)
        called.append(rule)
    return tuple(dict.fromkeys(called))


def _chosen(
    configuration: Configuration, wanted: WantedRules, known: Sequence[type[AnyRule]]
) -> tuple[type[AnyRule], ...]:
    settings = configuration.settings
    if wanted.only:
        return rules_called(wanted.only, known)
    check_selectors(wanted.select, known, "`--select`")
    check_selectors(wanted.ignore, known, "`--ignore`")
    if wanted.select:
        return chosen_rules(wanted.select, wanted.ignore, known)
    gone = named_rules(wanted.ignore, known)
    return tuple(rule for rule in chosen_rules(settings.select, settings.ignore, known) if rule not in gone)


def _check_all_selectors(configuration: Configuration, known: Sequence[type[AnyRule]]) -> None:
    settings = configuration.settings
    lists = {"select": settings.select, "ignore": settings.ignore}
    lists |= {f'per-path-ignores."{glob}"': selectors for glob, selectors in settings.per_path_ignores.items()}
    for key, selectors in lists.items():
        check_selectors(selectors, known, f"`{key}` in `{configuration.path}`")


def _thresholds(configuration: Configuration, known: Sequence[type[AnyRule]]) -> dict[str, Mapping[str, float]]:
    """The thresholds in the form that a rule takes, by rule and attribute."""
    by_name = {rule.name(): rule for rule in known}
    found: dict[str, Mapping[str, float]] = {}
    for name, numbers in configuration.settings.thresholds.items():
        if name not in by_name:
            if configuration.lacks_rules:
                continue
            error = f"`thresholds` in `{configuration.path}` names a rule that does not exist: `{name}`."
            raise ConfigurationError(error, near(name, by_name) or "`tb-tidy rules` lists all rules.")
        found[name] = dict(_threshold(configuration, by_name[name], key, value) for key, value in numbers.items())
    return found


def _threshold(configuration: Configuration, rule: type[AnyRule], key: str, value: float) -> tuple[str, float]:
    from tb_tidy_plugin.rulekit import thresholds

    attributes = {thresholds.shown_name(attribute): attribute for attribute in thresholds.thresholds_of(rule)}
    where = f"`thresholds.{rule.name()}` in `{configuration.path}`"
    if key not in attributes:
        advice = near(key, attributes) or f"It has {', '.join(f'`{each}`' for each in attributes)}."
        raise ConfigurationError(f"{where} has no threshold `{key}`.", advice)
    if not 0 <= value <= LARGEST_SETTING:
        default = thresholds.thresholds_of(rule)[attributes[key]].default
        raise ConfigurationError(f"`{key}` of {where} must be a number, 0 or greater.", f"The default is {default}.")
    return attributes[key], value
