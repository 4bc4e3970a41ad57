"""How soon views are painted after a click, and how smoothly the timeline moves: `python -m tests.browser.painted`.

A shared recording is repeated until it holds 200 MB, and until it holds a million events. `tb-tidy serve` is a process
of its own, with the result in its cache. Times are those of Chromium's clock, from the click to the frame after the one
in which the view stands. The table is written to docs/ui.md.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import CHROMIUM, SWITCHES
from tests.browser.test_timeline import FRAMES
from tests.support.page_parts import write_part
from tests.support.recordings import ROOT
from tests.support.recordings import SHARED as SHARED_FOLDER

RECORDING = SHARED_FOLDER / "traces" / "mi300_ddp8_resnet_checkpoint" / "rank0.pt.trace.json.gz"
DOCUMENT = ROOT / "docs" / "ui.md"
SIZE = (1280, 800)
LIMIT_MS = 120_000
ROUNDS = 3
REPEATS, REPEATS_OF_A_MILLION = 13, 18
FRAME_MS = 1000 / 60
SETTLED_MS = 3000

STANDS: Mapping[str, str] = {
    "Overview": "main .stacked-bar",
    "Operators": "main .server-row:not(.server-head)",
    "Kernels": "main .server-row:not(.server-head)",
    "Roofline": "main .roofline-page svg circle",
    "Modules": "main .server-row:not(.server-head)",
    "Memory": "main svg, main .hero",
    "CPU": "main h2",
    "Flame graph": "main canvas.timeline-canvas",
    "Timeline": "main canvas.timeline-canvas",
    "Source": "main .code-line, main .hero",
    "Compare": "main .sides",
    "Findings": "main h1",
}
"""Of each view, in the order of the clicks, what is there once it stands. Canvases must have been drawn on, too."""

WATCH = """async ([tab, stands]) => {
  const drawn = (canvas) => {
    const { data } = canvas.getContext('2d').getImageData(canvas.width / 2, 0, 1, canvas.height);
    const seen = new Set();
    for (let at = 0; at < data.length; at += 4) seen.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
    return seen.size > 3;
  };
  const isThere = () => {
    const found = document.querySelector(stands);
    return found && (found.tagName !== 'CANVAS' || drawn(found));
  };
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  const began = performance.now();
  tab.click();
  while (!isThere() || tab.getAttribute('aria-selected') !== 'true') {
    if (performance.now() - began > 60_000) throw new Error(`${tab.textContent}: no ${stands}`);
    await frame();
  }
  await frame();
  return performance.now() - began;
}"""


def main() -> None:
    """Measures, and writes the tables."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        size = repeated(folder / "runs" / "large", REPEATS)
        repeated(folder / "million" / "large", REPEATS_OF_A_MILLION)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        with served(folder / "runs", folder / "cache") as address:
            opened(browser, address).close()
        first = []
        for _ in range(ROUNDS):
            began = time.monotonic()
            with served(folder / "runs", folder / "cache") as address:
                page = opened(browser, address)
                first.append(time.monotonic() - began)
                page.close()
        views = painted(browser, folder)
        with served(folder / "million", folder / "cache") as address:
            smooth = frames(browser, address)
        browser.close()
    lines = list(table(size, first, views, smooth))
    text = "\n".join(lines)
    write_part(DOCUMENT, "painted", text)
    sys.stdout.write(f"{text}\n")


def repeated(folder: Path, times: int) -> int:
    """Writes the shared recording so many times, one after the other, and returns the bytes of it."""
    with gzip.open(RECORDING) as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    timed = [each for each in events if each.get("ph") == "X" and each.get("cat") != "Trace"]
    period = max(each["ts"] + each["dur"] for each in timed) - min(each["ts"] for each in timed) + 100
    trace["traceEvents"] = [
        *events,
        *(_moved(each, turn, period) for turn in range(1, times) for each in events if _happens(each)),
    ]
    folder.mkdir(parents=True)
    path = folder / "rank0.pt.trace.json"
    path.write_text(json.dumps(trace), encoding="utf-8")
    return path.stat().st_size


def _happens(event: Mapping[str, Any]) -> bool:
    return "ts" in event and event["ph"] != "M" and event.get("cat") != "Trace"


FAR = 10_000_000
"""More than any number by which events name each other."""
LINKS = ("correlation", "External id", "Ev Idx", "Python id", "Python parent id")


def _moved(event: Mapping[str, Any], turn: int, period: float) -> dict[str, Any]:
    moved = {**event, "ts": event["ts"] + turn * period}
    if isinstance(event.get("id"), int):
        moved["id"] = event["id"] + turn * FAR
    if "args" in event:
        links = {key: event["args"][key] + turn * FAR for key in LINKS if event["args"].get(key)}
        moved["args"] = {**event["args"], **links}
    if step := re.fullmatch(r"ProfilerStep#(\d+)", str(event.get("name"))):
        moved["name"] = f"ProfilerStep#{int(step[1]) + turn * 1000}"
    return moved


@contextmanager
def served(logdir: Path, cache: Path) -> Iterator[str]:
    """The address of `tb-tidy serve`, as soon as it is printed."""
    command = [
        sys.executable,
        "-c",
        "from tb_tidy_plugin.cli.main import script; script()",
        "serve",
        str(logdir),
        "--no-open",
    ]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
        yield address
        process.terminate()


def opened(browser: Browser, address: str) -> Page:
    """The page with its first finding."""
    page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
    page.set_default_timeout(LIMIT_MS)
    page.goto(f"{address}#torchtidy&p.torchtidy.run=large")
    page.locator("main h1").wait_for()
    return page


def painted(browser: Browser, folder: Path) -> dict[str, tuple[list[float], list[float]]]:
    """Milliseconds from click to painted, by view: of the first opening in a server, and of those in later pages."""
    times: dict[str, tuple[list[float], list[float]]] = {view: ([], []) for view in STANDS}
    for _ in range(ROUNDS):
        with served(folder / "runs", folder / "cache") as address:
            for kind in (0, 1):
                page = opened(browser, address)
                page.wait_for_timeout(SETTLED_MS)
                for view, stands in STANDS.items():
                    tab = page.get_by_role("tab", name=view, exact=True).element_handle()
                    times[view][kind].append(page.evaluate(WATCH, [tab, stands]))
                page.close()
    return times


def frames(browser: Browser, address: str) -> tuple[int, list[float], list[float]]:
    """Events on the timeline, ms between frames while the wheel turns, and what drawing takes of each."""
    page = opened(browser, address)
    page.get_by_role("tab", name="Timeline").click()
    canvas = page.locator("main canvas.timeline-canvas")
    canvas.wait_for()
    page.wait_for_timeout(SETTLED_MS)
    events = int(page.get_by_text(re.compile(r"[\d,]+ events in")).first.inner_text().split()[0].replace(",", ""))
    between, drawing = canvas.evaluate(FRAMES)
    page.close()
    return events, between, drawing


def table(
    size: int,
    first: list[float],
    views: Mapping[str, tuple[list[float], list[float]]],
    smooth: tuple[int, list[float], list[float]],
) -> Iterator[str]:
    """The tables, in Markdown."""
    events, between, drawing = smooth
    dropped = sum(round(each / FRAME_MS) - 1 for each in between if each > 1.5 * FRAME_MS)
    yield f"| view, in a run of {size / 1e6:.0f} MB | first opening since the start, ms | in another page, ms |"
    yield "|---|--:|--:|"
    for view, (start, later) in views.items():
        yield f"| {view} | {statistics.median(start):.0f} | {statistics.median(later):.0f} |"
    yield ""
    yield f"- First finding of a run in the cache, from the start of `tb-tidy serve`: {statistics.median(first):.2f} s."
    yield (
        f"- The wheel turned over {events:,} events for {len(between)} frames: {dropped} dropped. Drawing takes "
        f"{statistics.median(drawing):.1f} ms of a frame, and {drawing[int(0.99 * len(drawing))]:.1f} ms in one of 100."
    )


if __name__ == "__main__":
    main()
