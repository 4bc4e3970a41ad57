"""Rules that a selector names: `zero-grad-memset`, `TT302`, `TT3`, `optimizer` or `ALL`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tb_tidy_plugin.configuration.files import near
from tb_tidy_plugin.words.errors import ConfigurationError

if TYPE_CHECKING:
    from tb_tidy_plugin.rulekit import AnyRule

ALL = "ALL"
_PREFIX = re.compile(r"[A-Za-z]+\d*")

# The selector closest to a rule decides. A longer prefix is closer.
NOT_AT_ALL, BY_ALL, BY_CATEGORY, BY_PREFIX, EXACTLY = 0, 1, 2, 3, 100


def closeness(selector: str, rule: type[AnyRule]) -> int:
    """Closeness of `selector` to `rule`, 0 if it does not match."""
    if selector == rule.name() or selector.upper() == rule.code:
        return EXACTLY
    if selector.replace("-", "_") == rule.category():
        return BY_CATEGORY
    if _PREFIX.fullmatch(selector) and rule.code.startswith(selector.upper()):
        return BY_PREFIX + len(selector)
    return BY_ALL if selector == ALL else NOT_AT_ALL


def named_rules(selectors: Sequence[str], known: Sequence[type[AnyRule]]) -> tuple[type[AnyRule], ...]:
    """The rules that any of the selectors names."""
    return chosen_rules(selectors, (), known)


def chosen_rules(
    select: Sequence[str], ignore: Sequence[str], known: Sequence[type[AnyRule]]
) -> tuple[type[AnyRule], ...]:
    """The rules that `select` names more closely than `ignore` does, as in ruff."""
    return tuple(rule for rule in known if _closest(select, rule) > _closest(ignore, rule))


def check_selectors(selectors: Sequence[str], known: Sequence[type[AnyRule]], where: str) -> None:
    """Checks that each selector names a rule.

    Raises:
        ConfigurationError: one does not; suggests a similar name. `where` is its place, in words.
    """
    for selector in selectors:
        if not any(closeness(selector, rule) for rule in known):
            names = {name for rule in known for name in (rule.name(), rule.code, rule.category())}
            advice = near(selector, sorted(names)) or "`tb-tidy rules` lists all rules, with codes and categories."
            raise ConfigurationError(f"`{selector}` in {where} names no rule.", advice)


def _closest(selectors: Sequence[str], rule: type[AnyRule]) -> int:
    return max((closeness(selector, rule) for selector in selectors), default=NOT_AT_ALL)
