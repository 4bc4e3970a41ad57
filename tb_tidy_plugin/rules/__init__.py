"""The catalogue: one rule per module of a category, found by walking the folders."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

import tb_tidy_plugin.rulekit as tt


@cache
def all_rules() -> tuple[type[tt.Rule], ...]:
    """Every rule over one profile, by code."""
    return tuple(rule for rule in catalogue() if issubclass(rule, tt.Rule))


@cache
def all_run_rules() -> tuple[type[tt.RunRule], ...]:
    """Every rule over the ranks of a run, by code."""
    return tuple(rule for rule in catalogue() if issubclass(rule, tt.RunRule))


@cache
def catalogue() -> tuple[type[tt.AnyRule], ...]:
    """Every rule of either kind, by code."""
    categories = [importlib.import_module(f"{__name__}.{category.name}") for category in pkgutil.iter_modules(__path__)]
    found = [
        _rule_in(f"{category.__name__}.{module.name}")
        for category in categories
        for module in pkgutil.iter_modules(category.__path__)
    ]
    return tuple(sorted(found, key=lambda rule: int(rule.code.removeprefix("TT"))))


def _rule_in(module_name: str) -> type[tt.AnyRule]:
    module = importlib.import_module(module_name)
    rules = [value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module_name]
    (rule,) = [value for value in rules if issubclass(value, tt.AnyRule)]
    return rule


def source_of(rule: type[tt.AnyRule]) -> Path:
    """The source file of a rule; `__init__.py` of its folder if its detectors lie beside it."""
    return Path(str(importlib.import_module(rule.__module__).__file__))
