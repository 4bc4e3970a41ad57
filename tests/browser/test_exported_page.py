"""The report as a page, in a browser: offline, in both themes, on paper, and whatever a trace put into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

import tb_tidy_plugin
from tb_tidy_plugin.render.html import to_html
from tb_tidy_plugin.render.report import report_document
from tb_tidy_plugin.report.model import CodeChange, Note, Report
from tests.browser.conftest import Tab
from tests.support.recordings import ROOT

pytestmark = pytest.mark.browser

OTHERS = (("light", 320), ("dark", 1000))
"""Of two themes and two widths each is seen without them; `make proof` sees all four."""

UNTIDY = "image_classifier_untidy"
EVIL = (
    "</style></title></script>--><img src=x onerror='document.title=666'><svg onload=document.title=666>"
    "<script>document.title=666</script><a href=javascript:document.title=666>x</a>`<b>`{{ 7*7 }}\u202e\x00\"'"
)


@pytest.fixture(scope="module")
def report() -> Report:
    return tb_tidy_plugin.analyze(ROOT / "sample_runs" / UNTIDY)


@contextmanager
def shown(browser: Browser, file: Path, theme: str = "light", width: int = 1000) -> Iterator[Page]:
    """The page in a context of its own, which must neither ask for anything nor complain."""
    context = browser.new_context(
        color_scheme="dark" if theme == "dark" else "light", viewport={"width": width, "height": 900}, offline=True
    )
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri())
    yield page
    assert asked == [file.as_uri()]
    assert complaints == []
    context.close()


def written(report: Report, folder: Path) -> Path:
    file = folder / "report.html"
    file.write_text(to_html(report_document(report, "html")), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("theme", "width"),
    [("light", 1000), ("dark", 320), *(pytest.param(*other, marks=pytest.mark.proof) for other in OTHERS)],
)
def test_has_no_violation_and_asks_for_nothing(
    browser: Browser, report: Report, tmp_path: Path, theme: str, width: int
) -> None:
    with shown(browser, written(report, tmp_path), theme, width) as page:
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(48, 48, 48)"}[theme]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
        found = page.evaluate("axe.run()")["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_each_finding_of_the_list_leads_to_itself(browser: Browser, report: Report, tmp_path: Path) -> None:
    with shown(browser, written(report, tmp_path)) as page:
        page.locator("summary").filter(has_text="small findings").click()
        seen = Counter[str]()
        for finding in report.runs[0].profiles[0].findings:
            page.get_by_role("link", name=finding.title.replace("`", "")).nth(seen[finding.title]).click()
            seen[finding.title] += 1
            article = page.locator("article:target")
            expect(article).to_contain_text(finding.message.replace("`", ""))
            expect(article).to_be_in_viewport()


def test_on_paper_it_is_dark_on_white_with_all_findings(browser: Browser, report: Report, tmp_path: Path) -> None:
    with shown(browser, written(report, tmp_path), "dark") as page:
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(31, 35, 40)"
        expect(page.locator("article")).to_have_count(len(report.runs[0].profiles[0].findings))
        assert page.pdf(format="A4").startswith(b"%PDF")


def test_nothing_in_a_trace_runs_or_becomes_an_element(browser: Browser, report: Report, tmp_path: Path) -> None:
    profile = report.runs[0].profiles[0]
    finding = profile.findings[0]
    place = msgspec.structs.replace(finding.places[0], file=EVIL, function=EVIL, text=EVIL)
    details = [Note(text=EVIL), CodeChange(before=EVIL, after=EVIL, caveat=EVIL)]
    texts = {"action": EVIL, "message": EVIL, "fix": EVIL, "rule": EVIL}
    finding = msgspec.structs.replace(finding, **texts, places=[place], details=details)
    evil = msgspec.structs.replace(profile, worker=EVIL, path=EVIL, findings=[finding])
    runs = [msgspec.structs.replace(report.runs[0], run=EVIL, profiles=[evil])]
    with shown(browser, written(msgspec.structs.replace(report, runs=runs), tmp_path)) as page:
        assert "666" in page.title()
        assert page.title().startswith("TorchTidy: 1 finding in </style>")
        for element in ("script", "img", "b > *", "article b a", "a[href^=javascript]", "[onerror]", "[onload]"):
            assert page.locator(element).count() == 0, element
        expect(page.locator("article h4")).to_contain_text("<img src=x onerror=")
        assert "\u202e" not in page.content()


def test_the_tab_saves_the_page_of_what_it_lists(tab: Tab, browser: Browser, tmp_path: Path) -> None:
    frame = tab.open(run=UNTIDY)
    options = frame.get_by_role("listbox", name="Findings").get_by_role("option")
    expect(options).to_have_count(5)
    frame.get_by_role("button", name="Mute", exact=True).click()
    expect(options).to_have_count(4)
    frame.get_by_role("button", name="Export").click()
    with tab.page.expect_download() as saving:
        frame.get_by_role("button", name="Download as a page (HTML)").click()
    assert saving.value.suggested_filename == f"torchtidy-{UNTIDY}-workstation.html"
    file = tmp_path / "saved.html"
    saving.value.save_as(file)
    with shown(browser, file) as page:
        expect(page.locator("article")).to_have_count(4)
        expect(page.get_by_text("1 finding muted and left out.")).to_be_visible()
