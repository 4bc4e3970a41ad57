"""What the first screen says of shared recordings, beside what people expect: `python -m tests.browser.five_seconds`.

Each recording is opened in Chromium at 1280×736, as it first opens. What is in sight without scrolling is read: the bar
above, the title and the gain. The table is written to docs/ui.md.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tb_tidy_plugin.plugin.listener import HOME, Token, address_of, listening
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.server import ServerOptions, server_of
from tests.browser.conftest import CHROMIUM, SWITCHES
from tests.support.page_parts import write_part
from tests.support.recordings import ROOT
from tests.support.recordings import SHARED as SHARED_FOLDER

SHARED = SHARED_FOLDER / "traces"
DOCUMENT = ROOT / "docs" / "ui.md"
SIZE = (1280, 736)
LIMIT_MS = 120_000
LONGEST = 120

EXPECTED: Mapping[str, str] = {
    "t4_resnet50_fp32": r"mixed precision",
    "v100_ddp_resnet_ns": r"mixed precision",
    "a100_simple_add_startup": r"start",
    "t4_toy_kernels": r"on (the|its) (device|GPU)",
    "rtx2080ti_linear": r"fewer and larger kernels|launch",
    "h100_vit_pipeline": r"fewer and larger kernels|launch",
    "h100_qwen_generate": r"fuse",
    "h100_timesformer_pipeline": r"normalize|host work|preprocess",
    "mi300_bert_pipeline": r"fewer and larger kernels|launch",
    "mi300_sglang_graph_capture": r"capture",
}
"""Words that the first screen must have where it says what people expect: the first advice of `expectations.json`."""


@dataclass(frozen=True, slots=True)
class Screen:
    """What is in sight at first."""

    action: str
    gain: str
    rest: str

    def says(self, words: str) -> bool:
        """Whether the words are among what is in sight."""
        return re.search(words, f"{self.action} {self.gain} {self.rest}", re.IGNORECASE) is not None


def main() -> None:
    """Reads the screens and writes the table."""
    advice = json.loads((SHARED / "expectations.json").read_text(encoding="utf-8"))
    rows = []
    for name, screen in _screens():
        first = advice[name]["advice"][0][0]
        agrees = "yes" if screen.says(EXPECTED[name]) else "**no**"
        cells = (f"`{name}`", screen.action, screen.gain, _short(first), agrees)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        sys.stdout.write(f"{rows[-1]}\n")
    head = "| recording | action | gain | expected | says it |\n|---|---|---|---|---|"
    write_part(DOCUMENT, "five-seconds", "\n".join([head, *rows]))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _screens() -> Iterator[tuple[str, Screen]]:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for name in EXPECTED:
            (Path(folder) / name).symlink_to(SHARED / name)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        with _served(Path(folder)) as address:
            for name in EXPECTED:
                page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
                page.set_default_timeout(LIMIT_MS)
                page.goto(f"{address}#torchtidy&p.torchtidy.run={name}")
                page.get_by_role("main").get_by_role("heading", level=1).wait_for()
                page.locator("[role=progressbar]").first.wait_for(state="detached")
                yield name, _read(page)
                page.close()
        browser.close()


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    token = Token()
    wanted = ServerOptions(Logdir(str(folder), follow_links=True), cache="off")
    with listening(HOME, 0) as listener, server_of(wanted, token, listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield address_of(listener, HOME, token)
        server.shutdown()


def _read(page: Page) -> Screen:
    def seen(where: str) -> str:
        found = page.locator(where)
        boxes = ((each, each.bounding_box()) for each in found.all())
        texts = [each.inner_text() for each, box in boxes if box is not None and box["y"] + box["height"] <= SIZE[1]]
        return " ".join(" ".join(texts).split())

    bar, verdict = seen(".bars .notice"), seen(".verdict")
    gain = seen(".detail .gain-number") or verdict
    return Screen(seen("main h1"), f"{bar} {gain}".strip(), f"{verdict} {seen('.detail .diagnosis, .detail .hero p')}")


if __name__ == "__main__":
    main()
