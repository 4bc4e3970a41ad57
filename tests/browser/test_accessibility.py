"""Every view for everybody: axe in both themes and at several widths, all of it by keyboard, nothing that must move."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Frame, FrameLocator, expect

from tests.browser.conftest import COLOURS, Tab

pytestmark = pytest.mark.browser

UNTIDY, TIDY = "image_classifier_untidy", "image_classifier_tidy"
WIDTHS = (1400, 1920, 1280, 768, 700, 390, 320)
ZOOMED = (640, 400)  # what 1280 x 800 pixels hold at 200 %
MOST_TABS = 80

VIEWS: dict[str, tuple[dict[str, str], str]] = {
    "runs": ({"view": "runs"}, "instead of writing attention out"),
    "overview": ({"run": UNTIDY, "view": "overview"}, "Quality of the trace"),
    "findings": ({"run": UNTIDY}, "Fix saves about"),
    "operators": ({"run": UNTIDY, "view": "operators"}, "aten::"),
    "kernels": ({"run": UNTIDY, "view": "kernels"}, "Not in this recording"),
    "modules": ({"run": UNTIDY, "view": "modules"}, "Sequential_0"),
    "memory": ({"run": UNTIDY, "view": "memory"}, "profile_memory"),
    "cpu": ({"run": UNTIDY, "view": "cpu"}, "train.py"),
    "roofline": ({"run": UNTIDY, "view": "roofline"}, "Not in this recording"),
    "flame": ({"run": UNTIDY, "view": "flame"}, "Inside All"),
    "timeline": ({"run": UNTIDY, "view": "timeline"}, "Zoom out"),
    "source": ({"run": UNTIDY, "view": "source", "file": "train.py"}, "Line costs"),
    "ranks": ({"run": "two_ranks", "view": "ranks"}, "World size 2"),
    "compare": ({"view": "compare", "cmp": UNTIDY, "with": TIDY}, "largest difference first"),
    "no findings": ({"run": TIDY}, "checks passed"),
    "broken": ({"run": "broken"}, "could not be read"),
}
"""By name: the link, and a text that is there once the view is drawn."""


def opened(tab: Tab, view: str) -> FrameLocator:
    link, shows = VIEWS[view]
    frame = tab.open(**link)
    expect(frame.locator("body")).to_contain_text(shows)
    return frame


def inner(tab: Tab) -> Frame:
    """The plugin's own document; with axe in it, which its policy would not let it load."""
    frame = next(each for each in tab.page.frames if "plugin_entry" in each.url)
    frame.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
    return frame


ALL_ELSE: dict[str, Any] = {"rules": {"color-contrast": {"enabled": False}}}
"""All that a width can change: colours are those of any other, and half of the work."""


def violations(
    frame: Frame, options: dict[str, Any] | None = None, where: str = "document.body"
) -> list[tuple[str, str]]:
    """What axe finds wrong; passes, which are most of its work, are not described."""
    asked = {"resultTypes": ["violations"], "preload": False, **(options or {})}
    found = frame.evaluate(f"options => axe.run({where}, options)", asked)["violations"]
    return [(each["id"], node["html"][:200]) for each in found for node in each["nodes"]]


@pytest.mark.parametrize("view", VIEWS)
def test_no_violation_in_either_theme_at_any_width(tab: Tab, view: str) -> None:
    frame = opened(tab, view)
    document = inner(tab)
    for width in WIDTHS:
        tab.page.set_viewport_size({"width": width, "height": 900})
        tab.page.wait_for_timeout(200)
        assert document.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"wider than {width} px"
        themes = {WIDTHS[0]: (("dark", COLOURS), ("light", None)), WIDTHS[-1]: (("light", ALL_ELSE),)}.get(width, ())
        for theme, options in themes:
            tab.page.evaluate("dark => document.body.classList.toggle('dark-mode', dark)", theme == "dark")
            expect(frame.locator("html")).to_have_attribute("data-theme", theme)
            assert violations(document, options) == [], f"{theme}, {width} px"


@pytest.mark.parametrize("dialog", ["Settings", "Keyboard shortcuts (?)", "Export", "How “Costs” is found"])
def test_no_violation_in_what_opens_above_a_view(tab: Tab, dialog: str) -> None:
    frame = opened(tab, "findings")
    frame.get_by_role("button", name=dialog, exact=True).click()
    expect(frame.locator("dialog[open], :popover-open")).to_be_visible()
    above = "document.querySelector('dialog[open], :popover-open')"
    for theme, options in (("light", None), ("dark", COLOURS)):
        tab.page.evaluate("dark => document.body.classList.toggle('dark-mode', dark)", theme == "dark")
        expect(frame.locator("html")).to_have_attribute("data-theme", theme)
        assert violations(inner(tab), options, above) == []
    tab.page.keyboard.press("Escape")
    expect(frame.locator("dialog[open], :popover-open")).to_have_count(0)
    expect(frame.get_by_role("button", name=dialog, exact=True)).to_be_focused()


@pytest.mark.parametrize("view", ["overview", "findings", "operators", "modules", "cpu", "source", "ranks", "compare"])
def test_the_tab_key_comes_to_every_control_and_out_again(tab: Tab, view: str) -> None:
    """A control that is skipped, or one that holds the focus, is for the mouse only."""
    opened(tab, view)
    document = inner(tab)
    document.evaluate("document.body.focus()")
    wanted = set(document.evaluate(STOPS))
    assert len(wanted) > 5
    tab.page.locator("iframe").focus()
    reached: list[int] = []
    for _ in range(2 * len(wanted) + MOST_TABS):  # a view that was just drawn may have the focus in its middle
        tab.page.keyboard.press("Tab")
        reached.append(document.evaluate(FOCUSED))
        if wanted <= set(reached):
            break
    assert [document.evaluate(NAMED, stop) for stop in sorted(wanted - set(reached))] == []


STOPS = """() => {
  const shown = (each) => each.checkVisibility({ visibilityProperty: true }) && !each.closest('.virtual-row');
  const all = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')];
  const stops = all.filter((each) => each.tabIndex >= 0 && !each.disabled && shown(each));
  const radios = (each) => each.type === 'radio' && !each.checked;
  return stops.filter((each) => !radios(each)).map((each, index) => { each.dataset.stop = index; return index; });
}"""
"""Numbers all that Tab should come to, but for rows of tables, which come and go as they scroll."""

FOCUSED = "document.hasFocus() ? Number(document.activeElement?.dataset.stop ?? -1) : -2"

NAMED = "stop => document.querySelector(`[data-stop='${stop}']`)?.outerHTML.slice(0, 200) ?? 'gone'"


def test_views_are_chosen_by_arrows_and_a_finding_is_read_without_a_mouse(tab: Tab) -> None:
    frame = opened(tab, "findings")
    frame.get_by_role("tab", name="Findings").focus()
    tab.page.keyboard.press("ArrowRight")
    expect(frame.get_by_role("tab", name="Operators")).to_have_attribute("aria-selected", "true")
    tab.page.keyboard.press("ArrowLeft")
    frame.get_by_role("listbox", name="Findings").get_by_role("option").first.focus()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    expect(frame.get_by_role("heading", level=1)).to_be_focused()
    tab.page.keyboard.press("Tab")
    expect(frame.get_by_role("button", name="How “Fix saves about” is found")).to_be_focused()
    tab.page.keyboard.press("Enter")
    expect(frame.get_by_text("All steps are computed again", exact=False)).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(frame.get_by_role("heading", level=1)).to_be_visible()
    expect(frame.get_by_role("button", name="How “Fix saves about” is found")).to_be_focused()


@pytest.mark.parametrize("view", ["overview", "findings", "compare"])
def test_at_200_per_cent_nothing_is_cut_off(tab: Tab, view: str) -> None:
    opened(tab, view)
    tab.page.set_viewport_size({"width": ZOOMED[0], "height": ZOOMED[1]})
    tab.page.wait_for_timeout(200)
    document = inner(tab)
    assert document.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cut = document.evaluate(
        "[...document.querySelectorAll('button, h1, h2, label')].filter((each) => each.checkVisibility()"
        " && !each.closest('.hidden, .skip') && getComputedStyle(each).overflow === 'hidden'"
        " && each.scrollWidth > each.clientWidth + 1).map((each) => each.outerHTML.slice(0, 120))"
    )
    assert cut == []


def test_nothing_moves_for_who_does_not_want_it(tab: Tab) -> None:
    tab.page.emulate_media(reduced_motion="reduce")
    opened(tab, "overview")
    moving = "[...document.querySelectorAll('*')].filter((each) => getComputedStyle(each).transitionDuration !== '0s'"
    assert inner(tab).evaluate(f"{moving} || getComputedStyle(each).animationName !== 'none').length") == 0


@pytest.mark.parametrize("view", ["runs", "overview", "findings", "memory", "flame", "timeline", "compare"])
def test_with_forced_colours_what_is_chosen_is_still_seen(tab: Tab, view: str) -> None:
    tab.page.emulate_media(forced_colors="active")
    frame = opened(tab, view)
    assert violations(inner(tab), COLOURS) == []
    chosen = frame.get_by_role("tab", selected=True)
    other = frame.get_by_role("tab", selected=False).first
    border = "each => getComputedStyle(each).borderBottomColor"
    assert chosen.evaluate(border) != other.evaluate(border)


@pytest.mark.parametrize("view", ["overview", "findings", "compare"])
def test_with_forced_colours_the_charts_are_still_seen(tab: Tab, view: str) -> None:
    tab.page.emulate_media(forced_colors="active")
    frame = opened(tab, view)
    columns = frame.locator(".strip-column > span").evaluate_all(
        "all => all.map((each) => getComputedStyle(each).background)"
    )
    assert len(set(columns)) > 2 or view == "findings"
    if view != "compare":
        colours = frame.locator(".stacked-part").evaluate_all(
            "all => all.map((each) => getComputedStyle(each).background)"
        )
        assert len(set(colours)) > 1


def test_every_chart_has_its_table(tab: Tab) -> None:
    frame = opened(tab, "overview")
    buttons = frame.get_by_role("button", name="Show as table")
    charts = buttons.count()
    assert charts == 2
    for button in buttons.all():
        button.focus()
        tab.page.keyboard.press("Enter")
    expect(frame.get_by_role("main").get_by_role("table")).to_have_count(charts + 1)  # and that of the entries
