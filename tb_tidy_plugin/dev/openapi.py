"""The web API as OpenAPI, from the same models as its answers; tests send random requests and check the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from tb_tidy_plugin import __version__
from tb_tidy_plugin.dev.schemas import cleaned
from tb_tidy_plugin.plugin import models
from tb_tidy_plugin.plugin.answers import ACTING_HEADER, MOST_POSTED
from tb_tidy_plugin.plugin.queries import Query
from tb_tidy_plugin.plugin.routes import ROUTES, Route
from tb_tidy_plugin.system.decoders import schema_components
from tb_tidy_plugin.words.units import Bytes

_Json: TypeAlias = dict[str, object]

_TEXT: _Json = {"type": "string"}
TRACE: _Json = {"type": "object", "required": ["traceEvents"]}
DESCRIPTION = """What the TorchTidy tab asks TensorBoard. Not for others to build on: it changes with the tab.
All addresses are relative to `data/plugin/torchtidy/`. Names that the query gives are looked up, never opened."""

ERRORS = {
    "202": "The analysis takes longer than the server waits. Ask again.",
    "400": "The question makes no sense.",
    "403": "Not allowed: the host is not known, another site asks, or benchmarks are off.",
    "404": "There is no such thing.",
    "405": "Only what changes something is posted; all else answers GET and HEAD.",
    "409": "The mutes beside the runs cannot be read or written.",
}


def openapi() -> str:
    """The document."""
    answers = [route.answer for route in ROUTES if route.answer is not None]
    posted = [route.asked for route in ROUTES if route.is_posted]
    described: list[type[msgspec.Struct]] = [*dict.fromkeys([*answers, *posted]), models.ErrorAnswer]
    references, definitions = schema_components(described, "#/components/schemas/{name}")
    schema_of: dict[type[msgspec.Struct], _Json] = dict(zip(described, references, strict=True))
    paths: dict[str, _Json] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})["post" if route.is_posted else "get"] = _operation(route, schema_of)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "TorchTidy", "version": __version__, "description": DESCRIPTION},
        "servers": [{"url": "data/plugin/torchtidy"}],
        "paths": paths,
        "components": {"schemas": {name: cleaned(each) for name, each in definitions.items()}},
    }
    return msgspec.json.format(msgspec.json.encode(document, order="deterministic"), indent=2).decode() + "\n"


def _operation(route: Route[Any, Any], schema_of: Mapping[type[msgspec.Struct], _Json]) -> _Json:
    kind = "application/x-ndjson" if route.streamed else "application/json"
    name = "A trace" if route.answer is None else f"`{route.answer.__name__}`"
    schema = TRACE if route.answer is None else _TEXT if route.streamed else schema_of[route.answer]
    content: _Json = {kind: {"schema": schema}}
    description = f"{name}{', one per line' if route.streamed else ''}."
    responses = {"200": {"description": description, "content": content}} | dict(_errors(schema_of))
    if not route.is_posted:
        return {"responses": responses, "parameters": list(parameters_of(route.asked))}
    header: _Json = {"name": ACTING_HEADER, "in": "header", "required": True, "schema": {"const": "1"}}
    body = {
        "required": True,
        "description": f"At most {Bytes(MOST_POSTED)}.",
        "content": {"application/json": {"schema": schema_of[route.asked]}},
    }
    return {"responses": responses, "requestBody": body, "parameters": [header]}


def parameters_of(query: type[Query]) -> Iterator[_Json]:
    """The parts of a query as OpenAPI parameters."""
    _, definitions = schema_components([query])
    described = definitions[query.__name__]
    for name, schema in described["properties"].items():
        yield {"name": name, "in": "query", "required": name in described["required"], "schema": schema}


def _errors(schema_of: Mapping[type[msgspec.Struct], _Json]) -> Iterator[tuple[str, _Json]]:
    for code, description in ERRORS.items():
        answer: _Json = {"application/json": {"schema": schema_of[models.ErrorAnswer]}}
        yield code, {"description": description, "content": answer}
