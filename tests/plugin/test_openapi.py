"""The API against its own description, asked at random: every answer is described, and none is a fault of ours.

`TIDY_API_EXAMPLES=2000 pytest tests/plugin/test_openapi.py` asks longer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi import checks as conformance

from tb_tidy_plugin.dev.openapi import openapi
from tb_tidy_plugin.plugin import web
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.plugin.queries import Query
from tb_tidy_plugin.plugin.routes import ROUTES, Route
from tests.support.logdirs import trace
from tests.support.waiting import until
from tests.support.workers import WITH_MADE_UP_RULE

EXAMPLES = int(os.environ.get("TIDY_API_EXAMPLES", "5"))
CHECKS = [
    not_a_server_error,
    conformance.status_code_conformance,
    conformance.content_type_conformance,
    conformance.response_schema_conformance,
]
REAL = {"run": "run", "worker": "w", "span": "7", "file": "train.py", "base": "run", "candidate": "run"}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """The app over one run, with mutes that may be changed and benchmarks off."""
    logs = tmp_path_factory.mktemp("api")
    trace(logs / "run" / "w.7.pt.trace.json", 20)
    logdirs = [Logdir(str(logs))]
    profiles = Profiles(logdirs, WITH_MADE_UP_RULE)
    profiles.start()
    until(lambda: not profiles.scanning)
    made = web.create_app(profiles, (), MuteStore(logdirs))
    made.test_client().get("/api/progress?run=run&worker=w&span=7").get_data()
    return made


@pytest.fixture(scope="module")
def api(app: Flask) -> BaseSchema:
    schema = schemathesis.openapi.from_dict(json.loads(openapi()) | {"servers": [{"url": "/"}]})
    schema.app = app
    return schema


def ask(api: BaseSchema, route: Route[Any, Any], mode: GenerationMode, real: Mapping[str, str]) -> int:
    """Asks one route at random, with what is `real` where the query has it; gives the number of questions."""
    asked = 0

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=api[route.path]["post" if route.is_posted else "get"].as_strategy(generation_mode=mode))
    def holds(case: Case[Any]) -> None:
        nonlocal asked
        asked += 1
        query = case.query or {}
        case.query = {**query, **{name: value for name, value in real.items() if name in query}}
        case.call_and_validate(checks=CHECKS, headers={"Accept-Encoding": "identity"})

    holds()
    return asked


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("real", [{}, REAL], ids=["whatever is named", "a profile that is there"])
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{'POST' if route.is_posted else 'GET'} {route.path}")
def test_whatever_is_asked_is_answered_as_described(
    api: BaseSchema, route: Route[Any, Any], mode: GenerationMode, real: Mapping[str, str]
) -> None:
    if mode is GenerationMode.NEGATIVE and route.asked is Query:
        pytest.skip("nothing of this question can be wrong")
    assert ask(api, route, mode, real) > 0


def test_every_route_is_described_and_no_other(app: Flask) -> None:
    served = {
        (rule.rule, method)
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/")
        for method in (rule.methods or set()) & {"GET", "POST"}
    }
    assert served == {(route.path, "POST" if route.is_posted else "GET") for route in ROUTES}
