"""The report as a page: what it shows, what it keeps to itself, and that no trace can put anything into it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.ledger.advice import BANNERS, bound_by
from tb_tidy_plugin.render.html import to_html
from tb_tidy_plugin.render.report import report_document
from tb_tidy_plugin.render.words import CHECKS, matches_text
from tb_tidy_plugin.report.model import (
    SCHEMA_VERSION,
    CodeChange,
    Finding,
    Note,
    Outcome,
    Place,
    Problem,
    ProfileReport,
    Report,
    RunReport,
)
from tb_tidy_plugin.report.savings import KNOWN_HOW, likelihood_text
from tb_tidy_plugin.trace.settings import LoaderSettings, Settings, Versions
from tb_tidy_plugin.words.causes import Colour
from tb_tidy_plugin.words.units import Nanoseconds, Share
from tests.support.logdirs import trace
from tests.support.made_up_rule import SlowMultiplication
from tests.support.measurements import measurement
from tests.support.recorded_ranks import record
from tests.support.recordings import ROOT

EVIL = "</style></title>--><script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{ 7 * 7 }}\x1b[1m\u202e&lt;"
INLINE = {"a", "b", "code", "span"}
OURS = {
    "html", "head", "meta", "title", "style", "body", "main", "footer", "section", "article", "h1", "h2", "h3", "h4",
    "h5", "p", "span", "a", "b", "br", "code", "pre", "ul", "li", "dl", "div", "dt", "dd", "table", "thead", "tbody",
    "tr", "th", "td", "figure", "figcaption", "details", "summary",
}  # fmt: skip


@pytest.fixture
def report(tmp_path: Path) -> Report:
    trace(tmp_path / "run" / "rank0.7.pt.trace.json", operators=9)
    return analyze_path(tmp_path, Job([SlowMultiplication()]))


@pytest.fixture(scope="module")
def untidy() -> ProfileReport:
    (run,) = analyze_path(ROOT / "sample_runs" / "image_classifier_untidy", Job()).runs
    return run.profiles[0]


class Page(HTMLParser):
    """What a browser would make of a page: its elements with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in INLINE:
            self.texts.append(" ")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def attributes(self, tag: str, name: str) -> list[str | None]:
        return [attributes.get(name) for each, attributes in self.tags if each == tag]


def html_of(report: Report, muted: int = 0) -> str:
    return to_html(report_document(report, "html", muted))


def test_small_findings_are_folded_in_the_list_of_what_is_worth_most(report: Report) -> None:
    run = report.runs[0]
    (small,) = run.profiles[0].findings
    large = msgspec.structs.replace(small, id="large", small=False)
    profile = msgspec.structs.replace(run.profiles[0], findings=[large, small])
    page = html_of(msgspec.structs.replace(report, runs=[msgspec.structs.replace(run, profiles=[profile])]))
    _, _, listed = page.partition("Worth most")
    first = listed.index("<a href=")
    assert first < listed.index("1 small finding: 0.81 % of a step") < listed.index("<a href=", first + 1)


def page_of(report: Report) -> Page:
    return Page(html_of(report))


def of_profile(profile: ProfileReport) -> Report:
    return Report(schema=SCHEMA_VERSION, version="1", runs=[RunReport(run="run", profiles=[profile])], problems=[])


def changed(report: Report, **fields: object) -> Report:
    return of_profile(msgspec.structs.replace(report.runs[0].profiles[0], **fields))


def finding_of(report: Report, **fields: object) -> Finding:
    return msgspec.structs.replace(report.runs[0].profiles[0].findings[0], **fields)


def place_in(name: str, text: str = "") -> Place:
    return Place(file=name, line=1, end_line=1, function=name, precision="definition", own_code=True, matches=1,
                 duration_ns=1, text=text)  # fmt: skip


class TestShows:
    @pytest.mark.parametrize(
        ("per_step", "words"),
        [(3.0, "3 per step"), (1.5, "1.5 per step"), (0.2, "one in 5 steps"), (0.4, "one in 2.5 steps"), (0.0, "")],
    )
    def test_rare_matches_are_counted_in_steps(self, per_step: float, words: str) -> None:
        """As the page does: `base/words.test.ts`."""
        assert matches_text(per_step) == words

    def test_one_count_of_checks_that_could_not_run(self, untidy: ProfileReport) -> None:
        """HTML, as the page counts: every check without an answer, whatever it lacks."""
        count = sum(outcome.status == "not_checked" for outcome in untidy.outcomes)
        reasons = {outcome.reason for outcome in untidy.outcomes if outcome.status == "not_checked"}
        assert len(reasons) > 1, "several things are missing"
        assert f"Not checked: {count}" in page_of(of_profile(untidy)).text

    def test_each_finding_with_its_figures_and_source_lines(self, untidy: ProfileReport) -> None:
        text = page_of(of_profile(untidy)).text
        source = (ROOT / "sample_runs" / "image_classifier_untidy" / "train.py").read_text().splitlines()
        for finding in untidy.findings:
            assert finding.message.replace("`", "") in text
            assert f"Costs {Nanoseconds(finding.cost_ns)} per step" in text
            assert finding.saving is not None
            assert f"Fix saves about {Nanoseconds(finding.saving.expected_ns)} per step" in text
            assert likelihood_text(finding.saving).capitalize() in text
            for place in finding.places:
                assert f"{place.file}:{place.line}" in text
                assert f"{place.line}{' '.join(source[place.line - 1].split())}" in text

    def test_source_lines_are_those_of_places_and_no_others(self, untidy: ProfileReport) -> None:
        source = (ROOT / "sample_runs" / "image_classifier_untidy" / "train.py").read_text().splitlines()
        html = html_of(of_profile(untidy))
        at = {place.line for finding in untidy.findings for place in finding.places}
        at |= {entry.owner.line or 0 for entry in untidy.ledger.entries}
        others = {line.strip() for number, line in enumerate(source, 1) if number not in at and len(line.strip()) > 12}
        others = {line for line in others if not any(line in finding.fix for finding in untidy.findings)}
        assert others
        assert [line for line in others if line in html] == []

    def test_the_average_step_adds_up(self, untidy: ProfileReport) -> None:
        text = page_of(of_profile(untidy)).text
        assert f"Where the {Nanoseconds(untidy.ledger.step_ns.mean)} of an average step go" in text
        for entry in untidy.ledger.entries:
            assert entry.title in text
            assert f"{Share(entry.share)} {Nanoseconds(entry.ns_per_step)}" in text

    def test_a_ledger_without_entries_says_why(self, untidy: ProfileReport) -> None:
        ledger = msgspec.structs.replace(untidy.ledger, recording="empty", banner=BANNERS["empty"], entries=[])
        text = page_of(of_profile(msgspec.structs.replace(untidy, ledger=ledger))).text
        assert BANNERS["empty"] in text
        assert "Where the" not in text

    def test_the_spread_of_few_steps_is_all_of_it(self, untidy: ProfileReport) -> None:
        times = [step.end_ns - step.start_ns for step in untidy.ledger.steps]
        said = f"median of 3 steps, {Nanoseconds(min(times))} to {Nanoseconds(max(times))} min–max"
        assert said in page_of(of_profile(untidy)).text

    def test_overlap_is_told_where_there_is_one(self, untidy: ProfileReport) -> None:
        assert untidy.joint_saving is not None
        rows_ns = sum(finding.saving.expected_ns for finding in untidy.findings if finding.saving)
        for joint_ns, is_told in ((rows_ns // 2, True), (rows_ns, False)):
            joint = msgspec.structs.replace(untidy.joint_saving, expected_ns=joint_ns)
            text = page_of(of_profile(msgspec.structs.replace(untidy, joint_saving=joint))).text
            assert ("Findings overlap" in text) is is_told

    def test_savings_above_the_median_step_are_of_the_average_one(self, untidy: ProfileReport) -> None:
        assert untidy.joint_saving is not None
        saved = untidy.joint_saving.expected_ns
        steps = msgspec.structs.replace(untidy.ledger.step_ns, median=saved // 2, mean=4 * saved)
        ledger = msgspec.structs.replace(untidy.ledger, step_ns=steps)
        text = page_of(of_profile(msgspec.structs.replace(untidy, ledger=ledger, true_step_ns=None))).text
        assert "per step, 25 %" in text

    def test_every_step_is_in_the_table_beside_the_chart(self, untidy: ProfileReport) -> None:
        text = page_of(of_profile(untidy)).text
        assert len(untidy.ledger.steps) == 3
        for step in untidy.ledger.steps:
            assert f"{step.name} {Nanoseconds(step.end_ns - step.start_ns)}" in text

    def test_the_outcome_of_every_check(self, untidy: ProfileReport) -> None:
        outcomes = [*untidy.outcomes, Outcome(rule="a-broken-one", status="failed", reason="KeyError: 1")]
        text = page_of(of_profile(msgspec.structs.replace(untidy, outcomes=outcomes))).text
        for outcome in outcomes:
            if outcome.status != "found":
                reason = f": {outcome.reason}".replace("`", "") if outcome.reason else ""
                start = text.index(f"{CHECKS[outcome.status]}: {sum(e.status == outcome.status for e in outcomes)}")
                listed = text[text.index(outcome.rule, start) :]
                assert reason in listed, "rules with the same reason come before it"

    def test_what_was_left_out_of_a_finding(self, report: Report) -> None:
        outcome = Outcome(rule="made-up-rule", status="found", reason="2 calls in `a.py` are ignored.")
        text = page_of(changed(report, outcomes=[outcome])).text
        assert text.index("Why") < text.index("2 calls in a.py are ignored.") < text.index("Source")

    def test_what_was_measured(self, report: Report) -> None:
        measured = measurement(doubts=("The device was busy.",))
        text = page_of(changed(report, findings=[finding_of(report, measurement=measured)])).text
        said = (
            "1 µs before, 500 ns after: 0.5 times (0.4 to 0.6, 95 %) on cpu a processor with torch 2.13.0. The device"
        )
        assert said in text

    def test_no_finding_no_step_and_no_saving(self, report: Report) -> None:
        (profile,) = report.runs[0].profiles
        steps = msgspec.structs.replace(profile.steps, basis="none", count=0, median_ns=None, items=[])
        text = page_of(changed(report, findings=[], steps=steps)).text
        assert "0 findings" in text
        assert bound_by(profile.ledger.entries) in text
        unchecked = [Outcome(rule="slow-multiplication", status="not_checked", reason="No `stacks`.")]
        assert "Nothing could be checked" in page_of(changed(report, findings=[], outcomes=unchecked)).text
        text = page_of(changed(report, findings=[finding_of(report, saving=None, places=[], share=None)])).text
        assert "no saving known" in text
        assert "no source line" in text

    def test_ranks_of_a_run(self, tmp_path: Path) -> None:
        for rank, comes_us in enumerate((1000, 8000)):
            record(tmp_path / "job", rank, comes_us)
        report = analyze_path(tmp_path, Job())
        text = page_of(report).text
        assert "job · 2 ranks together" in text
        assert [worker in text for worker in ("host_0 · rank 0", "host_1 · rank 1")] == [True, True]
        [finding] = report.runs[0].findings
        assert finding.message.replace("`", "") in text

    def test_how_many_are_muted(self, report: Report) -> None:
        assert "2 findings muted and left out." in Page(html_of(report, muted=2)).text
        assert "left out" not in Page(html_of(report)).text

    def test_every_link_leads_somewhere_on_the_page(self, untidy: ProfileReport) -> None:
        page = page_of(of_profile(untidy))
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        links = page.attributes("a", "href")
        assert len(links) == len(untidy.findings)
        assert len(ids) == len(set(ids))
        assert {str(link).removeprefix("#") for link in links} <= set(ids)


class TestKeepsToItself:
    def test_what_the_tab_does_not_show_of_the_machine(self, report: Report) -> None:
        secret = Settings(versions=Versions(python="secret-python"), loaders=(LoaderSettings(dataset="SecretDataset"),))
        page = html_of(changed(report, settings=secret, path="/home/alice/secret/run/w.7.pt.trace.json"))
        assert "run/w.7.pt.trace.json" in page
        for word in ("alice", "secret", "Secret"):
            assert word not in page

    @pytest.mark.parametrize(
        "path", ["/home/alice/x/run/w.json", "C:\\Users\\alice\\run\\w.json", "s3://alice/run/w.json"]
    )
    def test_where_a_broken_trace_is(self, report: Report, path: str) -> None:
        problem = Problem(path=path, error="It is empty.", advice="Record again.", recovered_events=0)
        page = page_of(msgspec.structs.replace(report, runs=[], problems=[problem]))
        assert "run/w.json: It is empty. Record again." in page.text
        assert "alice" not in page.text


class TestUntrusted:
    def everywhere(self, report: Report, text: str) -> Report:
        finding = finding_of(
            report, message=text, fix=text, rule=text, places=[place_in(text, text)],
            details=[Note(text=text), CodeChange(before=text, after=text, caveat=text)],
            measurement=measurement(doubts=(text[:500],)),
        )  # fmt: skip
        profile = report.runs[0].profiles[0]
        evil = changed(
            report, worker=text, path=text, span=text, findings=[finding],
            outcomes=[Outcome(rule=text, status="failed", reason=text)],
            quality=msgspec.structs.replace(profile.quality, notes=[text]),
            steps=msgspec.structs.replace(
                profile.steps, items=[msgspec.structs.replace(profile.steps.items[0], name=text)] * 3
            ),
        )  # fmt: skip
        runs = [msgspec.structs.replace(evil.runs[0], run=text)]
        problem = Problem(path=text, error=text, advice=text, recovered_events=0)
        return msgspec.structs.replace(evil, runs=runs, problems=[problem])

    def test_no_element_but_our_own(self, report: Report) -> None:
        page = page_of(self.everywhere(report, EVIL))
        assert {tag for tag, _ in page.tags} <= OURS
        attributes = {name for _, given in page.tags for name in given}
        assert not [name for name in attributes if name.startswith("on") or name in {"src", "srcset", "action"}]
        assert all(str(href).startswith("#") for href in page.attributes("a", "href"))
        assert "<script>alert(1)</script>" in page.text
        assert "{{ 7 * 7 }}" in page.text
        assert not set("\x1b\u202e") & set(page.text)

    @given(st.text(alphabet=st.sampled_from("<>&\"'`{}%#!-/=\\ \n\u2028\ud800ab1")))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
    def test_no_string_at_all_makes_markup(self, report: Report, text: str) -> None:
        html = html_of(self.everywhere(report, text))
        html.encode()
        assert {tag for tag, _ in Page(html).tags} <= OURS

    def test_a_string_without_end_is_cut(self, report: Report) -> None:
        html = html_of(changed(report, findings=[finding_of(report, message="x" * 1_000_000)]))
        assert len(html) < 200_000


class TestIsThePageOfTheTab:
    """Names and colours are those of the frontend, whose sources are read here."""

    def source(self, name: str) -> str:
        return (ROOT / "frontend" / "src" / name).read_text(encoding="utf-8")

    def entries(self, name: str, table: str) -> dict[str, str]:
        """The texts of an object `const table … = {…};` of TypeScript, by their keys."""
        body = self.source(name).partition(f"const {table}")[2].partition("= {")[2].partition("};")[0]
        return dict(re.findall(r"(\w+): '([^']+)'", body))

    def test_names(self) -> None:
        assert self.entries("base/words.ts", "SHORT_BASIS") == KNOWN_HOW
        titles = re.findall(r'title="([^"]+)" kind="(\w+)"', self.source("views/list/Outcomes.tsx"))
        assert {kind: title for title, kind in titles} == CHECKS

    def test_headings(self, untidy: ProfileReport, report: Report) -> None:
        page = page_of(changed(report, findings=[finding_of(report, measurement=measurement())]))
        text = f"{page_of(of_profile(untidy)).text} {page.text}"
        views = "".join(self.source(f"views/{view}.tsx") for view in (
            "summary/Summary", "overview/Headline", "overview/StepsChart", "detail/Head", "detail/Why", "detail/Places",
            "detail/Fix", "detail/Benchmark",
        ))  # fmt: skip
        for name in ("Step time", "Recoverable", "Worth most", "Steps", "Fix saves about", "Costs", "Matches",
                     "Confidence", "Why", "Source", "Micro-benchmark"):  # fmt: skip
            assert name in text
            assert re.search(rf"[\">=']{name}[\"<']", views), name

    @pytest.mark.parametrize(("theme", "start"), [("light", ":root {"), ("dark", ':root[data-theme="dark"] {')])
    def test_colours(self, theme: str, start: str) -> None:
        def colours(css: str, start: str) -> dict[str, str]:
            return dict(re.findall(r"(--[\w-]+): ([^;]+);", css.partition(start)[2].partition("}")[0]))

        ours = files("tb_tidy_plugin.render").joinpath("page.css").read_text()
        used = colours(ours, "prefers-color-scheme: dark) {\n  :root {" if theme == "dark" else ":root {")
        assert len(used) > 20
        assert used.items() <= colours(self.source("styles/theme.css"), start).items()

    def test_every_part_has_its_colour(self) -> None:
        def rules(css: str) -> dict[str, str]:
            found = re.findall(r"^(\.part-[^{\n]*) \{ (.*) \}$", css, re.MULTILINE)
            return {name.strip(): rule for names, rule in found for name in names.split(",")}

        ours = rules(files("tb_tidy_plugin.render").joinpath("page.css").read_text())
        assert set(ours) == {f".part-{colour}" for colour in get_args(Colour)}
        assert ours.items() <= rules(self.source("styles/page.css")).items()
