"""Benchmarks as a user meets them on the page: started, watched, cancelled, believed; and where they are off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from statistics import median

import pytest
from playwright.sync_api import Browser, FrameLocator, Locator, expect

from tb_tidy_plugin.plugin.models import BenchmarksAnswer
from tb_tidy_plugin.report.model import Finding, ProfileReport
from tb_tidy_plugin.system.decoders import convert
from tb_tidy_plugin.words.units import Nanoseconds
from tests.accuracy.corpus import programs
from tests.accuracy.processes import record_in
from tests.browser.conftest import Tab, fresh_tab
from tests.support.served import API, Served, needs_the_installed_plugin, tensorboard

pytestmark = [pytest.mark.browser, pytest.mark.torch, pytest.mark.slow]

RULE = "constant-rebuilt-every-step"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A TensorBoard that may run benchmarks, with a recorded program and a cache of its own."""
    needs_the_installed_plugin()
    folder = tmp_path_factory.mktemp("bench")
    (program,) = [each for each in programs() if each.path.parts[-2:] == (RULE, "slow.py")]
    run = folder / "runs" / "job"
    run.mkdir(parents=True)
    record_in(run, program)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        flags = ("--logdir", str(folder / "runs"), "--torchtidy_benchmarks=local")
        with tensorboard(*flags, folder=folder, without=("torch_profiler",)) as running:
            yield running


@pytest.fixture
def page(browser: Browser, board: Served) -> Iterator[Tab]:
    with fresh_tab(browser, board) as tab:
        yield tab


def card(frame: FrameLocator) -> Locator:
    return frame.locator("section.section").filter(has=frame.get_by_role("heading", name="Micro-benchmark"))


def listed(frame: FrameLocator) -> Locator:
    return frame.get_by_role("listbox", name="Findings").get_by_role("option")


def in_words(ns: float) -> str:
    """Three digits in the unit that leaves one to three of them before the point; parts of a ns, too."""
    unit, size = next(each for each in (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 0)) if ns >= each[1])
    return f"{ns / (size or 1):.3g} {unit}"


def state_of(frame: FrameLocator) -> Locator:
    return card(frame).locator(".bench-state")


def key_of(board: Served) -> str:
    (run,) = board.api("runs")["runs"]
    (profile,) = run["profiles"]
    return f"run={run['run']}&worker={profile['worker']}&span={profile['span']}"


def known(board: Served) -> BenchmarksAnswer:
    return convert(board.api(f"benchmarks?{key_of(board)}"), BenchmarksAnswer)


def reported(board: Served) -> tuple[ProfileReport, Finding]:
    report = convert(board.analysed(key_of(board))["report"]["profiles"][0], ProfileReport)
    (finding,) = [each for each in report.findings if each.rule == RULE]
    return report, finding


def test_started_watched_in_two_tabs_found_again_and_part_of_the_saving(
    browser: Browser, board: Served, page: Tab
) -> None:
    _, before = reported(board)
    assert before.saving is not None
    assert before.saving.basis == ["replayed"]
    frame = page.open()
    expect(state_of(frame)).to_have_text("Not run")
    card(frame).get_by_role("button", name="Run benchmark").click()
    expect(state_of(frame)).to_have_text(re.compile("Queued|Running"))
    with fresh_tab(browser, board) as second:
        expect(state_of(second.open())).to_have_text(re.compile("Queued|Running|Measured"))
        page.page.reload()
        for each in (page, second):
            expect(card(each.frame)).to_contain_text("Used in the saving")
    assert len(known(board).jobs) == 1
    row = listed(frame).and_(frame.get_by_role("option", selected=True))
    expect(row).to_contain_text("✓ measured")
    assert f"finding={before.id}" in page.hash
    basis = "computed from the timeline, measured"
    expect(frame.get_by_role("main")).to_contain_text(basis)
    expect(frame.get_by_role("region", name="Summary of the profile")).to_contain_text(basis)
    expect(frame.locator("[aria-live=polite]")).not_to_be_empty()


def test_every_figure_is_the_measurement_s(board: Served, page: Tab) -> None:
    frame = page.open()
    expect(state_of(frame)).to_have_text("Measured")
    report, finding = reported(board)
    measurement = known(board).measurements[finding.id]
    assert finding.measurement == measurement
    shown = card(frame)
    samples = (measurement.before_samples_ns, measurement.after_samples_ns)
    if len(samples[0]) == len(samples[1]) == measurement.blocks:  # the medians, changed by equal factors
        product = median(samples[0]) * median(samples[1])
        assert measurement.before_ns * measurement.after_ns == pytest.approx(product)
    assert measurement.after_ns / measurement.before_ns == pytest.approx(measurement.ratio)
    for middle_ns in (measurement.before_ns, measurement.after_ns):
        expect(shown).to_contain_text(in_words(middle_ns))
    assert 1 / measurement.high > 1000, "the fix leaves nothing of this pattern"
    expect(shown.locator(".worth-value")).to_contain_text([">1000×", "", "", f"n = {measurement.blocks}"])
    circles = [len(measurement.before_samples_ns), len(measurement.after_samples_ns)]
    assert [each.locator("circle").count() for each in shown.locator(".dots").all()] == circles
    expect(shown).to_contain_text(f"{measurement.on.name} · PyTorch {measurement.on.torch}")
    for label, statement in (("Statement before", measurement.before), ("Statement after", measurement.after)):
        code = shown.get_by_role("region", name=label).locator(".code-text").all_text_contents()
        assert "\n".join(code) == statement.rstrip("\n")
    assert report.joint_saving is not None
    steps, saved_ns = report.ledger.step_ns, report.joint_saving.expected_ns
    left_ns = max((steps.mean if saved_ns > steps.median else steps.median) - saved_ns, 0)  # few steps may be long
    summary = frame.get_by_role("region", name="Summary of the profile")
    expect(summary).to_contain_text(f"With all fixes≈ {Nanoseconds(left_ns)}")


def test_the_card_has_no_violations(board: Served, page: Tab) -> None:
    frame = page.open(finding=reported(board)[1].id)
    expect(state_of(frame)).to_have_text("Measured")
    inner = page.page.frames[-1]
    inner.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
    for width in (1400, 700, 320):
        page.page.set_viewport_size({"width": width, "height": 900})
        expect(state_of(frame)).to_have_text("Measured")
        assert inner.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for theme in ("dark", "light"):
            page.page.evaluate("dark => document.body.classList.toggle('dark-mode', dark)", theme == "dark")
            expect(frame.locator("html")).to_have_attribute("data-theme", theme)
            found = inner.evaluate("axe.run('.section:has(.bench-state)')")
            assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == [], (
                f"{theme}, {width} px"
            )


def test_cancelled_by_keyboard_the_earlier_result_stays(board: Served, page: Tab) -> None:
    frame = page.open()
    expect(state_of(frame)).to_have_text("Measured")
    before = known(board).measurements
    button = card(frame).get_by_role("button", name="Measure again")
    button.focus()
    page.page.keyboard.press("Enter")
    cancel = card(frame).get_by_role("button", name="Cancel")
    expect(cancel).to_be_focused()
    page.page.keyboard.press("Enter")
    expect(state_of(frame)).to_have_text("Cancelled; stored result")
    expect(frame.locator("[aria-live=polite]")).to_have_text("Benchmark cancelled")
    expect(card(frame).get_by_role("button", name="Measure again")).to_be_focused()
    assert known(board).jobs[-1].state == "cancelled"
    assert known(board).measurements == before


def test_where_they_are_off_the_command_for_a_shell_is_there(tab: Tab, served: Served, logdir: Path) -> None:
    run = "image_classifier_untidy"
    frame = tab.open(run=run)
    shown = card(frame)
    expect(shown).to_contain_text("Benchmarks are off.")
    expect(shown).to_contain_text("--torchtidy_benchmarks=local")
    expect(shown.get_by_role("button", name="Run benchmark")).to_have_count(0)
    (trace,) = (logdir / run).glob("*.pt.trace.json.gz")
    finding = listed(frame).first.get_attribute("data-finding")
    expect(shown.locator("pre")).to_have_text(f"tb-tidy bench {trace} --finding {finding}")
    assert served.get(f"{API}/benchmarks", method="POST").status in {400, 403}
