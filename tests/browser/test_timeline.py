"""The timeline as a user meets it: bars on a canvas, keys, mouse, links, and what is handed to another page."""

from __future__ import annotations

import json
import re
import statistics
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Browser, Download, FrameLocator, Locator, Page, Route, expect

from tests.browser.conftest import COLOURS, Tab, fresh_tab
from tests.support.served import tensorboard
from tests.support.waiting import until

pytestmark = pytest.mark.browser

UNTIDY = "image_classifier_untidy"
GUTTER, AXIS, ROW, GAP = 112, 20, 14, 8
"""Of the canvas, in pixels: names of lanes, times, a row, what is between lanes."""

PIXELS = """canvas => {
  const seen = {};
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < data.length; at += 4) {
    const name = [data[at], data[at + 1], data[at + 2]].join(',');
    seen[name] = (seen[name] ?? 0) + 1;
  }
  return seen;
}"""
ACCENT, LIGHT, DARK = "232,113,10", "255,255,255", "48,48,48"

FRAMES = """async canvas => {
  const [between, drawing] = [[], []];
  const nextFrame = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = callback => nextFrame(time => {
    const began = performance.now();
    callback(time);
    drawing.push(performance.now() - began);
  });
  let last = performance.now();
  for (let at = 0; at < 120; at += 1) {
    const box = canvas.getBoundingClientRect();
    const [clientX, clientY, deltaY] = [box.left + box.width * 0.6, box.top + 100, at % 60 < 30 ? -60 : 60];
    canvas.dispatchEvent(new WheelEvent('wheel', { deltaY, clientX, clientY, bubbles: true, cancelable: true }));
    await new Promise(nextFrame);
    between.push(performance.now() - last);
    last = performance.now();
  }
  window.requestAnimationFrame = nextFrame;
  return [between, drawing].map(times => times.sort((a, b) => a - b));
}"""
"""Times between frames while the wheel turns, and what drawing takes of each, in ms, ascending."""


def strip(frame: FrameLocator) -> Locator:
    return frame.get_by_role("application", name=re.compile("Timeline around a matched event"))


def whole(frame: FrameLocator) -> Locator:
    return frame.get_by_role("application", name=re.compile("^Timeline: "))


def pixels(timeline: Locator) -> dict[str, int]:
    seen: dict[str, int] = timeline.locator("canvas").evaluate(PIXELS)
    return seen


def window(tab: Tab) -> tuple[int, int]:
    """The window in the address, once it has come to rest."""
    before = ""
    while before != tab.hash or "win=" not in before:
        before = tab.hash
        tab.page.wait_for_timeout(500)
    (text,) = parse_qs(before.lstrip("#"))["p.torchtidy.win"]
    first, last = map(int, text.split("-"))
    return first, last


def asked(tab: Tab, route: str, **query: object) -> Any:  # noqa: ANN401 - any JSON
    """What the server answers about the profile on the page."""
    rest = "".join(f"&{name}={value}" for name, value in query.items())
    found = tab.page.request.get(f"{tab.address}data/plugin/torchtidy/api/runs").json()
    (run,) = [run for run in found["runs"] if run["run"] == UNTIDY]
    profile = run["profiles"][0]
    key = f"run={UNTIDY}&worker={profile['worker']}&span={profile['span']}"
    return tab.page.request.get(f"{tab.address}data/plugin/torchtidy/api/{route}?{key}{rest}").json()


def settled(tab: Tab) -> None:
    """Waits until all slices have arrived and three looks at what is drawn are the same."""
    canvas, seen = tab.frame.locator("canvas").first, [""]

    def rests() -> bool:
        tab.page.wait_for_timeout(200)
        seen.append(canvas.evaluate("canvas => canvas.toDataURL()"))
        waits = any("/timeline" in each.url for each in tab.unanswered)
        return not waits and len(seen) > 3 and len(set(seen[-3:])) == 1

    until(rests)


def test_a_row_of_the_evidence_and_the_strip_are_one(tab: Tab) -> None:
    frame = tab.open(run=UNTIDY)
    table = frame.get_by_role("table", name="Matched events")
    table.scroll_into_view_if_needed()
    row = table.get_by_role("row").nth(2)
    start = row.get_by_role("cell").first.inner_text()
    row.click()
    expect(row).to_have_attribute("aria-current", "true")
    expect(strip(frame)).to_have_attribute("aria-label", re.compile(re.escape(f"starts at {start}")))
    assert "event=" in tab.hash
    strip(frame).focus()
    tab.page.keyboard.press("]")
    expect(table.get_by_role("row").nth(3)).to_have_attribute("aria-current", "true")
    expect(frame.get_by_text("event 3 of 3", exact=True)).to_be_visible()
    table.focus()
    tab.page.keyboard.press("ArrowUp")
    expect(row).to_have_attribute("aria-current", "true")
    strip(frame).scroll_into_view_if_needed()
    settled(tab)
    assert pixels(strip(frame))[ACCENT] > 100  # what is matched has the accent's colour
    assert strip(frame).bounding_box()["height"] <= 162  # type: ignore[index]


def test_the_keys_of_the_page_are_not_taken(tab: Tab) -> None:
    frame = tab.open(run=UNTIDY)
    strip(frame).wait_for()
    frame.get_by_role("heading", level=1).click()
    tab.page.keyboard.press("t")
    expect(strip(frame)).to_be_focused()
    tab.page.keyboard.press("s")  # zooms out here
    expect(strip(frame)).to_be_visible()
    frame.get_by_role("heading", level=1).click()
    tab.page.keyboard.press("s")  # shows the source there
    expect(strip(frame)).to_have_count(0)


def test_by_mouse(tab: Tab) -> None:
    frame = tab.open(run=UNTIDY, view="timeline", win="0-100000000")
    box = whole(frame).bounding_box()
    assert box is not None
    settled(tab)
    mouse, plot = tab.page.mouse, box["width"] - GUTTER
    x, y = box["x"] + GUTTER + plot / 4, box["y"] + 100
    mouse.move(x, y)
    mouse.wheel(0, -400)
    first, last = window(tab)
    assert last - first < 60_000_000
    assert abs(first + (last - first) / 4 - 25_000_000) < 600_000  # what is under the pointer has stayed there
    mouse.down()
    mouse.move(x - 200, y, steps=4)
    mouse.up()
    moved = window(tab)
    assert moved[0] - first == pytest.approx(200 * (last - first) / plot, rel=0.05)
    tab.page.keyboard.down("Shift")
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + plot / 4, y, steps=4)
    mouse.up()
    tab.page.keyboard.up("Shift")
    expect(frame.get_by_text(re.compile(r"^[\d.]+ ms chosen\.$"))).to_be_visible()
    mouse.dblclick(x, y)
    assert window(tab) == (0, asked(tab, "timeline/lanes")["until_ns"])


def test_a_click_tells_what_the_server_knows_of_the_event(tab: Tab) -> None:
    frame = tab.open(run=UNTIDY, view="timeline")
    lanes = asked(tab, "timeline/lanes")
    bars = asked(tab, "timeline", from_ns=0, to_ns=lanes["until_ns"], width=1000, lanes=1)["bars"]
    at = max((at for at in range(len(bars["id"])) if bars["depth"][at] == 3), key=lambda at: bars["duration_ns"][at])
    box = whole(frame).bounding_box()
    assert box is not None
    settled(tab)
    middle = (bars["start_ns"][at] + bars["duration_ns"][at] / 2) / lanes["until_ns"]
    lane_top = AXIS + ROW + GAP  # below the steps
    tab.page.mouse.click(box["x"] + GUTTER + middle * (box["width"] - GUTTER), box["y"] + lane_top + 3.5 * ROW)
    facts = frame.get_by_role("region", name="The marked event")
    event = asked(tab, "timeline/event", event=bars["id"][at])
    expect(facts.get_by_role("heading")).to_have_text(event["name"])
    assert f"event={event['id']}" in tab.hash
    facts.get_by_role("button", name=event["inside"]["name"]).click()
    expect(facts.get_by_role("heading")).to_have_text(event["inside"]["name"])


def test_a_link_opens_the_same_event_and_window(tab: Tab) -> None:
    frame = tab.open(run=UNTIDY)
    frame.get_by_role("button", name="Whole timeline").click()
    heading = frame.get_by_role("region", name="The marked event").get_by_role("heading")
    name, label = heading.inner_text(), whole(frame).get_attribute("aria-label")
    shown, link = window(tab), tab.hash
    tab.follow(link)
    expect(tab.frame.get_by_role("region", name="The marked event").get_by_role("heading")).to_have_text(name)
    expect(whole(tab.frame)).to_have_attribute("aria-label", label or "")
    assert window(tab) == shown
    tab.page.go_back()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_both_themes_without_violations(tab: Tab, dark: bool) -> None:
    for link in ({"run": UNTIDY}, {"run": UNTIDY, "view": "timeline"}):
        frame = tab.open(**link)
        timeline = whole(frame) if "view" in link else strip(frame)
        timeline.scroll_into_view_if_needed()
        tab.page.evaluate("dark => document.body.classList.toggle('dark-mode', dark)", dark)
        frame.get_by_role("button", name="Open in Perfetto…").click()
        settled(tab)
        seen = pixels(timeline)
        assert max(seen, key=lambda colour: seen[colour]) in ({DARK} if dark else {LIGHT}) | {"85,85,85", "209,217,224"}
        assert (DARK in seen, LIGHT in seen) == (dark, not dark)
        (inner,) = [each for each in tab.page.frames if "plugin_entry" in each.url]
        inner.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
        options = COLOURS if dark else {}
        found = inner.evaluate("options => axe.run('#torchtidy', options)", options)
        assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]] == []


STUB = """<!doctype html><title>stub</title><script>
window.addEventListener('message', event => {
  if (event.data === 'PING') event.source.postMessage('PONG', event.origin);
  else document.title = String(JSON.parse(new TextDecoder().decode(event.data.perfetto.buffer)).traceEvents.length);
});
</script>"""


def _stubbed(page: Page, body: str) -> None:
    def answer(route: Route) -> None:
        route.fulfill(content_type="text/html", body=body)

    page.context.route("https://ui.perfetto.dev/**", answer)


def _hand_over(tab: Tab, frame: FrameLocator) -> Page:
    frame.get_by_role("button", name="Open in Perfetto…").click()
    with tab.page.context.expect_page() as opened:
        frame.get_by_role("button", name="Open ui.perfetto.dev").click()
    return opened.value


def test_a_part_is_handed_to_perfetto_after_a_click(tab: Tab) -> None:
    _stubbed(tab.page, STUB)
    frame = tab.open(run=UNTIDY, view="timeline", win="0-20000000")
    whole(frame).wait_for()
    assert len(tab.page.context.pages) == 1
    other = _hand_over(tab, frame)
    expect(frame.get_by_text("Handed to ui.perfetto.dev.")).to_be_visible()
    other.wait_for_function("Number(document.title) > 100")
    other.close()


def test_a_perfetto_that_does_not_answer_gets_nothing(tab: Tab) -> None:
    _stubbed(tab.page, "<!doctype html><title>silent</title>")
    frame = tab.open(run=UNTIDY, view="timeline")
    other = _hand_over(tab, frame)
    expect(frame.get_by_text(re.compile("did not answer within 5 seconds"))).to_be_visible()
    assert other.title() == "silent"
    other.close()


def test_the_cropped_trace_is_a_file(tab: Tab) -> None:
    frame = tab.open(run=UNTIDY, view="timeline", win="0-20000000")
    with tab.page.expect_download() as saving:
        frame.get_by_role("button", name="Download cropped trace").click()
    download: Download = saving.value
    crop = json.loads(Path(download.path()).read_text())
    assert download.suggested_filename == f"torchtidy-{UNTIDY}-crop.pt.trace.json"
    assert {event["ph"] for event in crop["traceEvents"]} >= {"M", "X"}
    assert crop["torchtidy"]["to_ns"] == 20_000_000


HOSTILE = "<img src=x onerror=\"document.title='hit'\"><script>document.title='hit'</script>"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace whose every name is HTML, one of them very long."""
    root = tmp_path_factory.mktemp("hostile")
    names = [HOSTILE, HOSTILE + "x" * 100_000, "\u202etxt.exe\u202c \x1b[31mred"]
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": HOSTILE, "tid": HOSTILE, "ts": at * 100.0, "dur": 90.0}
        for at, name in enumerate(names * 20)
    ]
    (root / "run").mkdir()
    (root / "run" / "w.1.pt.trace.json").write_text(json.dumps({"traceEvents": events}))
    return root


def test_names_are_text_whatever_they_hold(browser: Browser, hostile: Path) -> None:
    with tensorboard("--logdir", str(hostile), folder=hostile) as served, fresh_tab(browser, served) as tab:
        frame = tab.open(view="timeline")
        box = whole(frame).bounding_box()
        assert box is not None
        settled(tab)
        x, y = box["x"] + GUTTER + (box["width"] - GUTTER) * 0.005, box["y"] + AXIS + ROW + GAP + 7
        tab.page.mouse.move(x, y)
        expect(frame.get_by_text(HOSTILE).first).to_be_visible()
        tab.page.mouse.click(x, y)
        expect(frame.get_by_role("region", name="The marked event").get_by_role("heading")).to_have_text(HOSTILE)
        (inner,) = [each for each in tab.page.frames if "plugin_entry" in each.url]
        assert inner.evaluate("[document.title, document.images.length]") == ["run · Timeline · TorchTidy", 0]


def test_with_forced_colours_bars_and_their_names_can_be_told_apart(tab: Tab) -> None:
    tab.page.emulate_media(forced_colors="active")
    frame = tab.open(run=UNTIDY, view="timeline")
    whole(frame).wait_for()
    settled(tab)
    seen = pixels(whole(frame))
    background, bar, *_ = sorted(seen.items(), key=lambda each: -each[1])
    dark, middle, light = 0.0, luminance(bar[0]), luminance(background[0])
    assert (light + 0.05) / (middle + 0.05) > 3  # WCAG 2, 1.4.11
    assert (middle + 0.05) / (dark + 0.05) > 4.5  # 1.4.3: names are in the reader's own colour
    assert seen["0,0,0"] > 500


def luminance(colour: str) -> float:
    shares = [int(each) / 255 for each in colour.split(",")]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_minimap_shows_how_busy_the_host_is_and_leads_there(tab: Tab) -> None:
    frame = tab.open(run=UNTIDY, view="timeline", win="0-1000000")
    whole(frame).wait_for()
    settled(tab)
    lanes = asked(tab, "timeline/lanes")
    host = lanes["busy"]["host"]
    minimap = frame.locator(".minimap")
    columns = minimap.evaluate(COLUMNS, GUTTER)
    parts = [int(at * len(host) / len(columns)) for at in range(len(columns))]
    tens = range(0, len(columns), 10)  # a column may be a pixel off
    painted = [sum(columns[at : at + 10]) for at in tens]
    busy = [sum(host[part] for part in parts[at : at + 10]) for at in tens]
    assert statistics.correlation(painted, busy) > 0.95
    box = minimap.bounding_box()
    assert box is not None
    minimap.click(position={"x": GUTTER + (box["width"] - GUTTER) / 2, "y": 10})
    first, last = window(tab)
    assert (first + last) / 2 == pytest.approx(lanes["until_ns"] / 2, rel=0.01)


COLUMNS = """(canvas, gutter) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const inked = (at) => data[at + 3] > 0 && data[at] + data[at + 1] + data[at + 2] < 740;
  return Array.from({ length: canvas.width - gutter - 4 }, (_, column) => {
    let seen = 0;
    for (let row = 2; row < canvas.height - 2; row += 1) seen += inked(4 * (row * canvas.width + gutter + 2 + column));
    return seen;
  });
}"""
"""How much of each column of pixels is painted, right of the names."""


def test_how_long_frames_take(tab: Tab) -> None:
    """No limit here: the machine may be busy. `docs/timeline.md` has figures of large recordings."""
    frame = tab.open(run=UNTIDY, view="timeline")
    whole(frame).wait_for()
    settled(tab)
    between, drawing = whole(frame).locator("canvas").evaluate(FRAMES)
    for what, times in (("from frame to frame", between), ("drawing one", drawing)):
        most = times[len(times) * 95 // 100]
        print(f"\ntimeline, {what}: median {times[len(times) // 2]:.1f} ms, 95th percentile {most:.1f} ms")  # noqa: T201
    assert len(drawing) > 60
