"""An analysis that was killed is made again from the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import fresh_tab
from tests.support.logdirs import trace
from tests.support.served import needs_the_installed_plugin, tensorboard
from tests.support.user_rule import write_rule

pytestmark = pytest.mark.browser

LIMIT_MS = 60_000


def test_a_trace_whose_worker_was_killed_is_analysed_again_on_request(browser: Browser, tmp_path: Path) -> None:
    needs_the_installed_plugin()
    trace(tmp_path / "runs" / "job" / "w.1.pt.trace.json")
    mended = tmp_path / "mended"
    dies = f"        import os\n        os.path.exists({str(mended)!r}) or os.kill(os.getpid(), 9)\n"
    write_rule(tmp_path, "r.py", ("        for row in", f"{dies}        for row in"))
    (tmp_path / "tb-tidy.toml").write_text('rules = ["r.py"]\nselect = ["TT999"]\nthresholds.r = { min-share = 0 }\n')
    flags = ("--torchtidy_config", str(tmp_path / "tb-tidy.toml"), "--torchtidy_cache", "off")
    with (
        tensorboard("--logdir", str(tmp_path / "runs"), *flags, folder=tmp_path, without=("torch_profiler",)) as board,
        fresh_tab(browser, board) as tab,
    ):
        frame = tab.open()
        main = frame.get_by_role("main")
        expect(main).to_contain_text("killed twice, most likely because memory ran out", timeout=LIMIT_MS)
        mended.touch()
        frame.get_by_role("button", name="Try again").click()
        row = frame.get_by_role("listbox", name="Findings").get_by_role("option")
        expect(row).to_contain_text("Add instead", timeout=LIMIT_MS)
