"""The web API and the built frontend, as a Flask app: `create_app(profiles, …)`.

Nothing that a query names is opened: runs, findings and files are looked up among what the plugin's own search and its
own analyses have found.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, get_args

import msgspec
from flask import Blueprint, Flask, Response, request, send_from_directory

from tb_tidy_plugin.errors import NotFoundError
from tb_tidy_plugin.plugin.allowed_hosts import AllowedHosts
from tb_tidy_plugin.plugin.analysis_worker import printable
from tb_tidy_plugin.plugin.answers import install, json_answer, posted, streamed
from tb_tidy_plugin.plugin.bench_routes import add_benchmarks
from tb_tidy_plugin.plugin.benchmark_queue import BenchmarkQueue
from tb_tidy_plugin.plugin.comparisons import Comparisons, Rows, Side
from tb_tidy_plugin.plugin.events import ORDERS, EventColumns, page_of
from tb_tidy_plugin.plugin.export import exported
from tb_tidy_plugin.plugin.models import (
    MuteChange,
    RetryRequest,
    RuleInfo,
    RulesAnswer,
    RuleSection,
    SourceAnswer,
    ThresholdInfo,
)
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.plugin.queries import given, number, one_of, page_asked, profile_key, sort_asked
from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.plugin.tables import (
    KERNEL_FAMILIES,
    KERNEL_ORDERS,
    OPERATOR_GROUPS,
    OPERATOR_ORDERS,
    Page,
    Tables,
    cpu_answer,
    kernels_answer,
    lines_answer,
    memory_answer,
    modules_answer,
    operators_answer,
)
from tb_tidy_plugin.plugin.timeline_routes import add_timeline
from tb_tidy_plugin.plugin.timelines import Timelines
from tb_tidy_plugin.report.figures import CallKind
from tb_tidy_plugin.sources.files import Unavailable, read_source

if TYPE_CHECKING:
    from tb_tidy_plugin.rulekit import AnyRule

STATIC = Path(__file__).parent / "static"
ASSETS = "assets/"  # their names hold a hash of their contents
YEAR_S = 365 * 24 * 3600

STATIC_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
"""What is served of the bundle, and as what: an operating system's own table may call JavaScript plain text."""

CALL_KINDS: tuple[CallKind, ...] = get_args(CallKind)
PATIENCE_S = 20.0  # for an analysis that has to be made again before an answer is possible


def create_app(
    profiles: Profiles,
    source_roots: Sequence[Path],
    mutes: MuteStore,
    queue: BenchmarkQueue | None = None,
    hosts: AllowedHosts | None = None,
) -> Flask:
    """The app, with addresses relative to where it is mounted; `hosts` are the names by which it may be asked for."""
    app = Flask(__name__, static_folder=None)
    app.url_map.strict_slashes = False  # a redirect has a body of HTML
    install(app, ("/api/retry", "/api/mutes", "/api/benchmarks", "/api/benchmarks/cancel"), hosts)
    api = _api(profiles, source_roots)
    _add_mutes(api, mutes)
    add_benchmarks(api, profiles, queue or BenchmarkQueue())
    app.register_blueprint(api)

    @app.get("/<path:name>")
    def bundle(name: str) -> Response:
        kind = STATIC_TYPES.get(PurePosixPath(name).suffix)
        if kind is None:
            raise NotFoundError(f"There is no `{name}` in the plugin.", "Check the address.")
        answer = send_from_directory(STATIC, name, mimetype=kind, max_age=YEAR_S if name.startswith(ASSETS) else None)
        if name.startswith(ASSETS):
            answer.cache_control.immutable = True
        etag, _ = answer.get_etag()
        if etag is not None:
            answer.set_etag(etag, weak=True)  # the same for plain and compressed
        return answer

    return app


def _api(profiles: Profiles, source_roots: Sequence[Path]) -> Blueprint:
    api = Blueprint("api", __name__, url_prefix="/api")

    @api.get("/runs")
    def runs() -> Response:
        return json_answer(profiles.runs())

    @api.get("/report")
    def report() -> Response:
        every_rank = one_of("ranks", request.args.get("ranks", "known"), ("known", "all")) == "all"
        return json_answer(
            profiles.report(given("run"), request.args.get("worker"), request.args.get("span"), every_rank=every_rank)
        )

    @api.get("/ranks")
    def ranks() -> Response:
        return json_answer(profiles.ranks(given("run")))

    @api.get("/progress")
    def progress() -> Response:
        return streamed(profiles.progress(profile_key()))

    @api.post("/retry")
    def retry() -> Response:
        asked = posted(RetryRequest)
        return json_answer(profiles.retry(Key(asked.run, asked.worker, asked.span)))

    @api.get("/rules")
    def rules() -> Response:
        from tb_tidy_plugin.configuration.checks import known_rules
        from tb_tidy_plugin.configuration.files import Configuration, read_configuration

        file = profiles.configuration
        known = known_rules(Configuration() if file is None else read_configuration(file))
        return json_answer(RulesAnswer(rules=[rule_info(rule) for rule in known]))

    @api.get("/export")
    def export() -> Response:
        muted = frozenset(request.args.get("muted", "").split(","))
        return json_answer(exported(profiles, profile_key(), muted, PATIENCE_S))

    _add_evidence(api, profiles, source_roots)
    _add_tables(api, profiles)
    add_timeline(api, Timelines(profiles))
    _add_comparisons(api, Comparisons(profiles))
    return api


def _add_evidence(api: Blueprint, profiles: Profiles, source_roots: Sequence[Path]) -> None:
    """The routes of what a finding shows: source files, what their lines cost, callers, events."""

    @api.get("/source")
    def source() -> Response:
        name = given("file")
        kept = profiles.kept(profile_key(), PATIENCE_S)
        result = kept.result
        found = read_source(name, result.source_files, kept.file, source_roots, result.captured_sources)
        if isinstance(found, Unavailable):
            return json_answer(_source(name, reason=found.reason))
        return json_answer(_source(name, changed=found.changed, lines=found.lines, path=_text_of(found.path)))

    @api.get("/lines")
    def lines() -> Response:
        name, result = given("file"), profiles.kept(profile_key(), PATIENCE_S).result
        if name not in result.source_files:
            raise NotFoundError(f"This profile names no file `{name}`.", "Reload the report.")
        return json_answer(lines_answer(result.tables, name))

    @api.get("/stack")
    def stack() -> Response:
        finding, place = given("finding"), number("place", 0)
        stacks = profiles.kept(profile_key(), PATIENCE_S).result.stacks.get(finding, [])
        if place >= len(stacks):
            raise NotFoundError(
                f"This profile has no finding `{finding}` with {place + 1} places.", "Reload the report."
            )
        return json_answer(stacks[place])

    @api.get("/events")
    def events() -> Response:
        finding, (offset, limit), (order, descending) = given("finding"), page_asked(), sort_asked("start", ORDERS)
        columns = profiles.kept(profile_key(), PATIENCE_S).result.events.get(finding)
        if columns is None:
            raise NotFoundError(f"This profile has no finding `{finding}`.", "Reload the report.")
        found = msgspec.json.decode(columns, type=EventColumns)
        return json_answer(page_of(found, offset, limit, order, descending=descending))


def _add_tables(api: Blueprint, profiles: Profiles) -> None:
    """The routes of what is shown beside the report."""

    def tables() -> Tables:
        return profiles.kept(profile_key(), PATIENCE_S).result.tables

    @api.get("/operators")
    def operators() -> Response:
        group = one_of("group", request.args.get("group", OPERATOR_GROUPS[0]), OPERATOR_GROUPS)
        (offset, limit), (order, descending) = page_asked(), sort_asked("-host_self_ns", OPERATOR_ORDERS)
        kind = one_of("kind", request.args.get("kind", ""), ("", *CALL_KINDS))
        page = Page(offset, limit, order, descending, request.args.get("filter", ""), kind)
        return json_answer(operators_answer(tables(), group, page))

    @api.get("/kernels")
    def kernels() -> Response:
        (offset, limit), (order, descending) = page_asked(), sort_asked("-total_ns", KERNEL_ORDERS)
        family = one_of("family", request.args.get("family", ""), ("", *KERNEL_FAMILIES))
        page = Page(offset, limit, order, descending, request.args.get("filter", ""), family)
        return json_answer(kernels_answer(tables(), page))

    @api.get("/modules")
    def modules() -> Response:
        return json_answer(modules_answer(tables()))

    @api.get("/memory")
    def memory() -> Response:
        return json_answer(memory_answer(tables()))

    @api.get("/cpu")
    def cpu() -> Response:
        return json_answer(cpu_answer(tables()))


def _add_comparisons(api: Blueprint, comparisons: Comparisons) -> None:
    @api.get("/compare")
    def compare() -> Response:
        (offset, limit), text = page_asked(), request.args.get("q", "")
        return json_answer(comparisons.answer(_side("base"), _side("candidate"), Rows(text, offset, limit), PATIENCE_S))


def _side(name: str) -> Side:
    """One side of a comparison, whose parameters begin with `name`."""
    return Side(given(name), *(request.args.get(f"{name}_{part}", "") for part in ("rank", "span", "steps")))


def _add_mutes(api: Blueprint, mutes: MuteStore) -> None:
    @api.get("/mutes")
    def muted() -> Response:
        return json_answer(mutes.answer())

    @api.post("/mutes")
    def mute() -> Response:
        return json_answer(mutes.change(posted(MuteChange)))


def rule_info(rule: type[AnyRule]) -> RuleInfo:
    """A rule with its page."""
    from tb_tidy_plugin.rulekit.page import page_of as read_page
    from tb_tidy_plugin.rulekit.thresholds import shown_name, thresholds_of

    page = read_page(rule)
    return RuleInfo(
        rule=rule.name(),
        code=rule.code,
        category=rule.category(),
        title=page.title,
        needs=sorted(rule.needs),
        sections=[RuleSection(heading=heading, text=text) for heading, text in page.sections.items()],
        thresholds=[
            ThresholdInfo(name=shown_name(name), default=threshold.default, reason=threshold.reason)
            for name, threshold in thresholds_of(rule).items()
        ],
    )


def _source(
    name: str,
    *,
    reason: str | None = None,
    changed: bool = False,
    lines: Sequence[str] = (),
    path: str | None = None,
) -> SourceAnswer:
    return SourceAnswer(
        file=name, available=reason is None, reason=reason, changed=changed, lines=list(lines), path=path
    )


def _text_of(path: Path | None) -> str | None:
    """A path as text, None where it is none: with another letter in it, it would name another file."""
    text = None if path is None else str(path)
    return text if text is not None and printable(text) == text else None
