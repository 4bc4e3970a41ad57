"""Results in a cache that somebody else has written: what they say is shown at most, and never run."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from tb_tidy_plugin.analysis.answers import FIXES, RECIPES, TABLES_OF_REPORT
from tb_tidy_plugin.analysis.detailed_answers import COSTS, LINES, PLACES
from tb_tidy_plugin.analysis.pairs import made_again
from tb_tidy_plugin.benchmarks import runner
from tb_tidy_plugin.plugin import web
from tb_tidy_plugin.plugin.analysis import WORKER, AnalysisSettings
from tb_tidy_plugin.plugin.analysis_worker import AnalysisResult
from tb_tidy_plugin.plugin.benchmark_queue import BenchmarkQueue
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import BenchmarksAnswer, BenchmarkState
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import KEPT_BYTES, Profiles
from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.rulekit import Benchmark
from tb_tidy_plugin.rules import catalogue
from tb_tidy_plugin.system.decoders import decode, type_info
from tb_tidy_plugin.trace.cache import Cache
from tests.support.logdirs import trace
from tests.support.measurements import MEASURED_AT_ONCE
from tests.support.recordings import ROOT
from tests.support.user_rule import write_rule
from tests.support.waiting import until
from tests.support.workers import script

SAMPLE = "image_classifier_untidy"
OURS = {"X-TorchTidy": "1"}
NO_WORKER = script("raise SystemExit('no worker was needed')")
SHOWN = {"Measurement", "CodeChange"}
"""What has fields `before` and `after` to be shown: measured statements, and the example of a rule's page."""

Answer = dict[str, Any]


def profiles_of(folder: Path, command: tuple[str, ...], configuration: Path | None = None) -> Profiles:
    """Profiles as another TensorBoard has it, with the cache beside its logdir."""
    profiles = Profiles(
        [Logdir(str(folder / "logs"))],
        command,
        KEPT_BYTES,
        AnalysisSettings(configuration, (), Cache(folder / "cache")),
    )
    profiles.start()
    until(lambda: not profiles.scanning)
    return profiles


def key_of(profiles: Profiles) -> Key:
    (run,) = profiles.runs().runs
    return Key(run.run, run.profiles[0].worker, run.profiles[0].span)


def analysed(profiles: Profiles) -> str:
    """The state after the analysis, which this asks for."""
    *_, last = profiles.progress(key_of(profiles))
    return last.state


@pytest.fixture(autouse=True, scope="module")
def _nothing_measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No measurements of this user's: entries depend on them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("user")))
        yield


@pytest.fixture(scope="module")
def analysed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a logdir, and a cache that knows its only trace."""
    folder = tmp_path_factory.mktemp("analysed")
    shutil.copytree(ROOT / "sample_runs" / SAMPLE, folder / "logs" / SAMPLE)
    assert analysed(profiles_of(folder, WORKER)) == "done"
    until(lambda: any((folder / "cache").glob("result-*")))
    return folder


class Forgery:
    """The entry of that trace, to be written again with a checksum that fits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cache = Cache(folder / "cache")
        (entry,) = [entry for entry in self._cache.entries() if entry.kind == "result"]
        self._key = entry.path.stem.removeprefix("result-")
        self._before = bytes(self._cache.load("result", self._key) or b"")
        self.answer: Answer = json.loads(self._before)["answer"]

    def write(self) -> None:
        content = json.dumps(json.loads(self._before) | {"answer": self.answer}).encode()
        self._cache.keep("result", self._key, [content])

    def restore(self) -> None:
        self._cache.keep("result", self._key, [self._before])


@pytest.fixture
def forgery(analysed_once: Path) -> Iterator[Forgery]:
    forged = Forgery(analysed_once)
    yield forged
    forged.restore()


class Tab:
    """A TensorBoard that finds the entry, and its page."""

    def __init__(self, folder: Path, command: tuple[str, ...] = NO_WORKER, configuration: Path | None = None) -> None:
        self.profiles = profiles_of(folder, command, configuration)
        self._query = key_of(self.profiles)._asdict()
        self._client = web.create_app(self.profiles, (), MuteStore(()), BenchmarkQueue(None)).test_client()

    def findings(self) -> BenchmarksAnswer:
        answer = self._client.get("/api/benchmarks", query_string=self._query)
        assert answer.status_code == 200, answer.text
        return decode(answer.data, BenchmarksAnswer)

    def measured(self, finding: str) -> BenchmarkState:
        """The state after its benchmark."""
        asked = {**self._query, "finding": finding, "device": "cpu", "budget_s": 0.02}
        answer = self._client.post("/api/benchmarks", json=asked, headers=OURS)
        assert answer.status_code == 200, answer.text
        job = decode(answer.data, BenchmarkState).job
        lines = self._client.get(f"/api/benchmarks/progress?job={job}").data.splitlines()
        return decode(lines[-1], BenchmarkState)


def test_an_entry_with_statements_is_not_found(forgery: Forgery) -> None:
    """As entries once were."""
    statements = {"before": "boom()", "after": "boom()", "setup": "boom()"}
    (finding, *_) = forgery.answer["recipes"]
    pair = {"rule": "optimizer-single-tensor", "statements": statements, "kind": "cpu"}
    for key, value in {"pairs": {finding: pair}, "statements": {finding: statements}}.items():
        forgery.answer[key] = value
        forgery.write()
        assert analysed(profiles_of(forgery.folder, NO_WORKER)) == "error", "a worker was needed"
        del forgery.answer[key]


@pytest.mark.parametrize("fact", [[{"before": "boom()"}], [[["boom()"]]], [True], {"before": "boom()"}], ids=str)
def test_facts_that_no_evidence_holds_are_not_read(forgery: Forgery, fact: object) -> None:
    (recipe, *_) = forgery.answer["recipes"].values()
    recipe["facts"]["switches"] = fact
    forgery.write()
    assert analysed(profiles_of(forgery.folder, NO_WORKER)) == "error", "a worker was needed"


def test_text_in_facts_gets_to_no_process(forgery: Forgery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = tmp_path / "asked"
    noting = f"import sys\nopen({str(noted)!r}, 'a').write(sys.stdin.readline())"
    monkeypatch.setattr(runner, "BENCHMARK_COMMAND", (sys.executable, "-c", noting))
    for recipe in forgery.answer["recipes"].values():
        texts = [name for name, fact in recipe["facts"].items() if isinstance(fact, str)]
        recipe["facts"] |= dict.fromkeys(texts, "boom()\nboom()")
    forgery.write()
    tab = Tab(forgery.folder)
    findings = tab.findings().findings
    assert len(findings) > 2
    for finding, statements in findings.items():
        assert "boom" not in statements.setup + statements.before + statements.after
        tab.measured(finding)
    asked = noted.read_text().splitlines()
    assert (len(asked), "boom" in noted.read_text()) == (len(findings), False)


@pytest.mark.slow
@pytest.mark.torch
def test_python_in_a_fact_is_not_run(forgery: Forgery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmark itself goes on as the rule has it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (finding,) = [
        name for name, recipe in forgery.answer["recipes"].items() if recipe["rule"] == "optimizer-single-tensor"
    ]
    facts = forgery.answer["recipes"][finding]["facts"]
    mark = tmp_path / "mark"
    python = f"fused=True)\ntorch.builtins.exec('open({str(mark)!r}, \"w\")')#"
    facts |= {"setting": python, "switches": python, "optimizer": python, "elements": 8, "parameters": 2}
    forgery.write()
    state = Tab(forgery.folder).measured(finding)
    assert (state.state, state.measurement is not None) == ("done", True), state.problem
    assert not mark.exists()


BENCHMARK = """
    def benchmark(self, evidence):
        setup = f"import torch\\nx = torch.ones({{int(evidence.size)}}, device=device)"
        return Benchmark("result = x.{attribute}", "result = x", setup)
"""


@pytest.mark.parametrize(
    ("attribute", "refused"), [("sum()", None), ("svd()", "The statements are not run: they use `.svd`, which is not")]
)
def test_a_rule_of_ones_own_makes_its_statements_and_is_told_what_they_may_not_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attribute: str, refused: str | None
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setattr(runner, "BENCHMARK_COMMAND", MEASURED_AT_ONCE)
    trace(tmp_path / "logs" / "run" / "w.pt.trace.json")
    before = "    def evidence_of(self"
    made = BENCHMARK.format(attribute=attribute) + "\n" + before
    write_rule(tmp_path, "own_rule.py", (before, made), ("import Bytes", "import Benchmark, Bytes"), ("TT999", "MY1"))
    (tmp_path / "tb-tidy.toml").write_text(
        'rules = ["own_rule.py"]\nselect = ["MY"]\n[thresholds.own-rule]\nmin-share = 0'
    )
    tab = Tab(tmp_path, WORKER, tmp_path / "tb-tidy.toml")
    assert analysed(tab.profiles) == "done"
    ((finding, statements),) = tab.findings().findings.items()
    assert statements.setup == "import torch\nx = torch.ones(16, device=device)"
    state = tab.measured(finding)
    assert (state.state, state.problem and state.problem.message[: len(refused or "")]) == (
        ("done", None) if refused is None else ("failed", refused)
    )
    assert not (tmp_path / "cache").exists(), "nobody knows what such a rule looks at"


def texts_in(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of each text; all entries of a long list have one path."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from texts_in(below, (*path, key))
    elif isinstance(value, list):
        for at, below in enumerate(value):
            yield from texts_in(below, (*path, str(at) if len(value) < 3 else "*"))
    elif isinstance(value, str):
        yield path


def with_text(value: object, path: tuple[str, ...], text: str) -> object:
    """The same with another text at this path."""
    if not path:
        return text if isinstance(value, str) else value
    head, rest = path[0], path[1:]
    if isinstance(value, list):
        return [with_text(each, rest, text) if head in {"*", str(at)} else each for at, each in enumerate(value)]
    if isinstance(value, Mapping):
        return {key: with_text(each, rest, text) if key == head else each for key, each in value.items()}
    return value


def test_no_text_of_an_entry_gets_into_what_is_run(forgery: Forgery) -> None:
    """Wherever it stands: each text in turn is Python, and what the rules then make is looked at."""
    long = {"events", "summaries", "step_costs", "tables", "stacks", "looked_at", "source_files"}
    answer = {key: [] if key == "source_files" else value for key, value in forgery.answer.items()}
    paths = set(texts_in({key: value for key, value in answer.items() if key not in long}))
    assert {path[-2:] for path in paths} > {("facts", "optimizer"), ("facts", "algorithm"), ("*", "message")}
    seen = 0
    for path in sorted(paths):
        forged = with_text(answer, path, "boom()")
        try:
            result = decode(json.dumps(forged), AnalysisResult)
        except msgspec.ValidationError:
            continue
        pairs = made_again(result.recipes, catalogue())
        assert not [pair for pair in pairs.values() if "boom" in pair.setup + pair.before + pair.after], path
        seen += len(pairs)
    assert seen > 100


@pytest.mark.parametrize(
    "kept", [AnalysisResult, *(each.answer for each in (COSTS, LINES, PLACES, FIXES, RECIPES, TABLES_OF_REPORT))]
)
def test_nothing_that_is_kept_has_a_field_for_statements(kept: type) -> None:
    types = dict(types_in(type_info(kept)))
    assert len(types) > 2
    assert Benchmark.__name__ not in types
    with_statements = {name for name, fields in types.items() if fields & {"before", "after", "setup", "statements"}}
    assert with_statements <= SHOWN


def types_in(info: inspect.Type, seen: set[type] | None = None) -> Iterator[tuple[str, set[str]]]:
    """Name and fields of each type of struct that is reached from one."""
    seen = set() if seen is None else seen
    if isinstance(info, inspect.StructType | inspect.DataclassType):
        if info.cls in seen:
            return
        seen.add(info.cls)
        yield info.cls.__name__, {field.name for field in info.fields}
        for field in info.fields:
            yield from types_in(field.type, seen)
    for name in ("types", "item_types"):
        for below in getattr(info, name, ()):
            yield from types_in(below, seen)
    for name in ("item_type", "key_type", "value_type"):
        if isinstance(below := getattr(info, name, None), inspect.Type):
            yield from types_in(below, seen)
