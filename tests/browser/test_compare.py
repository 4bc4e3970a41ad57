"""The Compare view as a user meets it: the sample runs, before and after their fixes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import FrameLocator, Locator, expect

from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.compare.model import Comparison
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.words.units import Nanoseconds
from tests.browser.conftest import Tab
from tests.support.columns import in_column
from tests.support.recordings import ROOT

pytestmark = pytest.mark.browser

UNTIDY, TIDY = "image_classifier_untidy", "image_classifier_tidy"
SAMPLES = ROOT / "sample_runs"
MOST_TABS = 60


def compared(*arguments: str | Path) -> Comparison:
    """What `tb-tidy compare --format json` says."""
    done = CliRunner().invoke(commands, ["compare", *map(str, arguments), "--format", "json"])
    assert done.exit_code == 0, done.output
    return decode(done.stdout, Comparison)


@pytest.fixture(scope="module")
def truth() -> Comparison:
    return compared(SAMPLES / UNTIDY, SAMPLES / TIDY)


def opened(tab: Tab, **link: str) -> FrameLocator:
    """The view, once the comparison is there."""
    frame = tab.open(**({"view": "compare", "cmp": UNTIDY, "with": TIDY} | link))
    expect(verdict(frame)).to_be_visible()
    return frame


def verdict(frame: FrameLocator) -> Locator:
    return frame.get_by_role("heading", level=2, name=re.compile("faster|slower|No clear difference"))


def side(frame: FrameLocator, name: str) -> Locator:
    return frame.get_by_role("region", name=name, exact=True)


def from_to(base_ns: int, candidate_ns: int) -> str:
    """Both in the unit of the first, which the sample runs' medians share."""
    number, unit = str(Nanoseconds(base_ns)).split()
    assert str(Nanoseconds(candidate_ns)).split()[1] == unit
    return f"{number} → {Nanoseconds(candidate_ns)}"


def column(time_ns: int) -> str:
    return in_column(Nanoseconds(time_ns))


def signed(time_ns: int) -> str:
    return f"{'−' if time_ns < 0 else '+'}{column(abs(time_ns))}"


def test_the_verdict_is_that_of_the_command_line(tab: Tab, truth: Comparison) -> None:
    frame, ratio = opened(tab), truth.step_ratio
    assert truth.verdict == "faster"
    assert ratio is not None
    assert truth.base.median_ns is not None
    assert truth.candidate.median_ns is not None
    expect(verdict(frame)).to_contain_text(
        f"Candidate is {1 / ratio.value:.2f}× faster ({1 / ratio.high:.2f}–{1 / ratio.low:.2f}): "
        f"{from_to(truth.base.median_ns, truth.candidate.median_ns)} per step"
    )
    for note in truth.notes:
        expect(frame.get_by_role("main")).to_contain_text(note.replace("`", ""))
    for name, each in (("Baseline", truth.base), ("Candidate", truth.candidate)):
        expect(side(frame, name)).to_contain_text(f"median {Nanoseconds(each.median_ns or 0)} of {each.steps} steps")


def test_every_promise_stands_beside_what_was_kept(tab: Tab, truth: Comparison) -> None:
    section = side(opened(tab), "Promised and kept")
    assert truth.realised_ns is not None
    alone_ns = sum(each.predicted_ns or 0 for each in truth.findings if each.state == "gone")
    assert 0 < truth.predicted_ns < alone_ns
    expect(section).to_contain_text("Some findings share time, so all together promise less than their sum.")
    lines = section.get_by_role("listitem")
    pairs = [(truth.predicted_ns, truth.realised_ns)]
    pairs += [(each.predicted_ns or 0, each.realised_ns or 0) for each in truth.findings if each.state == "gone"]
    assert len(pairs) > 1
    expect(lines).to_have_count(len(pairs))
    for at, (promised, kept) in enumerate(pairs):
        expect(lines.nth(at)).to_contain_text(f"promised{column(promised)}kept{column(kept)}")


def test_findings_stand_under_what_became_of_them(tab: Tab, truth: Comparison) -> None:
    table = side(opened(tab), "Findings by state")
    for change in truth.findings:
        group = table.get_by_role("rowgroup").filter(has_text=change.state.capitalize())
        row = group.get_by_role("row").filter(has_text=(change.action or change.message).replace("`", ""))
        for place in change.places[:1]:
            row = row.filter(has_text=f":{place.line} in {place.function}")
        cost = [column(each) if each is not None else "–" for each in (change.base_ns, change.candidate_ns)]
        difference = signed((change.candidate_ns or 0) - (change.base_ns or 0))
        expect(row.get_by_role("cell")).to_contain_text([*cost, difference])


def test_parts_and_operators_are_those_of_the_command_line(tab: Tab, truth: Comparison) -> None:
    frame = opened(tab)
    parts, ledger = side(frame, "Parts of the step"), truth.ledger
    assert ledger is not None
    expect(parts).to_contain_text(signed(ledger.candidate_step_ns - ledger.base_step_ns))
    parts.get_by_role("button", name="Show as table").click()
    rows = parts.get_by_role("row")
    expect(rows).to_have_count(len(ledger.entries) + 1)
    for at, part in enumerate(ledger.entries, 1):
        expect(rows.nth(at)).to_contain_text(part.title)
        expect(rows.nth(at)).to_contain_text(f"{column(part.base_ns)}{column(part.candidate_ns)}")
    operators = frame.get_by_role("table", name="Operators").get_by_role("row")
    for at, row in enumerate(truth.operators[:5], 1):
        expect(operators.nth(at)).to_contain_text(row.name)
        expect(operators.nth(at)).to_contain_text(f"{column(row.base_ns)}{column(row.candidate_ns)}")


def test_operators_are_searched_by_the_server(tab: Tab, truth: Comparison) -> None:
    frame = opened(tab)
    wanted = next(row.name for row in truth.operators if "convolution" not in row.name)
    frame.get_by_role("searchbox", name="Search operators and kernels").fill(wanted.upper())
    found = [row for row in truth.operators if wanted in f"{row.name} {row.shapes}"]
    first = frame.get_by_role("table", name="Operators").get_by_role("row").nth(1)
    expect(first).to_contain_text(wanted)
    expect(first).to_contain_text(f"{column(found[0].base_ns)}{column(found[0].candidate_ns)}")


def test_one_step_against_another_of_the_same_run(tab: Tab) -> None:
    frame = opened(tab, cmp=UNTIDY, steps="2", with_steps="3", **{"with": UNTIDY})
    told = compared(SAMPLES / UNTIDY, "--steps", "2", "--with", "3")
    assert told.verdict == "no_clear_difference"
    assert told.base.median_ns is not None
    assert told.candidate.median_ns is not None
    change = from_to(told.base.median_ns, told.candidate.median_ns)
    expect(verdict(frame)).to_contain_text(f"No clear difference: {change} per step")


def test_a_link_opens_the_same_comparison(tab: Tab) -> None:
    frame = opened(tab)
    steps = side(frame, "Candidate").get_by_role("listbox", name="Steps of the candidate").get_by_role("option")
    expect(steps).to_have_count(3)
    steps.nth(1).click()
    steps.nth(2).click(modifiers=["Shift"])
    expect(side(frame, "Candidate")).to_contain_text("of 2 steps")
    tab.page.wait_for_url(re.compile("with_steps=3-4"))
    said, link = verdict(frame).inner_text(), tab.hash
    tab.follow(link)
    expect(verdict(tab.frame)).to_have_text(said)
    expect(side(tab.frame, "Candidate").get_by_role("textbox", name="Steps")).to_have_value("3-4")
    tab.page.go_back()


@pytest.mark.parametrize("run", [TIDY, UNTIDY])
def test_without_a_link_the_run_recorded_first_is_the_baseline(tab: Tab, run: str) -> None:
    """The names of the files have the times of recording."""
    times = {name: next((SAMPLES / name).glob("*.pt.trace.json.gz")).name.split(".")[1] for name in (TIDY, UNTIDY)}
    older, newer = sorted(times, key=lambda name: int(times[name]))
    frame = tab.open(view="compare", run=run)
    expect(side(frame, "Baseline").get_by_label("Run")).to_have_value(older)
    expect(side(frame, "Candidate").get_by_label("Run")).to_have_value(newer)
    tab.page.wait_for_url(re.compile(f"cmp={older}.*with={newer}"))


def test_by_keyboard_alone(tab: Tab, truth: Comparison) -> None:
    frame = tab.open(run=TIDY)
    view = frame.get_by_role("tab", name="Findings")
    expect(view).to_be_visible()
    view.focus()
    tab.page.keyboard.press("c")
    expect(verdict(frame)).to_be_visible()
    tab.page.keyboard.press("Tab")
    tab_to(tab, frame.get_by_role("listbox", name="Steps of the baseline").get_by_role("option").first)
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("Shift+ArrowRight")
    expect(side(frame, "Baseline")).to_contain_text("of 2 steps")
    tab.page.keyboard.press("Escape")
    tab_to(tab, frame.get_by_role("button", name="Swap baseline and candidate"))
    tab.page.keyboard.press("Enter")
    expect(side(frame, "Baseline").get_by_label("Run")).to_have_value(TIDY)
    gone = truth.findings[0]
    for name, run in (("Baseline", UNTIDY), ("Candidate", TIDY)):
        tab_to(tab, side(frame, name).get_by_label("Run"))
        tab.page.keyboard.type(run)
        expect(side(frame, name).get_by_label("Run")).to_have_value(run)
    expect(verdict(frame)).to_contain_text("faster")
    tab_to(tab, frame.get_by_role("button", name=gone.action.replace("`", "")).first)
    tab.page.keyboard.press("Enter")
    expect(frame.get_by_role("heading", level=1)).to_contain_text("Load batches in worker processes")
    assert f"run={UNTIDY}" in tab.hash
    tab.page.go_back()
    expect(verdict(frame)).to_contain_text("faster")


def tab_to(tab: Tab, wanted: Locator) -> None:
    """Presses Tab until the wanted element has the focus, round the page if need be."""
    expect(wanted).to_be_visible()
    for _ in range(MOST_TABS):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        tab.page.keyboard.press("Tab")
    pytest.fail(f"{wanted} cannot be reached by Tab")


def test_says_in_the_words_of_the_server_what_is_wrong_with_a_link(tab: Tab) -> None:
    frame = tab.open(view="compare", cmp=UNTIDY, steps="90-99", **{"with": TIDY})
    alert = frame.get_by_role("alert")
    expect(alert).to_contain_text(f"{UNTIDY} has no steps 90-99. It has the steps 2-4.")
    tab.complaints.clear()  # the browser itself notes the 400


def test_an_outlier_is_explained_and_compared_with_the_median_step(tab: Tab) -> None:
    frame = tab.open(view="overview", run="one_slow_step")
    outlier = frame.get_by_role("button", name="ProfilerStep#4", exact=True)
    outlier.click()
    why = side(frame, "Why ProfilerStep#4 is an outlier")
    expect(why).to_contain_text("aten::mm 1 ms more (2 calls instead of 1)")
    frame.get_by_role("button", name="Compare with the median step").click()
    expect(verdict(frame)).to_contain_text("2 → 3 ms per step")
    expect(side(frame, "Candidate").get_by_role("textbox", name="Steps")).to_have_value("4")
    expect(side(frame, "Candidate")).to_contain_text("ProfilerStep#4 took 3 ms")
