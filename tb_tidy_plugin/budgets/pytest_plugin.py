"""Entry point of the `pytest11` group.

pytest imports this module at the start of every run: an exception here would stop pytest itself. So it imports only
the standard library and pytest, and everything else when a test uses the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tb_tidy_plugin.budgets.tidy import Tidy

_UPDATE = "--tidy-baseline-update"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that stores baselines."""
    group = parser.getgroup("torchtidy")
    group.addoption(
        _UPDATE,
        action="store_true",
        help="Store the step times of this run in .torchtidy/ as baselines of this machine",
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Names the stored baselines."""
    for path in config.stash.get(_WRITTEN, []):
        terminalreporter.write_line(f"torchtidy: baseline stored in {path}")


_WRITTEN = pytest.StashKey[list[Path]]()


@pytest.fixture
def tidy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tidy]:
    """Records steps of a test, and holds them to a budget: `tidy.profile()`."""
    try:
        from tb_tidy_plugin.budgets.baselines import StepBaselines
        from tb_tidy_plugin.budgets.tidy import Tidy
    except ImportError as missing:
        pytest.fail(f"The fixture `tidy` cannot be loaded: {missing}. Install `tb-tidy-plugin` again.", pytrace=False)
    root, config = request.config.rootpath, request.config
    baselines = StepBaselines(root / ".torchtidy", request.node.nodeid, update=bool(config.getoption(_UPDATE)))
    yield Tidy(tmp_path / "torchtidy", root, baselines, pytest.skip)
    config.stash.setdefault(_WRITTEN, []).extend(baselines.written)
