"""The web API as OpenAPI, from the same models as its answers; tests ask all of it at random and hold it to this."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from tb_tidy_plugin import __version__
from tb_tidy_plugin.dev.schemas import cleaned
from tb_tidy_plugin.plugin import models, timeline_models
from tb_tidy_plugin.plugin.answers import ACTING_HEADER, MOST_POSTED
from tb_tidy_plugin.plugin.events import ORDERS
from tb_tidy_plugin.plugin.queries import MOST_ROWS, USUAL_ROWS
from tb_tidy_plugin.plugin.tables import KERNEL_FAMILIES, KERNEL_ORDERS, OPERATOR_GROUPS, OPERATOR_ORDERS
from tb_tidy_plugin.plugin.timeline_routes import LANES, MOST_PIXELS
from tb_tidy_plugin.plugin.web import CALL_KINDS
from tb_tidy_plugin.units import Bytes

Json: TypeAlias = dict[str, object]

TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "integer", "minimum": 0, "maximum": 10**15 - 1}
TRACE: Json = {"type": "object", "required": ["traceEvents"]}
DESCRIPTION = """What the TorchTidy tab asks TensorBoard. Not for others to build on: it changes with the tab.
All addresses are relative to `data/plugin/torchtidy/`. Names that the query gives are looked up, never opened."""

ERRORS = {
    "400": "The question makes no sense.",
    "403": "Not allowed: the host is not known, another site asks, or benchmarks are off.",
    "404": "There is no such thing.",
    "405": "Only what changes something is posted; all else answers GET and HEAD.",
    "409": "The mutes beside the runs cannot be read or written.",
    "503": "The analysis takes longer than the server waits.",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One part of a query."""

    name: str
    schema: Json
    required: bool = False

    def described(self) -> Json:
        """As OpenAPI has it."""
        return {"name": self.name, "in": "query", "required": self.required, "schema": self.schema}


@dataclass(frozen=True, slots=True)
class Route:
    """One thing that can be asked; `streamed` answers hold one JSON object per line, those without a model a trace."""

    path: str
    answer: type[msgspec.Struct] | None
    parameters: Sequence[Parameter] = ()
    posted: type[msgspec.Struct] | None = None
    streamed: bool = False


def one_of(values: Sequence[object], usual: str) -> Json:
    """A choice."""
    return {"type": "string", "enum": list(values), "default": usual}


def sorted_by(orders: Sequence[str], usual: str) -> Parameter:
    """A column to sort by; a `-` before it puts the largest first."""
    return Parameter("sort", one_of([sign + order for order in orders for sign in ("", "-")], usual))


RUN = Parameter("run", TEXT, required=True)
PROFILE = (RUN, Parameter("worker", TEXT, required=True), Parameter("span", TEXT, required=True))
FILE = Parameter("file", TEXT, required=True)
FINDING = Parameter("finding", TEXT, required=True)
PAGE = (
    Parameter("offset", NUMBER | {"default": 0}),
    Parameter("limit", NUMBER | {"maximum": MOST_ROWS, "default": USUAL_ROWS}),
)
SIDES = tuple(
    Parameter(side + part, TEXT, required=not part)
    for side in ("base", "candidate")
    for part in ("", "_rank", "_span", "_steps")
)
WINDOW = (Parameter("from_ns", NUMBER, required=True), Parameter("to_ns", NUMBER, required=True))
WIDTH = Parameter("width", NUMBER | {"minimum": 1, "maximum": MOST_PIXELS, "default": 1024})
MARKED = Parameter("finding", TEXT)

ROUTES = (
    Route("/api/runs", models.RunsAnswer),
    Route(
        "/api/report",
        models.ReportAnswer,
        (
            RUN,
            Parameter("worker", TEXT),
            Parameter("span", TEXT),
            Parameter("ranks", one_of(["known", "all"], "known")),
        ),
    ),
    Route("/api/ranks", models.RanksAnswer, (RUN,)),
    Route("/api/progress", models.ProfileState, PROFILE, streamed=True),
    Route("/api/retry", models.ProfileState, posted=models.RetryRequest),
    Route("/api/rules", models.RulesAnswer),
    Route("/api/export", models.ExportAnswer, (*PROFILE, Parameter("muted", TEXT))),
    Route("/api/source", models.SourceAnswer, (*PROFILE, FILE)),
    Route("/api/lines", models.LinesAnswer, (*PROFILE, FILE)),
    Route(
        "/api/stack",
        models.StackAnswer,
        (*PROFILE, FINDING, Parameter("place", NUMBER | {"default": 0})),
    ),
    Route("/api/events", models.EventsAnswer, (*PROFILE, FINDING, *PAGE, sorted_by(ORDERS, "start"))),
    Route(
        "/api/operators",
        models.OperatorsAnswer,
        (
            *PROFILE,
            *PAGE,
            Parameter("group", one_of(OPERATOR_GROUPS, OPERATOR_GROUPS[0])),
            Parameter("kind", one_of(["", *CALL_KINDS], "")),
            Parameter("filter", TEXT),
            sorted_by(OPERATOR_ORDERS, "-host_self_ns"),
        ),
    ),
    Route(
        "/api/kernels",
        models.KernelsAnswer,
        (
            *PROFILE,
            *PAGE,
            Parameter("family", one_of(["", *KERNEL_FAMILIES], "")),
            Parameter("filter", TEXT),
            sorted_by(KERNEL_ORDERS, "-total_ns"),
        ),
    ),
    Route("/api/modules", models.ModulesAnswer, PROFILE),
    Route("/api/memory", models.MemoryAnswer, PROFILE),
    Route("/api/cpu", models.CpuAnswer, PROFILE),
    Route("/api/timeline/lanes", timeline_models.TimelineLanes, PROFILE),
    Route(
        "/api/timeline",
        timeline_models.TimelineSlice,
        (*PROFILE, *WINDOW, WIDTH, MARKED, Parameter("lanes", TEXT | {"pattern": f"^{LANES.pattern}$"})),
    ),
    Route("/api/timeline/event", timeline_models.TimelineEvent, (*PROFILE, Parameter("event", NUMBER, required=True))),
    Route("/api/timeline/marks", timeline_models.TimelineMarks, (*PROFILE, *WINDOW, WIDTH, MARKED)),
    Route("/api/timeline/trace", None, (*PROFILE, *WINDOW, Parameter("around_ns", NUMBER))),
    Route("/api/compare", models.CompareAnswer, (*SIDES, *PAGE, Parameter("q", TEXT))),
    Route("/api/mutes", models.MutesAnswer),
    Route("/api/mutes", models.MutesAnswer, posted=models.MuteChange),
    Route("/api/benchmarks", models.BenchmarksAnswer, PROFILE),
    Route("/api/benchmarks", models.BenchmarkState, posted=models.BenchmarkRequest),
    Route("/api/benchmarks/cancel", models.BenchmarkState, posted=models.BenchmarkCancel),
    Route(
        "/api/benchmarks/progress",
        models.BenchmarkState,
        (Parameter("job", NUMBER, required=True),),
        streamed=True,
    ),
)


def openapi(routes: Sequence[Route] = ROUTES) -> str:
    """The document."""
    used: list[type[msgspec.Struct]] = [
        model for route in routes for model in (route.answer, route.posted) if model is not None
    ]
    described: list[type[msgspec.Struct]] = [*dict.fromkeys(used), models.ErrorAnswer]
    references, definitions = msgspec.json.schema_components(described, ref_template="#/components/schemas/{name}")
    schema_of: dict[type[msgspec.Struct], Json] = dict(zip(described, references, strict=True))
    paths: dict[str, Json] = {}
    for route in routes:
        method = "post" if route.posted else "get"
        paths.setdefault(route.path, {})[method] = _operation(route, schema_of)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "TorchTidy", "version": __version__, "description": DESCRIPTION},
        "servers": [{"url": "data/plugin/torchtidy"}],
        "paths": paths,
        "components": {"schemas": {name: cleaned(each) for name, each in definitions.items()}},
    }
    return msgspec.json.format(msgspec.json.encode(document, order="deterministic"), indent=2).decode() + "\n"


def _operation(route: Route, schema_of: Mapping[type[msgspec.Struct], Json]) -> Json:
    kind = "application/x-ndjson" if route.streamed else "application/json"
    name = "A trace" if route.answer is None else f"`{route.answer.__name__}`"
    schema = TRACE if route.answer is None else TEXT if route.streamed else schema_of[route.answer]
    content: Json = {kind: {"schema": schema}}
    description = f"{name}{', one per line' if route.streamed else ''}."
    parameters = [each.described() for each in route.parameters]
    described: Json = {
        "responses": {"200": {"description": description, "content": content}} | dict(_errors(schema_of))
    }
    if route.posted is not None:
        header: Json = {"name": ACTING_HEADER, "in": "header", "required": True, "schema": {"const": "1"}}
        described["requestBody"] = {
            "required": True,
            "description": f"At most {Bytes(MOST_POSTED)}.",
            "content": {"application/json": {"schema": schema_of[route.posted]}},
        }
        parameters.append(header)
    return described | {"parameters": parameters}


def _errors(schema_of: Mapping[type[msgspec.Struct], Json]) -> Iterator[tuple[str, Json]]:
    for code, description in ERRORS.items():
        answer: Json = {"application/json": {"schema": schema_of[models.ErrorAnswer]}}
        yield code, {"description": description, "content": answer}
