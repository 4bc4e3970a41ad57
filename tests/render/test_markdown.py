"""Markdown for pull requests: what it shows, what no trace can do to it, and what goes first where it is too long."""

from __future__ import annotations

import html
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.ledger.advice import bound_by
from tb_tidy_plugin.ledger.model import Function, LeftOut, Owner
from tb_tidy_plugin.render.ledger import ledger_blocks
from tb_tidy_plugin.render.markdown import LONGEST_COMMENT, to_markdown
from tb_tidy_plugin.render.report import report_document
from tb_tidy_plugin.report.generated import CodeLine, Generated
from tb_tidy_plugin.report.model import Finding, Note, Outcome, Place, Problem, Report
from tests.support.logdirs import trace
from tests.support.made_up_rule import SlowMultiplication
from tests.support.recordings import ROOT

EVIL = (
    "</details><script>alert(1)</script> | `x` *b* _i_ [l](http://e.vil) ![i](x) @team #1 www.e.vil\n# h\n|---|\x1b[1m"
)

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


@pytest.fixture
def whole(tmp_path: Path) -> Report:
    trace(tmp_path / "run" / "rank0.7.pt.trace.json", operators=9)
    return analyze_path(tmp_path, Job([SlowMultiplication()]))


@pytest.fixture
def report(whole: Report) -> Report:
    """A report without entries of the ledger, which have tests of their own."""
    ledger = whole.runs[0].profiles[0].ledger
    return changed(whole, ledger=msgspec.structs.replace(ledger, entries=[]))


def changed(report: Report, **fields: object) -> Report:
    """The report with fields of its profile set."""
    profile = msgspec.structs.replace(report.runs[0].profiles[0], **fields)
    return msgspec.structs.replace(report, runs=[msgspec.structs.replace(report.runs[0], profiles=[profile])])


def finding_of(report: Report) -> Finding:
    return report.runs[0].profiles[0].findings[0]


def with_findings(report: Report, *findings: Finding) -> Report:
    return changed(report, findings=list(findings))


def place_in(name: str) -> Place:
    return Place(file=name, line=1, end_line=1, function=name, precision="definition", own_code=True, matches=1,
                 duration_ns=1)  # fmt: skip


def markdown_of(report: Report) -> str:
    return to_markdown(report_document(report, "markdown"))


def html_of(text: str) -> str:
    return str(MARKDOWN.render(text))


class TestShows:
    def test_small_findings_folded_below_the_others(self, report: Report) -> None:
        small = finding_of(report)
        large = msgspec.structs.replace(small, rule="large-rule", small=False)
        text = markdown_of(with_findings(report, large, small))
        above, folded = text.split("1 small finding: 0.81 % of a step")
        assert "| `large-rule` |" in above
        assert "made-up-rule" not in above
        assert "| `made-up-rule` |" in folded

    def test_a_report(self, report: Report) -> None:
        text = markdown_of(report)
        head, details = text.split("\n<details>", 1)
        assert head == (
            "## TorchTidy: 1 finding in `run`\n"
            "\n"
            "### rank0 · 7 · rank 0\n"
            "\n"
            "1 step of **1 ms** (marked by the profiler)\n"
            "\n"
            "| severity | rule | place | costs per step | could save |\n"
            "|---|---|---|--:|--:|\n"
            "| low | `made-up-rule` | `../../outside.py:1` in `helper` | 8.06 µs (0.81 %) |"
            " about 8.06 µs, at least 5.36 µs |\n"
        )
        assert details.startswith(
            "<summary><code>made-up-rule</code>: Add instead</summary>\n\n`aten::mm` multiplies 16 B.\n\n"
        )
        for part in ("**Fix:** Add instead.", "```python\nc = a @ b\n```", "```python\nc = d\n```",
                     "Note: Changes the result.",
                     "9×, costs 8.06 µs per step (0.81 %); saves about 8.06 µs,"):  # fmt: skip
            assert part in details
        assert details.rstrip().endswith("</details>")

    def test_no_finding(self, report: Report) -> None:
        text = markdown_of(with_findings(report))
        assert text.startswith("## TorchTidy: 0 findings in `run`")
        assert text.endswith(f"(marked by the profiler)\n\nNo finding. {bound_by([])}\n")
        assert "|" not in text

    def test_no_place_and_no_step(self, report: Report) -> None:
        finding = msgspec.structs.replace(finding_of(report), places=[], share=None)
        assert "| low | `made-up-rule` |  |  |  |\n" in markdown_of(with_findings(report, finding))

    def test_a_place_of_compiled_code(self, report: Report) -> None:
        generated = Generated(of="backward", also=[CodeLine(file="model.py", line=3)])
        place = msgspec.structs.replace(place_in("model.py"), generated=generated, precision="exact")
        text = markdown_of(with_findings(report, msgspec.structs.replace(finding_of(report), places=[place])))
        assert "`backward of model.py:1 (+3)` in compiled code of `model.py` |" in text

    def test_more_places_than_one(self, report: Report) -> None:
        (place,) = finding_of(report).places
        places = [msgspec.structs.replace(place, line=line) for line in range(1, 14)]
        text = markdown_of(with_findings(report, msgspec.structs.replace(finding_of(report), places=places)))
        assert "`../../outside.py:1` in `helper` and 12 more |" in text
        assert "- `../../outside.py:10` in" in text
        assert "- `../../outside.py:11` in" not in text
        assert "- and 3 more places\n" in text

    def test_what_was_not_checked_and_what_could_not_be_read(self, report: Report) -> None:
        outcomes = [
            Outcome(rule="a-rule", status="not_checked", reason="Record with `with_stack=True`."),
            Outcome(rule="b-rule", status="failed", reason="KeyError: 1"),
            Outcome(rule="c-rule", status="clean"),
        ]
        profile = msgspec.structs.replace(report.runs[0].profiles[0], outcomes=outcomes)
        problem = Problem(path="/logs/x.json", error="It is empty.", advice="Record again.", recovered_events=0)
        text = markdown_of(
            msgspec.structs.replace(
                report, runs=[msgspec.structs.replace(report.runs[0], profiles=[profile])], problems=[problem]
            )
        )
        assert "<summary>Failed checks: 1</summary>\n\n- `b-rule`: KeyError: 1\n" in text
        assert "<summary>Not checked: 1</summary>\n\n- `a-rule`: Record with `with_stack=True`.\n" in text
        assert "c-rule" not in text
        assert text.endswith("## Could not be read\n\n- `/logs/x.json`: It is empty. Record again.\n")


def test_a_reason_of_several_rules_is_printed_once(report: Report) -> None:
    """As in the text: a recording without a device lacks the same thing for many rules."""
    outcomes = [Outcome(rule=f"rule-{at}", status="not_checked", reason="It has no device.") for at in range(22)]
    outcomes.append(Outcome(rule="other", status="not_checked", reason="It has no shapes."))
    text = to_markdown(report_document(changed(report, outcomes=outcomes), "markdown"))
    assert text.count("It has no device.") == 1
    assert "<summary>Not checked: 23</summary>" in text
    assert all(f"`rule-{at}`" in text for at in range(22))
    assert "- `other`: It has no shapes.\n" in text


class TestLedger:
    def test_the_largest_entries_with_what_to_do(self, whole: Report) -> None:
        lines = markdown_of(whole).splitlines()
        head = lines.index("| where the step's time goes | what to do | share | per step |")
        assert lines[head + 2] == (
            "| **CPU: Python between operators**: helper in ../../outside.py · 1 call (87.9 % of it) |"
            " Vectorise it, or move it out of the step. | 99.2 % | 992 µs |"
        )

    def test_names_are_no_markup(self, whole: Report) -> None:
        ledger = whole.runs[0].profiles[0].ledger
        function = Function(function=EVIL, file=EVIL, line=1)
        owner = Owner(operator=EVIL, kernel=EVIL, library=function, own=function, known_by="stack")
        entries = [msgspec.structs.replace(entry, owner=owner, advice=EVIL) for entry in ledger.entries]
        left = [LeftOut(ns=1, reason=EVIL)]
        evil = msgspec.structs.replace(ledger, entries=entries, banner=EVIL, left_out=left)
        page = html_of(markdown_of(changed(whole, ledger=evil)))
        assert "<script" not in page
        assert "<a " not in page
        assert "<img" not in page
        rows = re.findall(r"<tr>.*?</tr>", page, re.DOTALL)
        assert [len(re.findall(r"<t[dh]\b", row)) for row in rows[:2]] == [4, 4]


class TestUntrusted:
    @pytest.fixture
    def evil(self, report: Report) -> Report:
        finding = msgspec.structs.replace(
            finding_of(report), message=EVIL, fix=EVIL, places=[place_in(EVIL)], details=[Note(text=EVIL)]
        )
        outcome = Outcome(rule="a-rule", status="failed", reason=EVIL)
        problem = Problem(path=EVIL, error=EVIL, advice=EVIL, recovered_events=0)
        profile = msgspec.structs.replace(
            report.runs[0].profiles[0], worker=EVIL, span=EVIL, findings=[finding], outcomes=[outcome]
        )
        return msgspec.structs.replace(
            report, runs=[msgspec.structs.replace(report.runs[0], run=EVIL, profiles=[profile])], problems=[problem]
        )

    def test_no_markup_and_no_html_but_our_own(self, evil: Report) -> None:
        page = html_of(markdown_of(evil))
        tags = set(re.findall(r"</?([a-z][a-z0-9]*)", page))
        ours = "h2 h3 p table thead tbody tr th td code details summary ul li strong"
        assert tags <= set(ours.split())
        assert page.count("<details>") == page.count("</details>") == 2
        assert page.count("<tr>") == 2
        assert set(re.findall(r"<strong>(.*?)</strong>", page)) == {"Why:", "Fix:", "1 ms"}
        assert page.count("<h2>") == 2

    def test_a_row_has_its_five_cells(self, evil: Report) -> None:
        row = html_of(markdown_of(evil)).split("<tbody>")[1].split("</tbody>")[0]
        assert len(re.findall(r"<td\b", row)) == 5

    def test_no_mention_no_reference_and_no_address(self, evil: Report) -> None:
        """GitHub looks for these in the text of the rendered page, outside of code."""
        prose = html.unescape(re.sub(r"<code>.*?</code>", "", html_of(markdown_of(evil)), flags=re.DOTALL))
        assert "@" in prose
        assert not re.search(r"@\w|#\d", prose)
        source = re.sub(r"`[^`\n]+`", "", markdown_of(evil))
        assert "http:" not in source
        assert "www." not in source

    def test_all_characters_are_shown_that_can_be(self, evil: Report) -> None:
        shown = html.unescape(re.sub(r"<[^>]+>", "", html_of(markdown_of(evil)))).replace("\u200b", "")
        assert (
            "</details><script>alert(1)</script> | x *b* _i_ [l](http://e.vil) ![i](x) @team #1 www.e.vil # h" in shown
        )
        assert "\x1b" not in shown

    @given(st.text(alphabet=st.sampled_from("`|<>&@#*_[]()!\\ \n~$:/-w.ab1")))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_no_string_at_all_makes_markup(self, report: Report, text: str) -> None:
        finding = msgspec.structs.replace(
            finding_of(report), message=text, fix=text, places=[place_in(text)], details=[Note(text=text)]
        )
        page = html_of(markdown_of(with_findings(report, finding)))
        assert len(re.findall(r"<td\b", page)) == 5
        ours = "h2 h3 p table thead tbody tr th td code details summary ul li strong"
        assert set(re.findall(r"<([a-z][a-z0-9]*)", page)) <= set(ours.split())
        prose = html.unescape(re.sub(r"<code>.*?</code>", "", page, flags=re.DOTALL))
        assert not re.search(r"@\w|#\d", prose)

    def test_code_that_holds_fences(self, report: Report) -> None:
        finding = finding_of(report)
        details = [
            msgspec.structs.replace(detail, before="````\n</details>\n") if not isinstance(detail, Note) else detail
            for detail in finding.details
        ]
        page = html_of(markdown_of(with_findings(report, msgspec.structs.replace(finding, details=details))))
        assert "````\n&lt;/details&gt;" in page

    def test_a_backtick_without_a_second_one(self, report: Report) -> None:
        finding = msgspec.structs.replace(finding_of(report), fix="`a` and ` b")
        assert "**Fix:** `a` and &#96; b." in markdown_of(with_findings(report, finding))


class TestLength:
    def many(self, report: Report, count: int) -> Report:
        findings = [
            msgspec.structs.replace(finding_of(report), action=f"Finding {number}", fix="x" * 800)
            for number in range(count)
        ]
        return with_findings(report, *findings)

    def test_all_of_it_where_it_fits(self, report: Report) -> None:
        assert "Left out" not in markdown_of(self.many(report, 20))

    @pytest.mark.parametrize("count", [100, 3000])
    def test_never_longer_than_a_comment_may_be(self, report: Report, count: int) -> None:
        text = markdown_of(self.many(report, count))
        assert len(text.encode()) <= LONGEST_COMMENT
        last = text.splitlines()[-1]
        assert last.startswith("Left out, as a comment has its limit: ")
        assert last.endswith("`tb-tidy check` shows all.")

    def test_details_of_the_least_go_first_and_their_number_is_said(self, report: Report) -> None:
        text = markdown_of(self.many(report, 100))
        shown = text.count("<details>")
        assert 0 < shown < 100
        assert text.count("| low |") == 100
        assert f"Finding {shown - 1}</summary>" in text
        assert f"Finding {shown}</summary>" not in text
        assert f"findings’ details: {100 - shown}." in text.splitlines()[-1]

    def test_a_string_of_any_length_is_cut(self, report: Report) -> None:
        finding = msgspec.structs.replace(finding_of(report), message="m" * 100_000)
        text = markdown_of(with_findings(report, finding))
        assert "mmm…" in text
        assert "Left out" not in text


def test_real_reports(tmp_path: Path) -> None:
    report = analyze_path(ROOT / "sample_runs", Job())
    page = html_of(markdown_of(report))
    profiles = [profile for run in report.runs for profile in run.profiles]
    assert page.count("<h2>") == len(report.runs)
    found = [finding for run in report.runs for profile in run.profiles for finding in profile.findings]
    told = [len([*ledger_blocks(profile.ledger, "text")]) - len(profile.ledger.left_out) for profile in profiles]
    tables = sum(len({finding.small for finding in profile.findings}) for profile in profiles) + len(profiles)
    assert page.count("<tr>") == len(found) + sum(told) + tables
