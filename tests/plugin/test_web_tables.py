"""The web API's tables: operators sorted, filtered and paged; modules, memory, CPU work; what is missing and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import jsonschema
import msgspec
import pytest
from flask.testing import FlaskClient

from tb_tidy_plugin.analysis.checker import MISSING
from tb_tidy_plugin.analysis.lines import LineCost, LineCosts
from tb_tidy_plugin.analysis.tables import GROUPS
from tb_tidy_plugin.plugin import web
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import (
    CpuAnswer,
    ErrorAnswer,
    FileCost,
    FilesAnswer,
    KernelsAnswer,
    LinesAnswer,
    MemoryAnswer,
    ModulesAnswer,
    OperatorsAnswer,
    ReportAnswer,
)
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.plugin.queries import KernelsQuery, read_query
from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.plugin.tables import Tables, files_answer, line_columns
from tb_tidy_plugin.report.chosen import OPERATOR_ORDERS
from tb_tidy_plugin.report.idle import IdleAnswer
from tb_tidy_plugin.sources.frames import Frame
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.words.causes import Kind
from tests.support.logdirs import multiplications, trace
from tests.support.recordings import ROOT, shared
from tests.support.waiting import until
from tests.support.workers import WITH_MADE_UP_RULE
from tests.support.written import event, kineto_text, write

Answer = TypeVar("Answer")

OPERATORS = 700
SCHEMA = json.loads((ROOT / "docs" / "api.schema.json").read_text())
SMALL, SAMPLE = "run=run&worker=w&span=7", "run=sample&worker=workstation&span=1795242331722230743"


def sample() -> Path:
    (path,) = (ROOT / "sample_runs" / "image_classifier_untidy").glob("*.gz")
    return path


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tables")
    trace(root / "run" / "w.7.pt.trace.json.gz", OPERATORS)
    bare = kineto_text([*multiplications(3), event("aten::relu", 90, 1)])
    (root / "bare").mkdir()
    write(root / "bare" / "w.7.pt.trace.json", bare.replace("Input Dims", "No Dims"))
    (root / "broken").mkdir()
    (root / "broken" / "w.pt.trace.json").touch()
    (root / "sample").mkdir()
    for file in (sample(), sample().with_name("train.py")):
        (root / "sample" / file.name).write_bytes(file.read_bytes())
    return root


@pytest.fixture(scope="module")
def profiles(logs: Path) -> Profiles:
    return Profiles([Logdir(str(logs))], WITH_MADE_UP_RULE)


@pytest.fixture(scope="module")
def client(profiles: Profiles) -> Iterator[FlaskClient]:
    profiles.start()
    until(lambda: not profiles.scanning)
    with web.create_app(profiles, (), MuteStore(())).test_client() as client:
        yield client


def answer(client: FlaskClient, query: str, kind: type[Answer]) -> Answer:
    response = client.get(f"/api/{query}")
    assert response.status_code == 200, response.text
    return decode(response.data, kind)


def operators(client: FlaskClient, query: str = "", profile: str = SAMPLE) -> OperatorsAnswer:
    return answer(client, f"operators?{profile}&limit=500{query}", OperatorsAnswer)


# Operators


def test_operators_come_with_what_all_of_their_grouping_have(client: FlaskClient) -> None:
    every = operators(client)
    few = operators(client, "&filter=conv")
    assert 0 < few.total < every.total
    assert every.host_ns == sum(row.host_self_ns for row in every.rows)
    assert (few.host_ns, few.device_ns, few.empty) == (every.host_ns, None, every.empty)
    without = {name for name in OPERATOR_ORDERS if all(getattr(row, name) in {None, ""} for row in every.rows)}
    assert set(every.empty) == without >= {"device_self_ns", "roofline"}


def test_operators_by_name_are_what_is_answered_without_a_grouping(client: FlaskClient) -> None:
    found = operators(client)
    assert (found.group, found.offset, found.missing) == ("name", 0, None)
    assert found.total == len(found.rows)
    times = [row.host_self_ns for row in found.rows]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("group", GROUPS)
def test_each_grouping_adds_up_to_the_same(client: FlaskClient, group: str) -> None:
    by_name = sum(row.host_self_ns for row in operators(client).rows if row.kind != "annotation")
    first = operators(client, f"&group={group}")
    rest = operators(client, f"&group={group}&offset=500")
    rows = [*first.rows, *rest.rows]
    assert len(rows) == first.total == rest.total
    assert sum(row.host_self_ns for row in rows if row.kind != "annotation") == by_name


@pytest.mark.parametrize("order", OPERATOR_ORDERS)
@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("group", ["shape", "line"])
def test_sorted_by_any_column_with_unknown_ones_last(client: FlaskClient, order: str, sign: str, group: str) -> None:
    values: list[Any] = [getattr(row, order) for row in operators(client, f"&group={group}&sort={sign}{order}").rows]
    known = [value for value in values if value not in {None, ""}]
    assert known == sorted(known, reverse=bool(sign))
    assert all(value in {None, ""} for value in values[len(known) :])


def test_equal_rows_keep_their_order_in_both_directions(client: FlaskClient) -> None:
    rows = operators(client, "&kind=operator").rows
    for sign in ("", "-"):
        once = [row for row in operators(client, f"&kind=operator&sort={sign}calls").rows if row.calls == 3]
        assert [row.key for row in once] == [row.key for row in rows if row.calls == 3]


def test_pages(client: FlaskClient) -> None:
    everything = operators(client, "&group=shape&sort=name").rows
    first = answer(client, f"operators?{SAMPLE}&group=shape&sort=name", OperatorsAnswer)
    assert (len(first.rows), first.rows) == (100, everything[:100])
    page = answer(client, f"operators?{SAMPLE}&group=shape&sort=name&offset=7&limit=5", OperatorsAnswer)
    assert (page.offset, page.rows, page.total) == (7, everything[7:12], first.total)
    beyond = answer(client, f"operators?{SAMPLE}&group=shape&offset=100000", OperatorsAnswer)
    assert (beyond.rows, beyond.total) == ([], first.total)


@pytest.mark.parametrize(
    ("group", "text", "words"),
    [
        ("name", "NATIVE_BATCH", "native_batch"),
        ("shape", "48×3×32×32", "48×3×32×32"),
        ("shape", "48x3x32x32", "48×3×32×32"),
        ("shape", "INT64", "int64"),
        ("line", "__getitem__", "__getitem__"),
        ("line", "Train.py:41", "train.py"),
        ("module", "residual", "ResidualBlock"),
    ],
)
def test_filter_looks_at_name_shapes_place_and_module(client: FlaskClient, group: str, text: str, words: str) -> None:
    all_rows, found = operators(client, f"&group={group}"), operators(client, f"&group={group}&filter={quote(text)}")
    assert found.rows
    assert found.total < all_rows.total
    for row in found.rows:
        assert words in f"{row.name} {row.shapes} {row.file} {row.function} {row.module}"


def test_one_row_by_its_key(client: FlaskClient) -> None:
    wanted = operators(client, "&group=module").rows[3]
    assert operators(client, f"&group=module&filter={wanted.key}").rows == [wanted]


def test_nothing_is_found_where_nothing_is(client: FlaskClient) -> None:
    found = operators(client, "&filter=no+such+operator")
    assert (found.total, found.rows, found.missing) == (0, [], None)


def test_kernels_are_sorted_by_time_and_add_up_to_their_families(client: FlaskClient) -> None:
    found = answer(client, f"kernels?{SAMPLE}&limit=500", KernelsAnswer)
    assert found.total == len(found.rows)
    times = [row.total_ns for row in found.rows]
    assert times == sorted(times, reverse=True)
    assert sum(times) == sum(family.total_ns for family in found.families)
    assert client.get(f"/api/kernels?{SAMPLE}&family=nothing").status_code == 400
    assert client.get(f"/api/kernels?{SAMPLE}&sort=key").status_code == 400


def test_a_family_in_an_address_is_a_kind_of_work() -> None:
    asked = {"run": "run", "worker": "w", "span": "7"}
    assert read_query(KernelsQuery, {**asked, "family": "matrix"}).family is Kind.MATRIX
    assert read_query(KernelsQuery, asked).family is None


def test_one_kind_of_calls(client: FlaskClient) -> None:
    assert {row.name for row in operators(client, "&kind=annotation").rows} >= {"ProfilerStep*"}
    assert all(row.kind == "operator" for row in operators(client, "&kind=operator").rows)


def test_rows_name_their_findings(client: FlaskClient) -> None:
    client.get(f"/api/progress?{SMALL}").get_data()
    (report,) = answer(client, f"report?{SMALL}", ReportAnswer).report.profiles
    (row,) = operators(client, "&kind=operator", SMALL).rows
    assert (row.calls, row.findings) == (OPERATORS, [finding.id for finding in report.findings])


# Modules, memory, CPU work


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        *((f"operators?{SAMPLE}&group={group}&limit=500", "OperatorsAnswer") for group in GROUPS),
        ("operators?run=bare&worker=w&span=7&group=shape", "OperatorsAnswer"),
        (f"modules?{SAMPLE}", "ModulesAnswer"),
        (f"memory?{SAMPLE}", "MemoryAnswer"),
        (f"cpu?{SAMPLE}", "CpuAnswer"),
    ],
)
def test_answers_fit_their_schema(client: FlaskClient, query: str, kind: str) -> None:
    document = {"$ref": f"#/definitions/{kind}", "definitions": SCHEMA["definitions"]}
    jsonschema.validate(json.loads(client.get(f"/api/{query}").data), document)


def test_modules(client: FlaskClient) -> None:
    found = answer(client, f"modules?{SAMPLE}", ModulesAnswer)
    assert found.missing is None
    assert (found.rows[0].name, found.rows[0].last) == ("Sequential_0", len(found.rows) - 1)


def test_cpu_work(client: FlaskClient) -> None:
    cpu = answer(client, f"cpu?{SAMPLE}", CpuAnswer).cpu
    assert cpu.threads == 1
    assert cpu.frames is not None
    assert cpu.frames[0].function == "__getitem__"


def test_memory(tmp_path: Path) -> None:
    (path,) = shared("traces/v100_memory_compile_216k").glob("*.gz")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / path.name).write_bytes(path.read_bytes())
    profiles = Profiles([Logdir(str(tmp_path))])
    profiles.start()
    until(lambda: not profiles.scanning)
    client = web.create_app(profiles, (), MuteStore(())).test_client()
    found = answer(client, "memory?run=run&worker=rank0&span=", MemoryAnswer)
    assert found.missing is None
    assert [device.device for device in found.devices] == ["cpu", "cuda:1"]
    assert all(len(device.time_ns) <= 2000 for device in found.devices)


# What is not there


def test_what_was_not_recorded_says_how_to_record_it(client: FlaskClient) -> None:
    bare = "run=bare&worker=w&span=7"
    for group, need in (("shape", "shapes"), ("line", "stacks"), ("module", "stacks")):
        found = operators(client, f"&group={group}", bare)
        assert (found.group, found.total, found.rows, found.missing) == (group, 0, [], MISSING[need])
    assert answer(client, f"modules?{bare}", ModulesAnswer) == ModulesAnswer(rows=[], missing=MISSING["stacks"])
    assert answer(client, f"memory?{bare}", MemoryAnswer) == MemoryAnswer(devices=[], missing=MISSING["memory"])
    assert answer(client, f"kernels?{bare}", KernelsAnswer).missing == MISSING["device"]
    assert answer(client, f"cpu?{bare}", CpuAnswer).cpu.frames is None


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("operators", 400, "no `run`"),
        ("modules?run=run&worker=w", 400, "no `span`"),
        (f"operators?{SMALL}&group=color", 400, "Known: line, module, name, shape."),
        (f"operators?{SMALL}&group=", 400, "group"),
        (f"operators?{SMALL}&sort=color", 400, "Known: name, operators, calls"),
        (f"operators?{SMALL}&sort=kernels", 400, "sort"),
        (f"operators?{SMALL}&sort=--calls", 400, "sort"),
        (f"operators?{SMALL}&sort=__class__", 400, "sort"),
        (f"operators?{SMALL}&kind=color", 400, "Known: annotation, mixed, operator, runtime."),
        (f"operators?{SMALL}&limit=501", 400, "larger than 500"),
        (f"operators?{SMALL}&offset=-1", 400, "offset"),
        ("operators?run=nothing&worker=w&span=7", 404, "no run `nothing`"),
        ("cpu?run=broken&worker=w&span=", 404, "The file is empty"),
        ("memory?run=run&worker=w&span=8", 404, "span `8`"),
    ],
)
def test_is_answered_with_what_is_wrong(client: FlaskClient, query: str, code: int, words: str) -> None:
    response = client.get(f"/api/{query}")
    assert response.status_code == code, response.text
    found = decode(response.data, ErrorAnswer).error
    assert words in found.message + found.advice


@pytest.mark.parametrize("path", ["operators", "modules", "memory", "cpu"])
def test_what_has_not_changed_is_not_sent_again(client: FlaskClient, path: str) -> None:
    first = client.get(f"/api/{path}?{SAMPLE}")
    assert first.headers["ETag"].startswith('W/"')
    again = client.get(f"/api/{path}?{SAMPLE}", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_tables_count_as_memory(client: FlaskClient, profiles: Profiles) -> None:
    kept = profiles.kept(Key("sample", "workstation", "1795242331722230743"), 60.0)
    tables = kept.result.tables
    events = sum(len(bytes(columns)) for columns in kept.result.events.values())
    assert kept.size == events + tables.size + len(bytes(kept.result.step_costs))
    assert tables.size > sum(len(bytes(rows)) for rows in tables.operators.values()) > 100_000


# Lines


@pytest.mark.timed  # the costs of lines are worked out within a budget of processor time
def test_the_lines_of_a_file_with_what_they_cost(client: FlaskClient) -> None:
    costs = answer(client, f"lines?{SAMPLE}&file=train.py", LinesAnswer).costs
    assert costs is not None
    source = sample().with_name("train.py").read_text().splitlines()
    hottest = source[costs.line[costs.host_ns.index(max(costs.host_ns))] - 1]
    assert hottest.strip() == "main()", "which leads to all others"
    assert costs.line == sorted(set(costs.line))
    assert max(costs.host_ns) <= costs.wall_ns
    assert set(costs.device_ns) == {0}, "a recording of a CPU"
    assert costs.left_out == []


def test_lines_of_the_same_recording_have_the_same_etag(client: FlaskClient) -> None:
    first = client.get(f"/api/lines?{SAMPLE}&file=train.py")
    again = client.get(f"/api/lines?{SAMPLE}&file=train.py", headers={"If-None-Match": first.headers["ETag"]})
    assert (first.status_code, again.status_code) == (200, 304)


@pytest.mark.timed  # the costs of lines are worked out within a budget of processor time
def test_files_with_their_costliest_lines(client: FlaskClient) -> None:
    found = answer(client, f"files?{SAMPLE}", FilesAnswer)
    assert [each.file for each in found.files].count("train.py") == 1
    for each in found.files:
        costs = answer(client, f"lines?{SAMPLE}&file={each.file}", LinesAnswer).costs
        assert costs is not None
        by_line = dict(zip(costs.line, zip(costs.total_ns, costs.host_ns, costs.device_ns, strict=True), strict=True))
        assert by_line[each.line] == (each.total_ns, each.host_ns, each.device_ns) == max(by_line.values())
        assert (found.wall_ns, found.steps, found.step_ns) == (costs.wall_ns, costs.steps, costs.step_ns)
    assert [each.total_ns for each in found.files] == sorted((each.total_ns for each in found.files), reverse=True)
    assert found.files[0].total_ns > 0.9 * found.step_ns


def test_files_that_only_the_costs_name_and_files_without_costs_are_left_out() -> None:
    left_out = [Frame("a.py", 3, "f", "definition", own_code=True)]
    lines = [
        LineCost("b.py", 7, 5, 1, 2, total_ns=3), LineCost("b.py", 9, 8, 0, 2, total_ns=1),
        LineCost("c.py", 1, 9, 0, 1),
    ]  # fmt: skip
    texts = {
        file: msgspec.Raw(msgspec.json.encode(each))
        for file, each in line_columns(LineCosts(lines, left_out), 100).items()
    }
    tables = msgspec.structs.replace(_no_tables(), lines=texts)
    assert files_answer(tables, {"a.py", "b.py"}) == FilesAnswer(100, [FileCost("b.py", 7, 5, 1, 3)], 1, 0)
    assert files_answer(_no_tables(), {"a.py"}) == FilesAnswer(0, [], 0, 0)


def _no_tables() -> Tables:
    empty = msgspec.Raw(b"[]")
    return Tables(
        operators={}, left_out={}, families=empty, kernels=empty, modules=empty, memory=empty, cpu=empty, flame=empty,
        roofline=empty, idle=empty, lines={}, missing={},
    )  # fmt: skip


def test_a_file_without_sources_has_no_costs(client: FlaskClient) -> None:
    assert answer(client, f"lines?{SMALL}&file=train.py", LinesAnswer) == LinesAnswer(file="train.py", costs=None)


def test_lines_of_a_file_that_the_recording_does_not_name(client: FlaskClient) -> None:
    response = client.get(f"/api/lines?{SAMPLE}&file=secret.py")
    assert response.status_code == 404
    assert "secret.py" in decode(response.data, ErrorAnswer).error.message


def test_functions_that_were_left_out_are_named_with_their_file() -> None:
    left_out = [Frame("a.py", line, name, "definition", own_code=True) for line, name in ((3, "f"), (9, "f"), (1, "g"))]
    columns = line_columns(LineCosts([LineCost("b.py", 7, 5, 0, 2)], left_out), 100)
    assert (columns["a.py"].line, columns["a.py"].left_out) == ([], ["f", "g"])
    assert (columns["b.py"].line, columns["b.py"].calls, columns["b.py"].left_out) == ([7], [2], [])


def test_a_gap_of_the_device_is_answered_by_time(client: FlaskClient) -> None:
    found = answer(client, f"idle?{SAMPLE}&at_ns=0", IdleAnswer)
    assert found.gap is None, "the job has no device"
    assert client.get(f"/api/idle?{SAMPLE}&at_ns=-1").status_code == 400
