"""The routes by which the tab starts, watches and cancels benchmarks, and reads what is known."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from flask import Blueprint, Response, request

from tb_tidy_plugin.benchmarks.devices import of_kinds
from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.benchmarks.store import Measurements
from tb_tidy_plugin.errors import NotFoundError
from tb_tidy_plugin.plugin.answers import BadQueryError, json_answer, posted, streamed
from tb_tidy_plugin.plugin.desk import Desk
from tb_tidy_plugin.plugin.library import Library
from tb_tidy_plugin.plugin.payloads import (
    BenchmarkCancel,
    BenchmarkRequest,
    BenchmarksAnswer,
    BenchmarkStatements,
)
from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.plugin.worker import printable
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.rulekit import Benchmark
from tb_tidy_plugin.trace.remote import Place

PATIENCE_S = 10.0  # for an analysis that was given up to make room and has to be made again


def add_benchmarks(api: Blueprint, library: Library, desk: Desk) -> None:
    """Adds the routes to `api`. Only findings are named; their statements are those of this machine's own analysis."""

    @api.get("/benchmarks")
    def benchmarks() -> Response:
        key = Key(*(request.args.get(name, "") for name in ("run", "worker", "span")))
        kept = library.kept(key, PATIENCE_S)
        pairs = kept.result.pairs
        known = {
            finding: Measurements(kept.file.path, pair.kind).of(pair.rule, pair.statements)
            for finding, pair in pairs.items()
        }
        measurements = {finding: found for finding, found in known.items() if found is not None}
        news = _not_in(kept.result.report, measurements)
        if news and not desk.is_busy:
            library.renew(key, news)
        return json_answer(
            BenchmarksAnswer(
                refusal=desk.refusal,
                command=_command(kept.file.path, library.configuration),
                kind=next((pair.kind for pair in pairs.values()), ""),
                findings={finding: _statements(pair.statements, desk) for finding, pair in pairs.items()},
                jobs=desk.states(*key),
                measurements=measurements,
            )
        )

    @api.post("/benchmarks")
    def measure() -> Response:
        asked = posted(BenchmarkRequest)
        pair = library.kept(Key(asked.run, asked.worker, asked.span), PATIENCE_S).result.pairs.get(asked.finding)
        if pair is None:
            raise NotFoundError(f"The finding `{asked.finding}` has no statements.", "Reload the report.")
        return json_answer(desk.add(asked, pair))

    @api.post("/benchmarks/cancel")
    def cancel() -> Response:
        return json_answer(desk.cancel(posted(BenchmarkCancel).job))

    @api.get("/benchmarks/progress")
    def benchmark_progress() -> Response:
        job = request.args.get("job", type=int)
        if job is None:
            raise BadQueryError("The query names no benchmark.", "Add `job=…`.")
        return streamed(desk.progress(job))


def _not_in(report: ProfileReport, measurements: Mapping[str, Measurement]) -> str:
    """Names the measurements that a report was made without; empty where it has them all."""
    shown = {finding.id: finding.measurement for finding in report.findings}
    news = (
        f"{finding} {each.measured_at} {each.ratio}"
        for finding, each in measurements.items()
        if shown.get(finding) != each
    )
    return "; ".join(news)


def _command(trace: Place, configuration: Path | None) -> str:
    configured = [] if configuration is None else ["--config", printable(str(configuration))]
    return shlex.join(["tb-tidy", "bench", printable(str(trace)), *configured])


def _statements(pair: Benchmark, desk: Desk) -> BenchmarkStatements:
    devices = of_kinds(desk.devices, pair.devices)
    return BenchmarkStatements(
        before=pair.before, after=pair.after, setup=pair.setup, of_events=pair.of_events, devices=devices
    )
