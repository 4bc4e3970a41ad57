"""The routes by which the tab starts, watches and cancels benchmarks, and reads what is known."""

from __future__ import annotations

from flask import Blueprint, Response, request

from tb_tidy_plugin.benchmarks.store import Measurements
from tb_tidy_plugin.errors import NotFoundError
from tb_tidy_plugin.plugin.answers import BadQueryError, json_answer, posted, streamed
from tb_tidy_plugin.plugin.desk import Desk
from tb_tidy_plugin.plugin.library import Library
from tb_tidy_plugin.plugin.payloads import BenchmarkCancel, BenchmarkRequest, BenchmarksAnswer
from tb_tidy_plugin.plugin.scan import Key

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
        jobs = desk.states(*key)
        return json_answer(
            BenchmarksAnswer(refusal=desk.refusal, findings=list(pairs), jobs=jobs, measurements=measurements)
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
