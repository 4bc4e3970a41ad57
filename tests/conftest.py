"""Rules of the whole test run."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

# No test asserts an absolute time, and a busy machine takes any time.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

NEVER_SKIPPED_IN_CI = ("browser", "torch")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a missing browser or torch is a failure: a skip would look like a pass."""
    report = yield
    if report.skipped and os.environ.get("CI") and any(map(item.get_closest_marker, NEVER_SKIPPED_IN_CI)):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, which must run it: {report.longrepr}"
    return report
