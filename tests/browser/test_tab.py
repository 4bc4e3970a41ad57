"""The TorchTidy tab as a user meets it: a real TensorBoard, a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import FrameLocator, Locator, expect

import tb_tidy_plugin
from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.lines import line_costs
from tb_tidy_plugin.analysis.tables import figures_of
from tb_tidy_plugin.report.figures import Figures
from tb_tidy_plugin.report.model import Finding, ProfileReport
from tb_tidy_plugin.trace.files import find_traces
from tb_tidy_plugin.words.causes import Cause
from tb_tidy_plugin.words.units import Nanoseconds, Share
from tests.browser.conftest import TENSORBOARDS, Tab
from tests.support.columns import in_column
from tests.support.recordings import ROOT
from tests.support.waiting import until

pytestmark = pytest.mark.browser

UNTIDY = "image_classifier_untidy"


in_tensorboard = pytest.mark.parametrize("around", [TENSORBOARDS], ids=["in TensorBoard"])
"""For what TensorBoard's own page takes part in."""


def rows(frame: FrameLocator) -> Locator:
    """The findings; a plain search by role would also find the choices of the pickers."""
    return frame.get_by_role("listbox", name="Findings").get_by_role("option")


def reported(run: str) -> ProfileReport:
    (report,) = tb_tidy_plugin.analyze(ROOT / "sample_runs" / run).runs
    return report.profiles[0]


def tables(run: str) -> Figures:
    (file,) = find_traces(ROOT / "sample_runs" / run)
    analysis = read_file(file, Job())
    return figures_of(analysis.profile, list(analysis.traced.values()))


def plain(text: str) -> str:
    return text.replace("`", "")


@in_tensorboard
def test_opens_with_all_runs_to_choose_from(tab: Tab, logdir: Path) -> None:
    frame = tab.open()
    runs = frame.get_by_role("table", name="Runs")
    expect(runs).to_be_visible()
    expect(runs.locator(".board-run .server-open")).to_have_count(len(list(logdir.iterdir())))
    assert {path.name for path in logdir.iterdir()} == set(runs.locator(".board-run .server-open").all_text_contents())
    expect(runs.get_by_role("row").filter(has_text=UNTIDY)).to_contain_text("Load batches in worker processes")
    runs.get_by_role("button", name=UNTIDY).click()
    expect(frame.get_by_role("region", name="Summary of the profile")).to_be_visible()
    picker = frame.get_by_label("Run", exact=True)
    assert {path.name for path in logdir.iterdir()} == set(picker.locator("option").all_text_contents())


def test_every_finding_of_the_report_is_listed_in_its_order(tab: Tab) -> None:
    options = rows(tab.open(run=UNTIDY))
    report = reported(UNTIDY)
    expect(options).to_have_count(len(report.findings))
    for at, finding in enumerate(report.findings):
        expect(options.nth(at)).to_contain_text(plain(finding.message))


def test_figures_are_those_of_the_report(tab: Tab) -> None:
    frame, report = tab.open(run=UNTIDY), reported(UNTIDY)
    summary = frame.get_by_role("region", name="Summary of the profile")
    expect(summary).to_contain_text(str(Nanoseconds(report.ledger.step_ns.median)))
    largest = [entry for entry in report.ledger.entries if entry.share > 0.05]
    assert {entry.cause for entry in largest} == {Cause.CPU, Cause.DATA_LOADING}
    for entry in largest:
        expect(summary).to_contain_text(str(Share(entry.share)))
    expect(summary).to_contain_text(f"{report.events:,} events")
    finding = report.findings[0]
    rows(frame).first.click()
    main = frame.get_by_role("main")
    assert finding.saving is not None
    expect(main).to_contain_text(str(Nanoseconds(finding.saving.expected_ns)))
    expect(main).to_contain_text(str(Nanoseconds(finding.cost_ns)))


def test_click_through_to_the_source_line(tab: Tab) -> None:
    frame, report = tab.open(run=UNTIDY), reported(UNTIDY)
    finding = next(each for each in report.findings if each.places and each.places[0].own_code)
    place = finding.places[0]
    rows(frame).nth(report.findings.index(finding)).click()
    main = frame.get_by_role("main")
    assert place.precision == "aligned"
    expect(main).to_contain_text(f"{place.file}:{place.line}")
    expect(main).to_contain_text("Line found by matching the recorded calls with the source text")
    line = (ROOT / "sample_runs" / UNTIDY / place.file).read_text().splitlines()[place.line - 1]
    expect(main.get_by_text(re.compile(re.escape(line.strip()[:30]))).first).to_be_visible()
    main.get_by_role("button", name="Show whole file").click()
    expect(frame.get_by_role("heading", name=place.file, exact=True)).to_be_visible()
    expect(frame.get_by_text(line.strip()[:30]).first).to_be_visible()


def test_what_called_a_place_leads_to_its_line(tab: Tab) -> None:
    frame, report = tab.open(run=UNTIDY), reported(UNTIDY)
    at = next(at for at, each in enumerate(report.findings) if each.places and each.places[0].function == "train_step")
    rows(frame).nth(at).click()
    source = (ROOT / "sample_runs" / UNTIDY / "train.py").read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if "losses.append(train_step(" in text)
    frame.get_by_role("button", name=f"train train.py:{line}").click()
    expect(frame.get_by_role("heading", name="train.py", exact=True)).to_be_visible()
    expect(frame.locator(".code-line.current")).to_contain_text("losses.append(train_step(")


def test_the_gutter_has_what_each_line_costs(tab: Tab) -> None:
    (file,) = find_traces(ROOT / "sample_runs" / UNTIDY)
    analysis = read_file(file, Job())
    costs = line_costs(analysis.profile, analysis.aligner)
    hottest = max(costs.lines, key=lambda cost: cost.backward_ns)
    frame = tab.open(run=UNTIDY, view="source", file="train.py", line=str(hottest.line))
    row = frame.locator(".code-line").filter(has=frame.get_by_text(str(hottest.line), exact=True))
    total, forward, backward = (
        Nanoseconds(round(each / costs.step.steps))
        for each in (hottest.total_ns, hottest.forward_ns, hottest.backward_ns)
    )
    gutter = row.locator(".gutter")
    expect(gutter).to_contain_text(f"Line costs {total} per step, ")
    expect(gutter).to_contain_text(f": forward {forward}, backward {backward}, other ")
    assert forward < backward, "by hand: convolutions, most of whose work is in the backward pass"
    heads = frame.locator(".gutter-heads .gutter-pass")
    for name, column in (("backward", backward), ("forward", forward)):
        head, cell = (
            each.bounding_box()
            for each in (heads.filter(has_text=name), gutter.get_by_text(in_column(column), exact=True))
        )
        assert head is not None
        assert cell is not None
        assert abs(head["x"] + head["width"] - cell["x"] - cell["width"]) < 1, name
    finding = reported(UNTIDY).findings[0]
    place = finding.places[0]
    frame.get_by_role("button", name="This finding").click()
    tab.page.keyboard.press("h")
    expect(frame.locator(".code-line.current .gutter")).to_contain_text(f"{Nanoseconds(place.duration_ns)} per step")
    assert f"line={place.line}" in tab.hash


def test_a_line_opens_in_the_editor_of_choice(tab: Tab, logdir: Path) -> None:
    frame, report = tab.open(run=UNTIDY), reported(UNTIDY)
    place = report.findings[0].places[0]
    path = quote(str((logdir / UNTIDY / place.file).resolve()))
    link = frame.get_by_role("link", name="Open in VS Code")
    expect(link).to_have_attribute("href", f"vscode://file{path}:{place.line}")
    link.click()  # there is none here, and the page goes on as before
    frame.get_by_label("Editor").select_option("cursor")
    tab.page.reload()
    expect(tab.frame.get_by_role("link", name="Open in Cursor")).to_be_visible()


def test_what_two_ranks_show_together_is_on_top_of_each_ones_findings(tab: Tab, logdir: Path) -> None:
    (run,) = tb_tidy_plugin.analyze(logdir / "two_ranks").runs
    [finding] = run.findings
    for worker in ("host_0", "host_1"):
        frame = tab.open(run="two_ranks", worker=worker)
        expect(rows(frame).first).to_contain_text(plain(finding.message))
        expect(rows(frame).first).to_contain_text("rank 1")
    rows(tab.frame).first.click()
    main = tab.frame.get_by_role("main")
    expect(main).to_contain_text("No single event of this profile shows it")
    expect(main.get_by_role("table")).to_have_count(0)


def test_matched_events_are_listed(tab: Tab) -> None:
    frame, report = tab.open(run=UNTIDY), reported(UNTIDY)
    rows(frame).first.click()
    table = frame.get_by_role("table", name="Matched events")
    table.scroll_into_view_if_needed()
    expect(table.get_by_role("row").nth(1)).to_contain_text(_first_event_name(report.findings[0]))


def _first_event_name(finding: Finding) -> re.Pattern[str]:
    return re.compile(r"aten::|enumerate\(DataLoader\)|Optimizer|_single_tensor|\(\d+\): ")


@in_tensorboard
def test_a_deep_link_survives_a_reload(tab: Tab) -> None:
    frame, report = tab.open(run=UNTIDY), reported(UNTIDY)
    rows(frame).nth(1).click()
    expect(frame.get_by_role("main")).to_contain_text(plain(report.findings[1].message))
    assert f"finding={report.findings[1].id}" in tab.hash
    tab.page.reload()
    expect(tab.frame.get_by_role("main")).to_contain_text(plain(report.findings[1].message))
    expect(rows(tab.frame).nth(1)).to_have_attribute("aria-selected", "true")


@in_tensorboard
def test_back_returns_to_the_finding_before(tab: Tab) -> None:
    frame, report = tab.open(run=UNTIDY), reported(UNTIDY)
    rows(frame).nth(0).click()
    expect(frame.get_by_role("main")).to_contain_text(plain(report.findings[0].message))
    rows(frame).nth(1).click()
    expect(frame.get_by_role("main")).to_contain_text(plain(report.findings[1].message))
    tab.page.go_back()
    expect(frame.get_by_role("main")).to_contain_text(plain(report.findings[0].message))


@in_tensorboard
def test_a_finding_that_is_gone_is_said_and_the_list_is_shown(tab: Tab) -> None:
    frame = tab.open(run=UNTIDY, finding="000000000000")
    expect(frame.get_by_role("status").filter(has_text="not in this profile")).to_be_visible()
    expect(rows(frame).first).to_be_visible()


@in_tensorboard
def test_by_keyboard(tab: Tab) -> None:
    frame, report = tab.open(run=UNTIDY), reported(UNTIDY)
    rows(frame).first.focus()
    tab.page.keyboard.press("j")
    tab.page.keyboard.press("Enter")
    expect(frame.get_by_role("heading", level=1)).to_be_focused()
    expect(frame.get_by_role("heading", level=1)).to_contain_text(plain(report.findings[1].title))
    tab.page.keyboard.press("Escape")
    expect(rows(frame).nth(1)).to_be_focused()


def test_passed_and_not_checked_say_why(tab: Tab) -> None:
    frame, report = tab.open(run=UNTIDY), reported(UNTIDY)
    missing = next(outcome for outcome in report.outcomes if outcome.status == "not_checked")
    frame.get_by_text(re.compile(r"^Not checked")).click()
    expect(frame.get_by_text(plain(missing.reason or "").split(";")[0]).first).to_be_visible()


@pytest.mark.parametrize(("run", "reason"), [("broken", "The file is not JSON."), ("empty", "The file is empty.")])
def test_a_broken_trace_shows_its_reason(tab: Tab, run: str, reason: str) -> None:
    frame = tab.open(run=run)
    expect(frame.get_by_role("alert").filter(has_text=reason)).to_be_visible()


@in_tensorboard
def test_the_theme_follows_tensorboard(tab: Tab) -> None:
    frame = tab.open(run=UNTIDY)
    root = frame.locator("html")
    before = root.get_attribute("data-theme")
    tab.page.evaluate("document.body.classList.toggle('dark-mode')")
    expect(root).to_have_attribute("data-theme", "light" if before == "dark" else "dark")


@in_tensorboard
def test_a_new_run_appears_on_reload(tab: Tab, logdir: Path) -> None:
    frame = tab.open(run=UNTIDY)
    (sample,) = (ROOT / "sample_runs" / UNTIDY).glob("*.pt.trace.json.gz")
    late = logdir / "late"
    late.mkdir(exist_ok=True)
    (late / sample.name).write_bytes(sample.read_bytes())
    picker = frame.get_by_label("Run", exact=True)
    button = tab.page.get_by_label("Reload data").or_(tab.page.locator("button.reload-button")).first

    def reloaded() -> bool:
        button.click()
        tab.page.wait_for_timeout(500)
        return "late" in picker.locator("option").all_text_contents()

    until(reloaded)


class TestWhereTheTimeGoes:
    """The other views; their figures are those of the report and of the tables behind `tb-tidy summary`."""

    def test_overview_shows_every_part_of_the_average_step(self, tab: Tab) -> None:
        frame, report = tab.open(run=UNTIDY, view="overview"), reported(UNTIDY)
        table = frame.get_by_role("table", name="Entries of the average step")
        for entry in (each for each in report.ledger.entries if each.share >= 0.01):
            row = table.get_by_role("row").filter(has=frame.get_by_role("rowheader", name=entry.title))
            expect(row).to_contain_text(in_column(Nanoseconds(entry.ns_per_step)))
            expect(row).to_contain_text(in_column(Share(entry.share)))
            file = entry.owner.file or ""
            expect(row).to_contain_text(entry.owner.place.replace(file, Path(file).name) if file else "")
            expect(row).to_contain_text(entry.owner.work)
        expect(table.get_by_role("row").last).to_contain_text(in_column(Nanoseconds(report.ledger.step_ns.mean)))

    def test_operators_are_sorted_by_the_server(self, tab: Tab) -> None:
        frame, figures = tab.open(run=UNTIDY, view="operators"), tables(UNTIDY)
        slowest = max(figures.operators["name"], key=lambda row: row.host_self_ns)
        main = frame.get_by_role("main")
        first = main.get_by_role("row").nth(1)
        expect(first).to_contain_text(slowest.name)
        expect(first).to_contain_text(in_column(Nanoseconds(slowest.host_self_ns)))
        expect(first).to_contain_text(f"{slowest.calls:,}")
        main.get_by_role("columnheader", name=re.compile("Calls")).get_by_role("button").or_(
            main.get_by_role("columnheader", name=re.compile("Calls"))
        ).last.click()
        most = max(row.calls for row in figures.operators["name"])
        expect(main.get_by_role("row").nth(1)).to_contain_text(f"{most:,}")

    def test_modules_are_a_tree(self, tab: Tab) -> None:
        frame, figures = tab.open(run=UNTIDY, view="modules"), tables(UNTIDY)
        root = figures.modules[0]
        row = frame.get_by_role("treegrid").get_by_role("row").nth(1)
        expect(row).to_contain_text(root.name)
        expect(row).to_contain_text(in_column(Nanoseconds(root.forward_ns)))
        steps = len(reported(UNTIDY).ledger.steps)
        for part_ns in (root.step_ns, root.step_forward_ns, root.step_backward_ns):
            expect(row).to_contain_text(in_column(Nanoseconds(round(part_ns / steps))))

    def test_a_bar_of_the_flame_graph_is_zoomed_to_by_a_click(self, tab: Tab) -> None:
        frame, flame = tab.open(run=UNTIDY, view="flame"), tables(UNTIDY).flame
        graph = frame.get_by_role("application", name=re.compile("^Flame graph of step time"))
        whole = Nanoseconds(round(sum(flame.account_ns) / flame.steps))
        expect(graph).to_have_attribute("aria-label", re.compile(f"All: {whole} per step"))
        graph.click(position={"x": 8, "y": 18 + 9})  # the second row: the heaviest call of all
        inside = frame.get_by_role("region", name=re.compile("^Parts of (?!All)"))
        expect(inside.get_by_role("row").nth(1)).to_be_visible()
        expect(frame.get_by_role("navigation", name="Path").get_by_role("button", name="All")).to_be_visible()

    def test_memory_that_was_not_recorded_says_how(self, tab: Tab) -> None:
        frame = tab.open(run=UNTIDY, view="memory")
        expect(frame.get_by_role("main")).to_contain_text("profile_memory=True")

    def test_cpu_work(self, tab: Tab) -> None:
        frame, figures = tab.open(run=UNTIDY, view="cpu"), tables(UNTIDY)
        assert figures.cpu.frames is not None
        own = next(each for each in figures.cpu.frames if each.own_code)
        expect(frame.get_by_role("main")).to_contain_text(own.function)
        expect(frame.get_by_role("main")).to_contain_text(in_column(Nanoseconds(own.self_ns)))
