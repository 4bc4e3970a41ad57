"""A trace whose strings are all markup and scripts: every view shows them as text, and nothing of them runs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Tab
from tests.support.recordings import ROOT
from tests.support.served import Served, needs_the_installed_plugin, tensorboard

pytestmark = pytest.mark.browser

MARK = "<img src=x onerror=top.harmed=1>"
POISON = f"{MARK}<script>top.harmed=1<\\/script>\"'><svg onload=top.harmed=1>`${{top.harmed=1}}`javascript:top.harmed=1"
SECRET = "ghp_0123456789abcdef"
RUN, BROKEN = f"run {MARK}", f"broken {MARK}"
VIEWS = ["overview", "findings", "source", "operators", "modules", "memory", "cpu", "ranks", "compare", "timeline"]
VIEWS += ["flame", "roofline", "kernels", "runs"]
RUNNING = "img[src='x'], svg[onload], a[href^='javascript:'], iframe, object, embed"


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("poisoned")
    (sample,) = (ROOT / "sample_runs" / "image_classifier_untidy").glob("*.pt.trace.json.gz")
    trace = json.loads(gzip.decompress(sample.read_bytes()))
    trace["traceEvents"] = [poisoned(event) for event in trace["traceEvents"]]
    trace |= {POISON: POISON, "metadata": {"GITHUB_TOKEN": SECRET}, "host_name": SECRET, "traceName": SECRET}
    trace["deviceProperties"] = [{"id": 0, "name": POISON}]
    for rank in range(2):
        trace["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": POISON}
        path = folder / RUN / f"worker{rank} {MARK}.{rank}.pt.trace.json.gz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(json.dumps(trace).encode(), 1))
    (folder / BROKEN).mkdir()
    (folder / BROKEN / f"{MARK}.pt.trace.json").write_text(POISON)
    return folder


def poisoned(event: dict[str, Any]) -> dict[str, Any]:
    """The event with markup in all its strings that no rule looks for."""
    name = str(event.get("name", ""))
    if event.get("cat") == "python_function":
        event |= {"name": name.replace(".py(", f"{MARK}.py(") + (MARK if "): " in name or "nn.Module" in name else "")}
    elif event.get("cat") == "user_annotation" and not name.startswith(("ProfilerStep", "Optimizer", "enumerate")):
        event |= {"name": name + POISON}
    elif event.get("ph") == "M":
        event |= {"args": dict.fromkeys(event.get("args", {}), POISON)}
    if isinstance(event.get("args"), dict):
        event["args"] |= {POISON: POISON}
    return event


@pytest.fixture(scope="module")
def served(logdir: Path) -> Iterator[Served]:
    needs_the_installed_plugin()
    with tensorboard("--logdir", str(logdir), folder=logdir.parent) as running:
        yield running


def nothing_ran(tab: Tab) -> None:
    tab.complaints[:] = [each for each in tab.complaints if "404" not in each]  # the broken run cannot be compared
    assert tab.page.evaluate("window.harmed") is None
    assert tab.frame.locator(RUNNING).count() == 0
    assert not [text for text in tab.frame.locator("script").all_text_contents() if "harmed" in text]
    assert SECRET not in str(tab.frame.locator("body").inner_text())


def test_nothing_of_a_trace_becomes_markup_in_any_view(tab: Tab) -> None:
    frame = tab.open(run=escaped(RUN))
    expect(frame.get_by_role("region", name="Summary of the profile")).to_be_visible()
    file = f"train{MARK}.py"
    for view in VIEWS:
        link = {"file": escaped(file), "line": "3"} if view == "source" else {}
        frame = tab.open(run=escaped(RUN), view=view, **link)
        expect(frame.get_by_text(MARK).first).to_be_attached()
        tab.page.wait_for_load_state("networkidle")
        nothing_ran(tab)


def test_nothing_of_a_finding_becomes_markup(tab: Tab) -> None:
    frame = tab.open(run=escaped(RUN), view="findings")
    options = frame.get_by_role("listbox", name="Findings").get_by_role("option")
    expect(options.first).to_be_visible()
    for at in range(options.count()):
        options.nth(at).click()
        expect(frame.get_by_role("main").get_by_text(MARK).first).to_be_attached()
        nothing_ran(tab)


def test_nothing_of_a_broken_trace_becomes_markup(tab: Tab) -> None:
    frame = tab.open(run=escaped(BROKEN))
    expect(frame.get_by_text("The file is not JSON.").first).to_be_visible()
    nothing_ran(tab)


def test_nothing_of_a_link_becomes_markup(tab: Tab) -> None:
    tab.open(
        run=escaped(POISON), view=escaped(POISON), finding=escaped(POISON), file=escaped(POISON), op=escaped(POISON)
    )
    nothing_ran(tab)
    tab.open(run=escaped(RUN), view="timeline", at=escaped(POISON), folded=escaped(POISON), win=escaped(POISON))
    nothing_ran(tab)


def escaped(text: str) -> str:
    return quote(text, safe="")
