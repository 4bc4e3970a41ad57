"""Rules for transfer to another process, which may be on a machine without the user's own files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import msgspec

from tb_tidy_plugin.rulekit.rule import AnyRule, Rule

_TEXT = "__carried__"
"""The attribute in which a module keeps its source text."""


class CarriedRule(msgspec.Struct, frozen=True):
    """A rule by the name of its class.

    Attributes:
        module, name: of the class.
        settings: see `AnyRule.settings`.
        text, file: of a module that cannot be imported by name; the text is empty if it can.
    """

    module: str
    name: str
    settings: Mapping[str, float]
    text: bytes = b""
    file: str = ""


class CarriedRules:
    """Rules that can be pickled; in this process they are just the rules."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)

    def __reduce__(self) -> tuple[Callable[[tuple[CarriedRule, ...]], CarriedRules], tuple[tuple[CarriedRule, ...]]]:
        return _unpacked, (tuple(_packed(rule) for rule in self.rules),)


def _unpacked(rules: tuple[CarriedRule, ...]) -> CarriedRules:
    return CarriedRules(_rule_of(rule) for rule in rules)


def _packed(rule: Rule) -> CarriedRule:
    name, kind = type(rule).__module__, type(rule).__qualname__
    if _can_be_found(name):
        return CarriedRule(name, kind, rule.settings)
    file = str(sys.modules[name].__file__)
    text = vars(sys.modules[name]).get(_TEXT) or Path(file).read_bytes()
    return CarriedRule(name, kind, rule.settings, text, file)


def _can_be_found(module: str) -> bool:
    package = module.partition(".")[0]
    return find_spec(package) is not None


def _rule_of(rule: CarriedRule) -> Rule:
    """The rule; executes the text of its module if that is new here."""
    module = sys.modules.get(rule.module) if rule.text else import_module(rule.module)
    if module is None or (rule.text and vars(module).get(_TEXT, rule.text) != rule.text):
        module = run(rule.module, rule.text, rule.file)
    kind: type[AnyRule] = getattr(module, rule.name)
    assert issubclass(kind, Rule)
    return kind(rule.settings)


def run(name: str, text: bytes, file: str) -> ModuleType:
    """A module made from the text of a file, now in `sys.modules`, since its docstring is its rule's page.

    Only this text runs: not the current content of the file, and no compiled code beside it, which others may have
    written.
    """
    module = ModuleType(name)
    module.__file__ = file
    vars(module)[_TEXT] = text
    sys.modules[name] = module
    try:
        exec(compile(text, file, "exec", dont_inherit=True), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module
