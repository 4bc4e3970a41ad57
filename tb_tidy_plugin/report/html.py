"""The report as one page of HTML: nothing is loaded, nothing runs, it can be mailed, kept and printed.

Strings from a trace are untrusted: Jinja escapes every one of them, characters that are not to be seen are replaced,
and the page's own policy allows neither scripts nor addresses. It holds what the tab shows and no more: of paths on
the machine that made it only what names a recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timezone
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from tb_tidy_plugin.report import ranks_text
from tb_tidy_plugin.report.charts import bar_of_step, overlap, parts_of_step, reach_of, spread_of, step_columns
from tb_tidy_plugin.report.model import CodeChange, Note, Outcome, ProfileReport, Report, RunReport, Status
from tb_tidy_plugin.report.step_model import Steps
from tb_tidy_plugin.report.summary_text import part_text
from tb_tidy_plugin.report.text import MARKS, PRECISION, STEP_BASIS
from tb_tidy_plugin.sources.files import recorded_at
from tb_tidy_plugin.units import Nanoseconds, Share

SPAN = re.compile(r"`([^`]*)`")
LAYOUT = frozenset("\n\t")
LONGEST_STRING = 20_000
LONGEST_NAME = 200
SHOWN_BASIS = {
    "bound": "at most the events’ own time",
    "replayed": "replayed without it",
    "measured": "measured by a benchmark",
}
OUTCOMES: tuple[tuple[Status, str, str], ...] = (
    ("failed", "✕", "Failed"),
    ("not_checked", "–", "Not checked"),
    ("found", "▲", "Found"),
    ("clean", "✓", "Passed"),
)


def to_html(report: Report, muted: int = 0) -> str:
    """The report as a page of its own; `muted` findings were left out of it, which it says."""
    return _template().render(report=report, muted=muted)


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("tb_tidy_plugin.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        spans=spans, ns=_time, share=lambda part: str(Share(part)), recording=_recording,
        sentence=lambda text: f"{text.rstrip('.')}.", when=_when, part=part_text, plural=_plural,
    )  # fmt: skip
    environment.tests.update(
        note=lambda detail: isinstance(detail, Note), change=lambda detail: isinstance(detail, CodeChange)
    )
    environment.globals.update(
        BASIS=SHOWN_BASIS, MARKS=MARKS, OUTCOMES=OUTCOMES, PRECISION=PRECISION, STEP_BASIS=STEP_BASIS,
        bar_of_step=bar_of_step, found_in=_found_in, outcomes_of=_outcomes_of, overlap=overlap,
        parts_of_step=parts_of_step, per=_per, ranks_text=ranks_text, reach_of=reach_of, spread_of=spread_of,
        step_columns=step_columns,
    )  # fmt: skip
    return environment.get_template("report.html")


def spans(text: str) -> Markup:
    """A sentence in which what stands between backticks is code."""
    parts = (escape(_shown(part)) for part in SPAN.split(text))
    return Markup().join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts))


def _visible(value: object) -> object:
    """What any expression of the template puts out: no control characters, nothing that turns the text around."""
    return _shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _shown(text: str) -> str:
    cut = text if len(text) <= LONGEST_STRING else f"{text[: LONGEST_STRING - 1]}…"
    return "".join(each if each.isprintable() or each in LAYOUT else "�" for each in cut)


def _time(time_ns: float) -> str:
    return str(Nanoseconds(round(time_ns)))


def _plural(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def _recording(path: str) -> str:
    """The file and the folder it is in, which is the run: where that is on the machine is nobody's business."""
    return "/".join(re.split(r"[/\\]+", path)[-2:])[-LONGEST_NAME:]


def _when(span: str) -> str:
    """When a recording was made, where its name says so."""
    time_s = recorded_at(span)
    try:
        return "" if time_s is None else f"{datetime.fromtimestamp(time_s, timezone.utc):%Y-%m-%d %H:%M UTC}"
    except (OverflowError, OSError, ValueError):
        return ""


def _per(steps: Steps) -> str:
    return "trace" if steps.basis in {"whole_trace", "none"} else "step"


def _found_in(runs: Iterable[RunReport]) -> int:
    return sum(len(run.findings) + sum(len(profile.findings) for profile in run.profiles) for run in runs)


def _outcomes_of(part: ProfileReport | RunReport, status: Status) -> list[Outcome]:
    return [outcome for outcome in part.outcomes if outcome.status == status]
