"""JSON Schemas of the report and of the web API, generated from their models."""

from __future__ import annotations

import inspect
import json

import msgspec

from tb_tidy_plugin.plugin import models
from tb_tidy_plugin.plugin.queries import Query
from tb_tidy_plugin.plugin.routes import ROUTES
from tb_tidy_plugin.report.model import Report
from tb_tidy_plugin.system.decoders import schema_components

_ANSWERS = [route.answer for route in ROUTES if route.answer is not None]
_ASKED = [route.asked for route in ROUTES if route.asked is not Query]
API_VALUES: tuple[type[msgspec.Struct], ...] = tuple(dict.fromkeys([*_ANSWERS, *_ASKED, models.ErrorAnswer]))


def schema(title: str, *models: type[msgspec.Struct]) -> str:
    """One JSON Schema document whose definitions are `models` and everything they use.

    With one model the document is the schema of that model; with several it is an object with one field for each.
    """
    references, definitions = schema_components(models, "#/definitions/{name}")
    document: dict[str, object] = {"$schema": "http://json-schema.org/draft-07/schema#", "title": title}
    if len(models) == 1:
        document |= references[0]
    else:
        names = [model.__name__ for model in models]
        document |= {
            "type": "object",
            "additionalProperties": False,
            "properties": dict(zip(names, references, strict=True)),
            "required": names,
        }
    document["definitions"] = {name: cleaned(definition) for name, definition in definitions.items()}
    encoded = msgspec.json.encode(document, order="deterministic")
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def cleaned(definition: dict[str, object]) -> dict[str, object]:
    """A definition without the indentation of the docstring that describes it."""
    description = definition.get("description")
    return definition | {"description": inspect.cleandoc(description)} if isinstance(description, str) else definition


def open_to_new_fields(definition: object) -> object:
    """A schema whose objects may have fields that it does not know; maps keep the type of their values.

    Programs validate reports of later versions with it, and a later version may add fields.
    """
    if isinstance(definition, dict):
        return {
            key: open_to_new_fields(value)
            for key, value in definition.items()
            if not (key == "additionalProperties" and value is False)
        }
    return list(map(open_to_new_fields, definition)) if isinstance(definition, list) else definition


def report_schema() -> str:
    """Schema of `tb-tidy check --format json`."""
    published = open_to_new_fields(json.loads(schema("TorchTidy report", Report)))
    return msgspec.json.format(msgspec.json.encode(published, order="deterministic"), indent=2).decode() + "\n"


def api_schema() -> str:
    """Schema of the web API's answers and request bodies."""
    return schema("Api", *API_VALUES)
