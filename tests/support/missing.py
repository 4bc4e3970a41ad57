"""Packages that only tests need: where one is not installed, its tests are skipped, and say so; in CI they fail."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import tb_tidy_plugin

PACKAGE = Path(tb_tidy_plugin.__file__).parent
REQUIREMENTS = Path(__file__).parents[1] / "requirements.txt"
IMPORTED_AS = {"pyyaml": "yaml"}
BROUGHT_BY_OTHERS = ("boto3", "dask")
NOT_FOUND = re.compile(r"^E\s+ModuleNotFoundError: No module named '(?P<name>\w+)", re.MULTILINE)


def names() -> frozenset[str]:
    """The names under which tests import the packages of `tests/requirements.txt`."""
    return frozenset((*_required(), *BROUGHT_BY_OTHERS))


def _required() -> Iterator[str]:
    for line in REQUIREMENTS.read_text("utf-8").splitlines():
        named = re.match(r"[\w-]+", line)
        if named is not None and not line.startswith("-"):
            name = named[0].replace("-", "_")
            yield IMPORTED_AS.get(name, name)


def is_ci() -> bool:
    """True where everything is installed, so that a skip would hide a failure."""
    return bool(os.environ.get("CI"))


def skip_without(package: str) -> None:
    """Skips the test, before any of its fixtures, if a package that a process of its own needs is not installed."""
    try:
        is_there = find_spec(package) is not None
    except (ImportError, ValueError):  # its import is blocked
        is_there = False
    if not is_there:
        pytest.skip(_reason(package))


def collected(report: pytest.CollectReport, path: Path) -> pytest.CollectReport:
    """The report on a file of tests: skipped if it imports a package that only tests need and that is missing."""
    found = NOT_FOUND.search(str(report.longrepr)) if report.failed else None
    if found is not None and found["name"] in names() and not is_ci():
        report.outcome = "skipped"
        report.longrepr = (str(path), 0, f"Skipped: {_reason(found['name'])}")
    return report


def ran(report: pytest.TestReport, call: pytest.CallInfo[None], item: pytest.Item) -> pytest.TestReport:
    """The same for a test that imports such a package itself, or in a fixture."""
    error = call.excinfo.value if call.excinfo is not None else None
    if not isinstance(error, ModuleNotFoundError) or is_ci() or call.excinfo is None:
        return report
    package, importer = (error.name or "").partition(".")[0], Path(call.excinfo.traceback[-1].path)
    if package in names() and not importer.is_relative_to(PACKAGE):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {_reason(package)}")
    return report


def _reason(package: str) -> str:
    return f"needs the package {package}: `pip install -r tests/requirements.txt`"
