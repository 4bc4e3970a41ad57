"""Summary of a server in eight lines: the iteration, its bound, the host, the graphs, three causes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tb_tidy_plugin.ledger.model import Ledger
from tb_tidy_plugin.render import document as doc
from tb_tidy_plugin.render.document import Block, Line, Paragraph, Span, code, message
from tb_tidy_plugin.report.generated import place_text
from tb_tidy_plugin.report.model import Finding, ProfileReport
from tb_tidy_plugin.report.serving_model import Graphs, PhaseTotal, Serving
from tb_tidy_plugin.words.units import Bytes, Count, Nanoseconds, Share, plural
from tb_tidy_plugin.words.vocabulary import KNOWN_BY_WORDS, GraphMode, Phase

MOST_PHASES = 3
_MOST_CAUSES = 3
MOST_SOURCES = 2
LEAST_CAUSE = 0.005
"""Least part of the step that a fix must save to be named at the top."""
PHASES: Mapping[Phase, str] = {
    "prefill": "prefill iteration",
    "decode": "decode iteration",
    "mixed": "mixed iteration",
    "diffusion": "image",
    "unknown": "iteration",
}
_MODES: Mapping[GraphMode, str] = {
    "graph": "replays a graph",
    "piecewise": "replays a graph in pieces",
    "eager": "eager",
    "no_device": "nothing ran on the device",
}


def serving_blocks(profile: ProfileReport) -> Iterator[Block]:
    """Iterations and graphs of a profile; empty if there are none."""
    serving = profile.serving
    if serving is None:
        return
    if serving.count:
        yield from (Paragraph(_phase(total), "serving") for total in serving.phases[:MOST_PHASES])
        yield Paragraph((_bound(profile.ledger), *map(_floor, serving.phases[:1])), "bound")
        yield from (Paragraph((_host(total),), "device") for total in serving.phases[:1])
    if serving.graphs is not None:
        yield Paragraph(_graphs(serving.graphs), "graphs")
    if serving.repetition is not None:
        repeated = serving.repetition
        share = f"{Share(repeated.share)} of the longest iteration's device time"
        yield Paragraph(
            (f"{Count(repeated.count)} × {plural(repeated.kernels, 'kernel')}: {share}",), "repeats", "muted"
        )
    if serving.count:
        causes = [(saved, each) for each in profile.findings if (saved := _saved_share(each)) >= LEAST_CAUSE]
        yield from (Paragraph(_cause(*cause), "cause") for cause in causes[:_MOST_CAUSES])


def serving_section(profile: ProfileReport) -> Iterator[Block]:
    """The same blocks as a section, with a table of the phases."""
    serving = profile.serving
    if serving is None:
        return
    blocks = [*serving_blocks(profile)]
    if len(serving.phases) > 1:
        blocks.append(_table(serving))
    yield doc.section("Serving" if serving.count else "Graphs", *blocks)


def _phase(total: PhaseTotal) -> Line:
    """`1 decode iteration, batch 32, 32,785 KV tokens: 10.5 ms, 3,062 tokens/s, replays a graph`."""
    counted = ", ".join([plural(total.count, PHASES[total.phase]), *_batch(total)])
    after = [] if total.tokens_per_second is None else [f"{Count(round(total.tokens_per_second))} tokens/s"]
    if total.phase == "diffusion" and total.requests:
        after.append(f"{total.requests * 1e9 / max(total.device_ns, 1):.3g} images/s")
    if total.time_per_output_token_ns is not None and total.count > 1:
        after.append(f"{Nanoseconds(total.time_per_output_token_ns)} per output token")
    each = "" if total.count == 1 else "median "
    return (
        f"{counted}: {each}",
        Span(str(Nanoseconds(total.device_ns)), "strong"),
        ", ".join(["", *after, _mode(total)]),
    )


def _batch(total: PhaseTotal) -> Iterator[str]:
    """Requests, tokens and KV tokens, without repeated figures."""
    if total.requests is not None and total.phase != "diffusion":
        padded = f" in a graph for {Count(total.padded)}" if total.padded else ""
        yield f"batch {Count(total.requests)}{padded}"
    if total.tokens is not None and total.tokens != total.requests:
        yield plural(total.tokens, "token")
    if total.kv_tokens is not None and total.kv_tokens != total.tokens:
        yield plural(total.kv_tokens, "KV token")
    if total.size is not None:
        yield total.size


def _mode(total: PhaseTotal) -> str:
    if total.mode == "graph" and total.graph_launches > 1:
        return f"{_MODES[total.mode]} {Count(total.graph_launches)} times"
    return _MODES[total.mode]


def _floor(total: PhaseTotal) -> str:
    """The bytes that a decode must read, and the time that this takes at least."""
    floor = total.floor
    if floor is None:
        return ""
    cache = f" and {Bytes(floor.kv_bytes)} of KV cache" if floor.kv_bytes else ""
    least = f"{Nanoseconds(floor.ns)} at least ({Share(floor.ns / max(total.device_ns, 1))})"
    return f"; reading {Bytes(floor.weight_bytes)} of weights{cache} takes {least}"


def _bound(ledger: Ledger) -> str:
    """The ledger's largest entry and how near it is to its limit."""
    if not ledger.entries:
        return "not known"
    entry = ledger.entries[0]
    limit = entry.limit
    reached = ""
    if limit is not None and limit.share_reached is not None:
        what = "peak rate" if limit.bound == "compute" else "memory bandwidth"
        reached = f", at {Share(limit.share_reached)} of the device's {what}"
    return f"{entry.title}: {Share(entry.share)} of the step ({Nanoseconds(entry.ns_per_step)}){reached}"


def _host(total: PhaseTotal) -> str:
    """The device's busy share, what it waits for, and the host's lead."""
    parts = [f"busy {Share(total.busy_share)} from its first kernel to its last"]
    if total.host_late_ns:
        parts.append(f"waits {Nanoseconds(total.host_late_ns)} for the host")
    if total.queued_ns:
        parts.append(f"pauses {Nanoseconds(total.queued_ns)} before queued work")
    if total.lead_ns is not None:
        parts.append(f"its first kernel is launched {Nanoseconds(max(total.lead_ns, 0))} ahead")
    return "; ".join(parts)


def _graphs(graphs: Graphs) -> Line:
    """The part of the replayed time with a known operator, and its source."""
    launched = f"{plural(graphs.launches, 'launch', 'launches')}, {plural(graphs.kernels, 'kernel')}"
    known = [each for each in graphs.attribution if each.known_by is not None]
    if not known:
        advice = "no operator is known: record the capture of the graphs, too (docs/serving.md)"
        return (f"{launched}, {Nanoseconds(graphs.time_ns)}: {advice}",)
    share = Share(sum(each.time_ns for each in known) / max(graphs.time_ns, 1))
    ways = ", ".join(
        f"{KNOWN_BY_WORDS[each.known_by]} {Share(each.time_ns / max(graphs.time_ns, 1))}"
        for each in known
        if each.known_by
    )
    shown = [piece for name in graphs.sources[:MOST_SOURCES] if name for piece in (", ", code(name))][1:]
    more = [f" and {len(graphs.sources) - MOST_SOURCES} more"] if len(graphs.sources) > MOST_SOURCES else []
    source = ("; capture: ", *shown, *more) if shown else ()
    return (f"{launched}: {share} of their time has an operator ({ways})", *source)


def _saved_share(finding: Finding) -> float:
    """Part of the step that fixing a finding is expected to save."""
    if finding.saving is None or finding.share is None or not finding.cost_ns:
        return 0.0
    return min(finding.share * finding.saving.expected_ns / finding.cost_ns, 1.0)


def _cause(saved: float, finding: Finding) -> Line:
    """Advice, its saving, and its place."""
    place = finding.places[0] if finding.places else None
    where: Line = () if place is None else ("; ", code(place_text(place.file, place.line, place.generated)))
    gain = f": saves about {Nanoseconds(finding.saving.expected_ns)} ({Share(saved)})" if finding.saving else ""
    return (message(finding.title), gain, *where)


def _table(serving: Serving) -> doc.Table:
    rows = []
    for total in serving.phases:
        speed = "" if total.tokens_per_second is None else str(Count(round(total.tokens_per_second)))
        figures = (
            str(Count(total.count)),
            "" if total.requests is None else str(Count(total.requests)),
            "" if total.kv_tokens is None else str(Count(total.kv_tokens)),
            str(Nanoseconds(total.device_ns)),
            str(Share(total.busy_share)),
            speed,
        )
        rows.append(((f"{total.phase}, {_MODES[total.mode]}",), *((cell,) for cell in figures)))
    titles = ("iterations", "requests", "KV tokens", "device time", "device busy", "tokens/s")
    return doc.Table(("phase",), titles, tuple(rows))
