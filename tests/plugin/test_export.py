"""The page to take along, as the plugin answers it."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from tb_tidy_plugin.plugin import web
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import ErrorAnswer, ExportAnswer, ReportAnswer
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.render.html import to_html
from tb_tidy_plugin.render.report import report_document
from tb_tidy_plugin.report.model import Report
from tb_tidy_plugin.system.decoders import decode
from tests.support.logdirs import trace
from tests.support.waiting import until
from tests.support.workers import WITH_MADE_UP_RULE

PROFILE = "run=run&worker=w&span=7"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    root = tmp_path_factory.mktemp("private")
    trace(root / "run" / "w.7.pt.trace.json.gz")
    (root / "broken").mkdir()
    (root / "broken" / "w.pt.trace.json").touch()
    profiles = Profiles([Logdir(str(root))], WITH_MADE_UP_RULE)
    profiles.start()
    until(lambda: not profiles.scanning)
    return web.create_app(profiles, (), MuteStore(())).test_client()


def page(client: FlaskClient, query: str) -> str:
    answer = client.get(f"/api/export?{query}")
    assert (answer.status_code, answer.mimetype) == (200, "application/json")
    return decode(answer.data, ExportAnswer).html


def report(client: FlaskClient) -> Report:
    client.get(f"/api/progress?{PROFILE}").get_data()
    run = decode(client.get(f"/api/report?{PROFILE}").data, ReportAnswer).report
    return Report(schema=1, version="0.1.0", runs=[run], problems=[])


def test_is_the_page_of_the_report_which_it_waits_for(client: FlaskClient) -> None:
    html = page(client, PROFILE)
    assert html == to_html(report_document(report(client), "html"))
    assert "multiplies 16 B" in html


def test_holds_no_path_of_the_machine(client: FlaskClient, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert str(tmp_path_factory.getbasetemp()) not in page(client, PROFILE)


def test_leaves_out_what_is_muted_and_says_so(client: FlaskClient) -> None:
    [finding] = report(client).runs[0].profiles[0].findings
    html = page(client, f"{PROFILE}&muted=other,{finding.id}")
    assert "multiplies" not in html
    assert "1 finding muted and left out." in html


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("run=nowhere&worker=w&span=7", 404, "nowhere"),
        ("run=run&worker=w", 400, "span"),
        ("run=broken&worker=w&span=", 404, "empty"),
    ],
)
def test_what_cannot_be_had(client: FlaskClient, query: str, code: int, words: str) -> None:
    answer = client.get(f"/api/export?{query}")
    assert words in decode(answer.data, ErrorAnswer).error.message
    assert answer.status_code == code
