"""Chromium, and a TensorBoard that serves the sample runs beside broken traces."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, FrameLocator, Page, Request, expect, sync_playwright

from tests.support.recorded_ranks import record
from tests.support.recordings import ROOT
from tests.support.served import Served, needs_the_installed_plugin, tensorboard
from tests.support.step_recordings import recording
from tests.support.waiting import PATIENCE_S

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium") or ""
SWITCHES = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip
expect.set_options(timeout=PATIENCE_S * 1000)

BARE, TENSORBOARDS = "bare.html", ""
"""Pages around the plugin's. That of TensorBoard takes longer to load than a test takes, so most have this one."""

AROUND = """<!doctype html><title>TensorBoard</title>
<body style="margin: 0"><iframe style="border: 0; width: 100%; height: 100vh" src="{source}"></iframe>"""
ENTRY = "data/plugin_entry.html?name=torchtidy"
HARMLESS = ("Multiple instances of Three.js",)  # TensorBoard's own page says this


UNFOLDED = """try {
  localStorage.getItem('torchtidy.unfolded') ?? localStorage.setItem('torchtidy.unfolded', 'why,evidence,small');
} catch {}"""
"""As one who has opened the folded parts of findings before: the tests look at what is in them."""


COLOURS: dict[str, Any] = {"runOnly": ["color-contrast"]}
"""All that a theme can change, for a test that has axe look at everything in another one."""


@dataclass
class Tab:
    """The TorchTidy tab in a browser page, and everything the browser complained about."""

    page: Page
    address: str
    around: str = TENSORBOARDS
    complaints: list[str] = field(default_factory=list)
    unanswered: set[Request] = field(default_factory=set)

    def open(self, **link: str) -> FrameLocator:
        """Opens the tab, with the deep link's keys, and waits until it has painted."""
        keys = "".join(f"&p.torchtidy.{key}={value}" for key, value in link.items())
        self.follow(f"#torchtidy{keys}")
        self.frame.get_by_text("TorchTidy").first.wait_for()
        return self.frame

    def follow(self, link: str) -> None:
        """Opens a link that was copied, in a window that showed something else."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}{self.around}{link}")

    @property
    def frame(self) -> FrameLocator:
        """The plugin's own page inside TensorBoard's."""
        return self.page.frame_locator("iframe")

    @property
    def hash(self) -> str:
        """What a user would copy."""
        return str(self.page.evaluate("location.hash"))

    def asks(self, request: Request) -> None:
        """Counts a request that is under way."""
        self.unanswered.add(request)

    def hears(self, request: Request) -> None:
        """Counts its answer, or its failure."""
        self.unanswered.discard(request)

    def note(self, message: ConsoleMessage) -> None:
        """Keeps what should not have been said."""
        if message.type in {"error", "warning"} and not any(text in message.text for text in HARMLESS):
            self.complaints.append(f"{message.type}: {message.text}")


@pytest.fixture(scope="session")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sample runs, a run of two ranks, one whose fifth step is an outlier, and runs whose traces are broken.

    They are as many as the page analyses unasked.
    """
    folder = tmp_path_factory.mktemp("runs")
    for sample in (ROOT / "sample_runs").iterdir():
        if any(sample.glob("*.pt.trace.json*")) and sample.name != "decoder_training_gpu_tidy":
            shutil.copytree(sample, folder / sample.name)
    for rank, comes_us in enumerate((1000, 8000)):  # the second one is late
        record(folder / "two_ranks", rank, comes_us)
    recording(folder / "one_slow_step", operators_us=1000, slow_step=4)
    for name, data in {"broken": b"not a trace", "empty": b""}.items():
        (folder / name).mkdir()
        (folder / name / "worker.1.pt.trace.json").write_bytes(data)
    return folder


@pytest.fixture(scope="session")
def served(logdir: Path) -> Iterator[Served]:
    """One TensorBoard for all browser tests."""
    needs_the_installed_plugin()
    with tensorboard("--logdir", str(logdir), folder=logdir.parent) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all browser tests; a missing one fails, since the page would go untested."""
    assert CHROMIUM, "Chromium is missing: `apt-get install chromium`, or set CHROMIUM to its path"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture
def around() -> str:
    """The page around the plugin's; a module whose tests are about TensorBoard's own has its own fixture."""
    return BARE


@pytest.fixture
def tab(browser: Browser, served: Served, around: str) -> Iterator[Tab]:
    """A fresh page; afterwards nothing may have been complained about."""
    with fresh_tab(browser, served, around) as tab:
        yield tab


@contextmanager
def fresh_tab(browser: Browser, served: Served, around: str = BARE) -> Iterator[Tab]:
    """The tab in a page of its own, for tests that need a TensorBoard of their own or several pages."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(PATIENCE_S * 1000)
    page.add_init_script(UNFOLDED)
    tab = Tab(page, served.address, around)
    page.route(f"**/{BARE}", lambda route: route.fulfill(content_type="text/html", body=AROUND.format(source=ENTRY)))
    page.on("console", tab.note)
    page.on("pageerror", lambda error: tab.complaints.append(f"uncaught: {error}"))
    page.on("request", tab.asks)
    page.on("requestfinished", tab.hears)
    page.on("requestfailed", tab.hears)
    yield tab
    page.close()
    assert tab.complaints == []
