"""The configuration file, with each key checked before its use."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import get_args, get_origin

import msgspec

from tb_tidy_plugin.system.decoders import convert
from tb_tidy_plugin.words.errors import ConfigurationError

OWN_FILE, PROJECT_FILE = "tb-tidy.toml", "pyproject.toml"
_TABLE = "tb-tidy"

EXAMPLES = {
    "select": 'select = ["TT2", "python_loops"]',
    "ignore": 'ignore = ["zero-grad-memset"]',
    "per-path-ignores": 'per-path-ignores = { "tests/**" = ["ALL"] }',
    "rules": 'rules = ["checks/my_rule.py"]',
    "thresholds": "thresholds.zero-grad-memset = { min-share = 0.02 }",
    "limits": "limits = { max-text-gb = 16, max-inflation = 300 }",
    "device": 'device = "NVIDIA H100 80GB HBM3"',
    "devices": 'devices."NVIDIA GeForce RTX 2080 Ti" = { gigabytes-per-second = 616, float32 = 13.4 }',
}
"""An example line for each key, shown for a value of another type."""

PLACE_IN_VALUE = re.compile(r"Expected (?P<expected>.+), got (?P<got>.+?)(?: - at `\$(?P<where>.*)`)?")
_WORDS = {"array": "a list", "str": "a string", "object": "a table", "bool": "true or false", "int | float": "a number",
         "int": "a number", "float": "a number"}  # fmt: skip
"""msgspec's names of types, in words."""


class ConfigurationSettings(msgspec.Struct, frozen=True, rename="kebab"):
    """Content of a configuration file.

    Attributes:
        select: selectors of the rules to check.
        ignore: selectors of rules that are not checked.
        per_path_ignores: selectors of rules whose findings are left out, by glob of their files.
        rules: the user's own rules: paths of Python files, names of entry points.
        thresholds: numbers by threshold, by rule.
        limits: limits on traces.
        device: name of the device of recordings that do not name theirs.
        devices: peak rates by the name of a device.
    """

    select: list[str] = msgspec.field(default_factory=lambda: ["ALL"])
    ignore: list[str] = []
    per_path_ignores: dict[str, list[str]] = {}
    rules: list[str] = []
    thresholds: dict[str, dict[str, int | float]] = {}
    limits: dict[str, int | float] = {}
    device: str = ""
    devices: dict[str, dict[str, int | float]] = {}


KEYS = {each.encode_name: each.type for each in msgspec.structs.fields(ConfigurationSettings)}


class Configuration(msgspec.Struct, frozen=True):
    """Settings and their file.

    Attributes:
        settings: the settings to use.
        path: of the file; None if there is none.
        sources: the content of the files in `settings.rules`, by name, as far as the checks read them.
        withheld: keys of the file that are not used, or not in full, because somebody else could have written it.
        doubt: why somebody else could have, as a clause.
    """

    settings: ConfigurationSettings = msgspec.field(default_factory=ConfigurationSettings)
    path: Path | None = None
    sources: Mapping[str, bytes] = msgspec.field(default_factory=dict)
    withheld: tuple[str, ...] = ()
    doubt: str = ""

    @property
    def lacks_rules(self) -> bool:
        """True if an unknown name may be that of a withheld rule."""
        return "rules" in self.withheld


def read_configuration(path: Path) -> Configuration:
    """The configuration in a file that the user named.

    Raises:
        ConfigurationError: it cannot be used.
    """
    try:
        settings = settings_of(path, path.read_bytes())
    except OSError as problem:
        raise unreadable_file(path, problem) from None
    if settings is None:
        advice = f"Add one, or write the keys without a table into a file `{OWN_FILE}`."
        raise ConfigurationError(f"`{path}` has no table `[tool.{_TABLE}]`.", advice)
    return Configuration(settings, path)


def settings_of(path: Path, content: bytes) -> ConfigurationSettings | None:
    """The settings in the content of a file; None for a `pyproject.toml` without our table.

    Raises:
        ConfigurationError: it cannot be used.
    """
    table = _table(path, content)
    return None if table is None else _settings(path, table)


def unreadable_file(path: Path, problem: OSError) -> ConfigurationError:
    """The error for a file that cannot be read."""
    reason = problem.strerror or type(problem).__name__
    return ConfigurationError(f"`{path}` cannot be read: {reason}.", "Check the path.")


def near(name: str, known: Iterable[str]) -> str | None:
    """A question with the known name that is similar to `name`; None if none is."""
    import difflib

    found = difflib.get_close_matches(name, list(known), 1)
    return f"Did you mean `{found[0]}`?" if found else None


def _table(path: Path, content: bytes) -> dict[str, object] | None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        document: dict[str, object] = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as problem:  # the former include invalid bytes, and numbers of 5,000 digits
        raise ConfigurationError(f"`{path}` is not valid TOML: {problem}.", "Fix the file.") from None
    if path.name != PROJECT_FILE:
        return document
    tool = document.get("tool")
    table = tool.get(_TABLE) if isinstance(tool, dict) else None
    if table is None or isinstance(table, dict):
        return table
    raise ConfigurationError(f"`tool.{_TABLE}` in `{path}` is not a table.", f"Write its keys below `[tool.{_TABLE}]`.")


def _settings(path: Path, table: dict[str, object]) -> ConfigurationSettings:
    for key, value in table.items():
        if key not in KEYS:
            advice = near(key, KEYS) or f"Known keys: {', '.join(KEYS)}."
            raise ConfigurationError(f"`{path}` has an unknown key `{key}`.", advice)
        _check(path, (key,), value, KEYS[key])
    return convert(table, ConfigurationSettings)


def _check(path: Path, key: tuple[str, ...], value: object, kind: object) -> None:
    """Checks that `value` has this type; for a table, the error names the wrong entry."""
    try:
        convert(value, kind)
    except msgspec.ValidationError as problem:
        if isinstance(value, dict) and get_origin(kind) is dict:
            for name, inner in value.items():
                _check(path, (*key, name), inner, get_args(kind)[1])
        raise _wrong_type(path, key, str(problem)) from None


def _wrong_type(path: Path, key: tuple[str, ...], problem: str) -> ConfigurationError:
    match = PLACE_IN_VALUE.fullmatch(problem)
    name = ".".join(part if re.fullmatch(r"[\w-]+", part) else f'"{part}"' for part in key)
    advice = f"Write it as in `{EXAMPLES[key[0]]}`."
    if match is None:
        return ConfigurationError(f"`{name}` in `{path}` is wrong: {problem}.", advice)
    expected, got = (_WORDS.get(word.strip("`"), word) for word in (match["expected"], match["got"]))
    return ConfigurationError(f"`{name}{match['where'] or ''}` in `{path}` must be {expected}, but is {got}.", advice)
