"""Pictures of every view, for the docs: `python -m tests.browser.screens [NAME …]`, or `make screens`.

Each is taken in both themes in a window of 1280×800, and in the light theme at 390 px.

They are taken from a real TensorBoard with the sample runs, so that they show what a new user sees.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, FrameLocator, Page, expect, sync_playwright

import tb_tidy_plugin
from tb_tidy_plugin.render.html import to_html
from tb_tidy_plugin.render.report import report_document
from tests.browser.conftest import CHROMIUM, SWITCHES, UNFOLDED
from tests.support.recorded_ranks import record
from tests.support.recordings import ROOT
from tests.support.served import tensorboard

FOLDER = ROOT / "docs" / "screens"
MOST_BYTES = 120_000
COLOURS = (256, 128, 64)
SIZE = (1280, 800)
NARROW_PX = 390

UNTIDY, TIDY = "image_classifier_untidy", "image_classifier_tidy"
LATE = "two_ranks"


@dataclass(frozen=True, slots=True)
class Screen:
    """A view, how to get there, and a text that is there when it is drawn; `narrow` is that of 390 px if it differs."""

    name: str
    shows: str
    link: dict[str, str] = field(default_factory=dict)
    narrow: str = ""


SCREENS = (
    Screen("runs", "Load batches in worker processes", {"view": "runs"}),
    Screen("overview", "Quality of the trace", {"run": UNTIDY, "view": "overview"}),
    Screen("findings", "Thread or stream", {"run": UNTIDY}, "Passed checks"),
    Screen("operators", "aten::", {"run": UNTIDY, "view": "operators"}),
    Screen("kernels", "Not in this recording", {"run": UNTIDY, "view": "kernels"}),
    Screen("roofline", "Roofline", {"run": UNTIDY, "view": "roofline"}),
    Screen("modules", "Sequential_0", {"run": UNTIDY, "view": "modules"}),
    Screen("memory", "profile_memory", {"run": UNTIDY, "view": "memory"}),
    Screen("cpu", "train.py", {"run": UNTIDY, "view": "cpu"}),
    Screen("flame", "Inside All", {"run": UNTIDY, "view": "flame"}),
    Screen("timeline", "Zoom out", {"run": UNTIDY, "view": "timeline"}),
    Screen("source", "Line costs", {"run": UNTIDY, "view": "source", "file": "train.py", "line": "68"}),
    Screen("ranks", "World size 2", {"run": LATE, "view": "ranks"}),
    Screen("compare", "faster", {"view": "compare", "cmp": UNTIDY, "with": TIDY}),
)


def main(names: Sequence[str]) -> None:
    """Takes the pictures named, all where none is."""
    FOLDER.mkdir(exist_ok=True)
    with _browser() as browser, tempfile.TemporaryDirectory() as folder:
        sources = ("--torchtidy_source_roots", str(ROOT / "sample_runs" / UNTIDY))
        with tensorboard("--logdir", str(_logdir(Path(folder))), *sources, folder=Path(folder)) as served:
            for screen in SCREENS:
                if not names or screen.name in names:
                    _take(browser, served.address, screen, SIZE[0], screen.name, ("light", "dark"))
                    _take(browser, served.address, screen, NARROW_PX, f"{screen.name}-{NARROW_PX}", ("light",))
        if not names or "report" in names:
            _take_report(browser, Path(folder))


@contextmanager
def _browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


def _logdir(folder: Path) -> Path:
    logdir = folder / "runs"
    for sample in (UNTIDY, TIDY, "text_generation_eval"):
        shutil.copytree(ROOT / "sample_runs" / sample, logdir / sample)
    for rank, comes_us in enumerate((1000, 8000)):
        record(logdir / LATE, rank, comes_us)
    return logdir


def _take(browser: Browser, address: str, screen: Screen, width: int, name: str, themes: Sequence[str]) -> None:
    page = browser.new_page(viewport={"width": width, "height": SIZE[1]}, reduced_motion="reduce")
    page.add_init_script(UNFOLDED)
    keys = "".join(f"&p.torchtidy.{key}={value}" for key, value in screen.link.items())
    page.goto(f"{address}#torchtidy{keys}")
    frame = page.frame_locator("iframe")
    shows = (screen.narrow if width == NARROW_PX else "") or screen.shows
    expect(frame.locator("body")).to_contain_text(shows)
    for theme in themes:
        _set_theme(page, frame, theme)
        _save(page.locator("iframe").screenshot(), f"{name}-{theme}")
    page.close()


def _set_theme(page: Page, frame: FrameLocator, theme: str) -> None:
    page.evaluate("dark => document.body.classList.toggle('dark-mode', dark)", theme == "dark")
    expect(frame.locator("html")).to_have_attribute("data-theme", theme)
    page.wait_for_timeout(1500)  # sources are coloured in a worker, bars of the timeline drawn when they come


def _take_report(browser: Browser, folder: Path) -> None:
    file = folder / "report.html"
    file.write_text(
        to_html(report_document(tb_tidy_plugin.analyze(ROOT / "sample_runs" / UNTIDY), "html")), encoding="utf-8"
    )
    for theme in ("light", "dark"):
        page = browser.new_page(viewport={"width": 1000, "height": SIZE[1]}, color_scheme=theme)
        page.goto(file.as_uri())
        _save(page.screenshot(), f"report-{theme}")
        page.close()


def _save(png: bytes, name: str) -> None:
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    reduced = next((each for each in map(partial(_reduced, picture), COLOURS) if len(each) <= MOST_BYTES), None)
    if reduced is None:
        raise SystemExit(f"{name}: too many bytes, whatever the number of colours")
    (FOLDER / f"{name}.png").write_bytes(reduced)
    sys.stdout.write(f"docs/screens/{name}.png: {len(reduced):,} bytes\n")


def _reduced(picture: Image.Image, colours: int) -> bytes:
    """With so many colours; rare ones, such as those of severities, are kept."""
    out = io.BytesIO()
    picture.quantize(colours, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    main(sys.argv[1:])
