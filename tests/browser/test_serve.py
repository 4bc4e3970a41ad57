"""The page of `tb-tidy serve` in a browser: by itself, under its own policy, and kept up to date."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tb_tidy_plugin.plugin.listener import HOME, Token, address_of, listening
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.server import ServerOptions, server_of
from tests.support.logdirs import trace
from tests.support.recordings import ROOT

pytestmark = pytest.mark.browser

SAMPLE = "image_classifier_untidy"
LIMIT_MS = 60_000
SOON_S = 5
"""docs/ui.md: within this time a new run is on the page."""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "sample_runs" / SAMPLE, tmp_path / SAMPLE)
    return tmp_path


@pytest.fixture
def address(logs: Path) -> Iterator[str]:
    token = Token()
    wanted = ServerOptions(Logdir(str(logs)), cache="off")
    with listening(HOME, 0) as listener, server_of(wanted, token, listener) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield address_of(listener, HOME, token)
        server.shutdown()
        serving.join()


def test_the_page_stands_alone_and_finds_new_runs_by_itself(browser: Browser, address: str, logs: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(LIMIT_MS)
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{address}#torchtidy&p.torchtidy.view=findings")
    findings = page.get_by_role("listbox", name="Findings").get_by_role("option")
    expect(findings.first).to_be_visible(timeout=LIMIT_MS)
    assert "token" not in page.url
    assert "p.torchtidy.view=findings" in page.url
    for view in ("Timeline", "Operators", "Memory"):
        page.get_by_role("tab", name=view).click()
        expect(page.get_by_role("tab", name=view)).to_have_attribute("aria-selected", "true")
        expect(page.get_by_role("main")).not_to_have_attribute("aria-busy", "true")
    trace(logs / "another" / "w.7.pt.trace.json")
    expect(page.get_by_text("another").first).to_be_attached(timeout=LIMIT_MS)
    page.keyboard.press("r")
    expect(page.get_by_role("table", name="Runs").get_by_role("button", name="another")).to_be_visible(timeout=LIMIT_MS)
    page.set_viewport_size({"width": 390, "height": 800})
    expect(page.get_by_role("columnheader", name="Do first")).to_be_hidden()
    table = page.get_by_role("table", name="Runs")
    assert table.evaluate("pane => pane.scrollWidth <= pane.clientWidth")
    assert complaints == []
    page.close()


@pytest.mark.timed
def test_a_new_run_is_soon_on_the_page(browser: Browser, address: str, logs: Path) -> None:
    page = browser.new_page()
    page.goto(address)
    expect(page.get_by_role("listbox", name="Findings")).to_be_visible(timeout=LIMIT_MS)
    trace(logs / "another" / "w.7.pt.trace.json")
    began = time.monotonic()
    expect(page.get_by_text("another").first).to_be_attached(timeout=LIMIT_MS)
    assert time.monotonic() - began < SOON_S
    page.close()


def test_a_link_in_a_page_of_another_site_leads_to_the_same_place(browser: Browser, address: str) -> None:
    """Such as in a chat: there a browser leaves out the strict cookie."""
    page = browser.new_page()
    page.set_default_timeout(LIMIT_MS)
    page.goto(address)
    expect(page.get_by_role("main")).to_be_visible(timeout=LIMIT_MS)
    root = address.partition("?")[0]
    page.route("http://chat.example/", lambda route: route.fulfill(body=link(root), content_type="text/html"))
    page.goto("http://chat.example/")
    page.get_by_role("link").click()
    expect(page.get_by_role("tab", name="Operators")).to_have_attribute("aria-selected", "true", timeout=LIMIT_MS)
    assert page.url.startswith(root)
    page.close()


def link(root: str) -> str:
    return f'<a href="{root}#torchtidy&p.torchtidy.view=operators&p.torchtidy.run={SAMPLE}">look</a>'
