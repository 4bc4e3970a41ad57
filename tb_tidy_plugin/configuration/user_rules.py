"""The user's own rules, from Python files and from entry points of installed packages."""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeVar, get_args

from tb_tidy_plugin.configuration import trust
from tb_tidy_plugin.configuration.files import Configuration, near
from tb_tidy_plugin.rulekit import AnyRule, Rule, carried
from tb_tidy_plugin.rulekit.evidence import names_in
from tb_tidy_plugin.rulekit.page import page_of
from tb_tidy_plugin.rulekit.rule import Need
from tb_tidy_plugin.words.errors import ConfigurationError

Loaded = TypeVar("Loaded")

ENTRY_POINTS = "tb_tidy.rules"
LOADED_AS = "tb_tidy_user_rules.user"
"""The package of a file's module, which gives its rules the category `user`."""

FILE_NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
_CODE = re.compile(r"[A-Z]+[1-9][0-9]*")
SEE_GUIDE = "See “Rules of your own” in CONTRIBUTING.md."


def with_user_rules(configuration: Configuration, catalogue: Sequence[type[AnyRule]]) -> tuple[type[AnyRule], ...]:
    """The catalogue, followed by the rules that the configuration names.

    Raises:
        ConfigurationError: a rule cannot be loaded, is incomplete, has the name or code of another one, or yields to
            a rule that does not exist or yields to it.
    """
    known = list(catalogue)
    for rule in _user_rules(configuration):
        for other in known:
            if taken := [name for name in (rule.name(), rule.code) if name in {other.name(), other.code}]:
                error = f"{_described(rule)} is called `{taken[0]}`, and so is {_described(other)}."
                raise ConfigurationError(error, "Give it another name, and a code with other letters.")
        known.append(rule)
    _check_precedence(known[len(catalogue) :], known)
    return tuple(known)


def _check_precedence(own: Sequence[type[AnyRule]], known: Sequence[type[AnyRule]]) -> None:
    """Checks that all rules that the user's `own` ones yield to are `known`, and none yields to itself in the end.

    Raises:
        ConfigurationError: they are not; says which.
    """
    by_name = {rule.name(): rule for rule in known if issubclass(rule, Rule)}
    for rule in own:
        for name in rule.yields_to if issubclass(rule, Rule) else ():
            if name not in by_name:
                error = f"{_described(rule)} yields to `{name}`, but no rule over one profile has this name."
                raise ConfigurationError(error, near(name, by_name) or "`tb-tidy rules` lists all rules.")
    try:
        TopologicalSorter({name: rule.yields_to for name, rule in by_name.items()}).prepare()
    except CycleError as problem:
        circle = ", ".join(f"`{name}`" for name in problem.args[1][:-1])
        raise ConfigurationError(f"Rules yield to one another: {circle}.", "Remove one from `yields_to`.") from None


def _user_rules(configuration: Configuration) -> Iterator[type[AnyRule]]:
    folder = configuration.path.parent if configuration.path else Path()
    for name in configuration.settings.rules:
        if name.endswith(".py"):
            rule = _from_file(folder / name, configuration.sources.get(name))
        else:
            rule = _from_entry_point(name, configuration)
        _check_whole(rule)
        yield rule


def content_of(path: Path) -> trust.Content:
    """The content of a file that `rules` names.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        return trust.read(path)
    except (OSError, ValueError) as problem:
        error = f"There is no file `{path}`, which `rules` names."
        if not isinstance(problem, FileNotFoundError):
            reason = getattr(problem, "strerror", None) or str(problem)
            error = f"`{path}`, which `rules` names, cannot be read: {reason}."
        raise ConfigurationError(error, "Check the path in `rules`.") from None


def _from_file(path: Path, source: bytes | None) -> type[AnyRule]:
    """The rule in a file; `source` is its content if it was read before, which is then executed."""
    if not FILE_NAME.fullmatch(path.stem):
        error = f"`{path}` cannot contain a rule, because the file's name becomes the rule's name."
        raise ConfigurationError(error, "Name the file in lower-case words joined by underscores.")
    content = content_of(path).data if source is None else source
    name = f"{LOADED_AS}.{path.stem}"
    module = _guarded(f"`{path}`", lambda: carried.run(name, content, str(path)), path)
    rules = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, AnyRule) and value.__module__ == name
    ]
    concrete = [rule for rule in rules if not inspect.isabstract(rule)]
    if len(concrete) != 1:
        held = ", ".join(f"`{rule.__name__}`" for rule in concrete) or "none"
        lacking = [f"`{rule.__name__}` has no `detect`" for rule in rules if inspect.isabstract(rule)]
        error = f"`{path}` must contain one class derived from `Rule`, but contains {'; '.join([held, *lacking])}."
        raise ConfigurationError(error, SEE_GUIDE)
    return concrete[0]


def _from_entry_point(name: str, configuration: Configuration) -> type[AnyRule]:
    installed = entry_points(group=ENTRY_POINTS)
    found = {point.value: point for point in installed if point.name == name}
    if len(found) != 1:
        kind = f"entry point `{name}` in the group `{ENTRY_POINTS}`"
        error = f"`rules` in `{configuration.path}`: no installed package has an {kind}."
        if found:
            error = f"`rules` in `{configuration.path}`: there is more than one {kind}: {', '.join(sorted(found))}."
        known = sorted({point.name for point in installed})
        advice = near(name, known) or "Install the package that has it, or give the path of a `.py` file."
        raise ConfigurationError(error, advice)
    (point,) = found.values()
    rule: object = _guarded(f"The entry point `{name}` (`{point.value}`)", point.load)
    if not (isinstance(rule, type) and issubclass(rule, AnyRule)) or inspect.isabstract(rule):
        raise ConfigurationError(f"The entry point `{name}` (`{point.value}`) is not a class of a rule.", SEE_GUIDE)
    return rule


def _guarded(what: str, load: Callable[[], Loaded], file: Path | None = None) -> Loaded:
    """The result of `load`; an error in the user's code names its line."""
    try:
        return load()
    except (Exception, SystemExit) as problem:
        text = problem.msg if isinstance(problem, SyntaxError) else str(problem)
        error = f"{what} cannot be imported: {_line_of(problem, file)}{type(problem).__name__}: {text.rstrip('.')}."
        raise ConfigurationError(error, "Fix it, or remove it from `rules`.") from problem


def _line_of(problem: BaseException, file: Path | None) -> str:
    """The innermost line of the user's file that led to `problem`, else of any file except Python's import system."""
    if isinstance(problem, SyntaxError):
        return f"line {problem.lineno} of `{problem.filename}`: "
    frames = [
        frame
        for frame in traceback.extract_tb(problem.__traceback__)
        if frame.filename not in {__file__, carried.__file__} and "importlib" not in frame.filename
    ]
    frames = [frame for frame in frames if frame.filename == str(file)] or frames
    return f"line {frames[-1].lineno} of `{frames[-1].filename}`: " if frames else ""


def _check_whole(rule: type[AnyRule]) -> None:
    """Checks that a rule is complete, before a report is made with it.

    Raises:
        ConfigurationError: it is not; says what is missing.
    """
    if complaint := next(_complaints(rule), None):
        raise ConfigurationError(f"{_described(rule)} is not a complete rule: {complaint}.", SEE_GUIDE)


def _complaints(rule: type[AnyRule]) -> Iterator[str]:
    for name in ("code", "message", "why", "fix"):
        if not isinstance(getattr(rule, name, None), str):
            yield f"it has no `{name}`"
    if not _CODE.fullmatch(rule.code):
        yield f"the code `{rule.code}` is not capital letters and a number, as in `MY1`"
    texts = [getattr(rule, name, "") for name in ("message", "why", "fix")]
    if lacking := sorted(set().union(*map(names_in, texts)) - rule.names()):
        of_struct = "no evidence; derive it from `Rule[Evidence]`, with `Evidence` a `msgspec.Struct`"
        has = of_struct if rule.evidence() is None else "evidence without them"
        yield f"its texts name {', '.join(f'`{name}`' for name in lacking)}, and it has {has}"
    yields_to: object = getattr(rule, "yields_to", ())
    if not (isinstance(yields_to, tuple) and all(isinstance(name, str) for name in yields_to)):
        yield "`yields_to` is not a tuple of names of rules"
    if unknown := sorted(rule.needs - set(get_args(Need))):
        yield f"`needs` knows {', '.join(get_args(Need))}, and not {', '.join(unknown)}"
    try:
        page_of(rule)
    except ValueError as problem:
        yield str(problem)


def _described(rule: type[AnyRule]) -> str:
    module = sys.modules[rule.__module__]
    return f"`{rule.__name__}` in `{module.__file__}`" if module.__file__ else f"`{rule.__name__}`"
