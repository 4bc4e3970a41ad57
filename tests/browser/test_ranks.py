"""The Ranks view as a user meets it: eight real ranks, one of them slowed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FrameLocator, Locator, expect

import tb_tidy_plugin
from tb_tidy_plugin.report.model import RunReport
from tb_tidy_plugin.report.rank_model import Ranks
from tb_tidy_plugin.words.units import Nanoseconds
from tests.browser.conftest import Tab
from tests.support.columns import in_column
from tests.support.gloo_ranks import SLOWED_RANK, WORLD
from tests.support.served import Served, needs_the_installed_plugin, tensorboard

pytestmark = [pytest.mark.browser, pytest.mark.torch]


@pytest.fixture(scope="module")
def served(gloo_jobs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A TensorBoard of its own, on one job of several ranks."""
    needs_the_installed_plugin()
    logdir = tmp_path_factory.mktemp("ranks")
    shutil.copytree(gloo_jobs / "slowed", logdir / "slowed")
    with tensorboard("--logdir", str(logdir), folder=logdir.parent) as running:
        yield running


@pytest.fixture(scope="module")
def run(gloo_jobs: Path) -> RunReport:
    (run,) = tb_tidy_plugin.analyze(gloo_jobs / "slowed").runs
    return run


@pytest.fixture
def ranks(run: RunReport) -> Ranks:
    assert run.ranks is not None
    return run.ranks


def opened(tab: Tab) -> Locator:
    """The table's rows, once all ranks are read."""
    frame = tab.open(run="slowed", view="ranks")
    expect(frame.get_by_text(f"World size {WORLD}: all ranks are here.")).to_be_visible()
    return table(frame).get_by_role("row")


def table(frame: FrameLocator) -> Locator:
    return frame.get_by_role("table", name="Table of ranks")


@pytest.mark.timed
def test_names_the_slowed_rank(tab: Tab, run: RunReport, ranks: Ranks) -> None:
    rows = opened(tab)
    slowed = ranks.rows[SLOWED_RANK]
    assert slowed.arrivals is not None
    expect(rows).to_have_count(WORLD + 1)
    expect(rows.nth(1)).to_contain_text(f"Rank {SLOWED_RANK}")
    expect(rows.nth(1)).to_contain_text(in_column(Nanoseconds(slowed.arrivals.waited_ns)))
    expect(rows.nth(1)).to_contain_text(f"{slowed.arrivals.last} of {slowed.arrivals.met}")
    findings = tab.frame.get_by_role("region", name="Findings of the ranks").get_by_role("listitem")
    expect(findings.first).to_contain_text(run.findings[0].message.replace("`", ""))
    expect(tab.frame.get_by_role("region", name="Imbalance")).to_contain_text(f"▲ uneven Rank {SLOWED_RANK}")


def test_has_the_figures_of_each_rank(tab: Tab, ranks: Ranks) -> None:
    rows = opened(tab)
    for rank in ranks.rows:
        row = rows.filter(has=tab.frame.get_by_role("button", name=f"Rank {rank.rank}", exact=True))
        assert rank.step_ns is not None
        for time_ns in (rank.step_ns, *rank.parts_ns.values()):
            expect(row).to_contain_text(in_column(Nanoseconds(time_ns)))


def test_leads_to_a_rank_and_back_by_keyboard(tab: Tab) -> None:
    opened(tab)
    tab.frame.get_by_role("button", name=f"Rank {SLOWED_RANK}", exact=True).focus()
    tab.page.keyboard.press("Enter")
    expect(tab.frame.get_by_label("Worker", exact=True)).to_have_value(f"rank{SLOWED_RANK}")
    expect(tab.frame.get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")
    tab.page.go_back()
    expect(table(tab.frame)).to_be_visible()


def test_is_sorted_by_its_headings(tab: Tab, ranks: Ranks) -> None:
    rows = opened(tab)
    table(tab.frame).get_by_role("button", name=re.compile("^Communication")).click()
    most = max(ranks.rows, key=lambda row: row.parts_ns.get("communication", 0))
    expect(rows.nth(1)).to_contain_text(f"Rank {most.rank}")
    expect(rows.last).to_contain_text(f"Rank {SLOWED_RANK}")
