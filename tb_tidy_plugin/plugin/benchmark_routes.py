"""Answers about benchmarks: those of one profile, and the start of a new one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from tb_tidy_plugin.analysis.pairs import Measuring, made_again, request_for
from tb_tidy_plugin.benchmarks.devices import of_kinds
from tb_tidy_plugin.benchmarks.measurement import Measurement
from tb_tidy_plugin.benchmarks.store import Measurements
from tb_tidy_plugin.plugin.analysis_worker import AnalysisResult, printable
from tb_tidy_plugin.plugin.benchmark_queue import BenchmarkQueue
from tb_tidy_plugin.plugin.models import (
    BenchmarkRequest,
    BenchmarksAnswer,
    BenchmarkState,
    BenchmarkStatements,
)
from tb_tidy_plugin.plugin.queries import ProfileQuery
from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.plugin.served import ANALYSIS_PATIENCE_S, Served
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.rulekit import Benchmark
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.words.errors import NotFoundError


def known(served: Served, asked: ProfileQuery) -> BenchmarksAnswer:
    """The known benchmarks of one profile; renews its analysis if the report lacks measurements."""
    profiles, queue, key = served.profiles, served.benchmarks, asked.key
    kept = profiles.kept(key, ANALYSIS_PATIENCE_S)
    result, pairs = kept.result, _pairs(kept.result, profiles.configuration)
    stored = Measurements(kept.file.path, result.kind)
    found = {finding: stored.of(result.recipes[finding].rule, pair) for finding, pair in pairs.items()}
    measurements = {finding: each for finding, each in found.items() if each is not None}
    news = _not_in(result.report, measurements)
    if news and not queue.is_busy:
        profiles.renew(key, news)
    return BenchmarksAnswer(
        refusal=queue.refusal,
        command=_command(kept.file.path, profiles.configuration),
        kind=result.kind if pairs else "",
        findings={finding: _statements(pair, queue) for finding, pair in pairs.items()},
        jobs=queue.states(*key),
        measurements=measurements,
    )


def measure(served: Served, asked: BenchmarkRequest) -> BenchmarkState:
    """Puts a finding's statements in the queue. Clients only name findings; the statements are made here."""
    result = served.profiles.kept(Key(asked.run, asked.worker, asked.span), ANALYSIS_PATIENCE_S).result
    pair = _pairs(result, served.profiles.configuration).get(asked.finding)
    if pair is None:
        raise NotFoundError(f"The finding `{asked.finding}` has no statements.", "Reload the report.")
    how = Measuring(asked=asked.device, budget_s=asked.budget_s)
    return served.benchmarks.add(asked, request_for(result.recipes[asked.finding].rule, pair, result.kind, how))


def _pairs(result: AnalysisResult, configuration: Path | None) -> dict[str, Benchmark]:
    """The statements of a result's findings; loads the user's own rules if one of them has made some.

    Raises:
        ConfigurationError: these can no longer be loaded.
    """
    from tb_tidy_plugin.configuration.checks import known_rules
    from tb_tidy_plugin.configuration.files import Configuration, read_configuration
    from tb_tidy_plugin.rules import catalogue

    rules = catalogue()
    if not {recipe.rule for recipe in result.recipes.values()} <= {rule.name() for rule in rules}:
        rules = known_rules(Configuration() if configuration is None else read_configuration(configuration))
    return made_again(result.recipes, rules)


def _not_in(report: ProfileReport, measurements: Mapping[str, Measurement]) -> str:
    """Names the measurements that a report lacks; empty if it has them all."""
    shown = {finding.id: finding.measurement for finding in report.findings}
    news = (
        f"{finding} {each.measured_at} {each.ratio}"
        for finding, each in measurements.items()
        if shown.get(finding) != each
    )
    return "; ".join(news)


def _command(trace: AnyPath, configuration: Path | None) -> str:
    configured = [] if configuration is None else ["--config", printable(str(configuration))]
    return shlex.join(["tb-tidy", "bench", printable(str(trace)), *configured])


def _statements(pair: Benchmark, queue: BenchmarkQueue) -> BenchmarkStatements:
    devices = of_kinds(queue.devices, pair.devices)
    return BenchmarkStatements(
        before=pair.before, after=pair.after, setup=pair.setup, of_events=pair.of_events, devices=devices
    )
