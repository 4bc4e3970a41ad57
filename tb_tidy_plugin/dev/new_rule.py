"""A new rule and its test, with every section in place and nothing registered anywhere."""

from __future__ import annotations

import re
from pathlib import Path

from tb_tidy_plugin.rules import catalogue

_NAME = re.compile(r"(?P<category>[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*)/(?P<name>[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*)")
_CURES = frozenset({"use", "avoid", "prefer"})
"""First words of a name that names the cure instead of the pattern."""

FIRST_CODE, LAST_CODE = 101, 9999

_CATEGORY = '"""TODO: what the patterns of this category have in common."""\n'

_PAGE = '''"""TODO: the pattern in a few words.

## What it finds
TODO: what stands in the code and what of it the profile shows.

## Why it is slow
TODO: what the machine does because of it.

## Example
```python
slow = 1  # TODO: code with the pattern
```

Use instead:
```python
fast = 1  # TODO: the same code without it
```

## How the saving is estimated
TODO: what `remedy` takes away, and why by this much.

## When it stays quiet
TODO: the near misses, each with its test.
"""
'''

RULE = f'''{_PAGE}
from collections.abc import Iterator

import msgspec

import tb_tidy_plugin.rulekit as tt

OPERATOR = "aten::todo"


class Evidence(msgspec.Struct, frozen=True):
    """TODO: what was found.

    Attributes:
        op: TODO: what the texts, `remedy` and `benchmark` read of it.
        time: what it takes.
    """

    op: str
    time: tt.Nanoseconds


class {{class_name}}(tt.Rule[Evidence]):
    """TODO: the pattern in one sentence."""

    code = "{{code}}"
    needs = frozenset({{{{"shapes"}}}})
    action = "TODO: what to do in a few words"
    message = "`{{{{op}}}}` takes {{{{time}}}}"
    why = "TODO: the numbers and thresholds behind the finding. Reported for {{{{min_call_ns}}}} per call or more"
    fix = "TODO: what to do instead of `{{{{op}}}}`"

    min_call_ns = tt.Threshold(1_000, "TODO: why this number")

    def detect(self, profile: tt.Profile) -> Iterator[tt.Match[Evidence]]:
        for row in profile.named(OPERATOR).tolist():
            if profile.duration_ns(row) >= self.min_call_ns:
                evidence = Evidence(profile.name(row), tt.Nanoseconds(profile.duration_ns(row)))
                yield tt.Match(anchor=row, events=(row,), evidence=evidence)

    def remedy(self, profile: tt.Profile, match: tt.Match[Evidence]) -> Iterator[tt.Edit]:
        yield tt.Remove(match.events)
'''

RULE_OF_CALLS = f'''{_PAGE}
import tb_tidy_plugin.rulekit as tt


class {{class_name}}(tt.LibraryCallRule):
    """TODO: the pattern in one sentence."""

    code = "{{code}}"
    frames = r"^todo/library\\.py\\(\\d+\\): function$"
    action = "TODO: what to do in a few words"
    message = "`function()` runs {{{{times}}}} per step and takes {{{{time}}}}"
    why = "TODO: the numbers behind the finding. Reported for {{{{min_call_ns}}}} per step or more"
    fix = "TODO: what to do instead of `function()`"

    min_call_ns = tt.Threshold(1_000, "TODO: why this number")

    def is_worth(self, calls: tt.LibraryCalls) -> bool:
        return calls.time >= self.min_call_ns
'''

TEST = '''"""{name}: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit.testing import draw, matches_of, saving_ns
from tb_tidy_plugin.rules.{category}.{module} import {class_name}

SLOW = """
{drawing}
"""


class TestReports:
    def test_todo(self) -> None:
        assert len(matches_of({class_name}, draw(SLOW))) == {matches}
        pytest.fail("to be written: what {name} reports")


class TestSaves:
    def test_todo(self) -> None:
        assert saving_ns({class_name}, draw(SLOW)) == (0, 190_000, 190_000)
        pytest.fail("to be written: what removing {name} saves, counted by hand")


class TestStaysQuiet:
    def test_todo(self) -> None:
        assert matches_of({class_name}, draw(SLOW.replace({near_miss}))) == ()
        pytest.fail("to be written: the near misses of {name}, one test each")
'''

_OPERATOR_DRAWN = """\
    ProfilerStep#1        0-900
      train.py(9): step   1-899
        aten::todo        10-200  dims=64x64  types=float"""

_CALLS_DRAWN = """\
    ProfilerStep#1                            0-900
      train.py(9): step                       1-899
        todo/library.py(5): function          10-200
    ProfilerStep#2                            1000-1900
      train.py(9): step                       1001-1899
        todo/library.py(5): function          1010-1200"""


class RuleNameError(Exception):
    """A rule cannot have this name; the message says why."""


def write_rule(root: Path, name: str, *, calls: bool = False) -> list[Path]:
    """Writes the rule `category/name` and its test below `root`, and returns the files written.

    Args:
        root: the repository.
        name: category and name.
        calls: True for a rule whose pattern is calls of a library function in the steps.

    Raises:
        RuleNameError: the name breaks the naming rules or is taken.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise RuleNameError(f"{name!r} is not a CATEGORY/NAME in lower-case words joined by underscores or hyphens.")
    category, module = match["category"].replace("-", "_"), match["name"].replace("-", "_")
    words = module.split("_")
    if words[0] in _CURES:
        raise RuleNameError(f"A name says the pattern, not the cure: {module} begins with {words[0]!r}.")
    folder = root / "tb_tidy_plugin" / "rules" / category
    if (folder / f"{module}.py").exists() or "-".join(words) in {rule.name() for rule in catalogue()}:
        raise RuleNameError(f"There is a rule called {'-'.join(words)} already.")
    values = {
        "category": category,
        "module": module,
        "name": "-".join(words),
        "class_name": "".join(word.capitalize() for word in words),
        "code": next_code(category),
        "drawing": _CALLS_DRAWN if calls else _OPERATOR_DRAWN,
        "matches": "2" if calls else "1",
        "near_miss": '"library.py", "another.py"' if calls else '"10-200", "10-10"',
    }
    files = {
        folder / "__init__.py": _CATEGORY,
        folder / f"{module}.py": (RULE_OF_CALLS if calls else RULE).format(**values),
        root / "tests" / "rules" / category / f"test_{module}.py": TEST.format(**values),
    }
    return [path for path, text in files.items() if _written(path, text)]


def next_code(category: str) -> str:
    """The code after the last one of the category, else the first of a free hundred, else the first free one."""
    used = {int(rule.code.removeprefix("TT")): rule.category() for rule in catalogue()}
    own = [code for code, other in used.items() if other == category]
    free = [code for code in range(FIRST_CODE, LAST_CODE + 1) if code not in used]
    hundreds = {code // 100 for code in used}
    after = [code for code in free if own and code > max(own)]
    new_hundred = [code for code in free if code // 100 not in hundreds and code % 100]
    return f"TT{(after or new_hundred or free)[0]}"


def _written(path: Path, text: str) -> bool:
    """Writes the file unless it exists; True if it was written."""
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return True
