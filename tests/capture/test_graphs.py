"""Captured graphs are recorded and replays named, with a stub in place of the graph: no test here needs a device."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest

from tb_tidy_plugin.capture import graphs
from tb_tidy_plugin.side_files import GRAPH_SUFFIX
from tb_tidy_plugin.trace import graphs as reader
from tb_tidy_plugin.trace.kineto import read_trace

if TYPE_CHECKING:
    import torch

pytestmark = pytest.mark.torch


class Graph:
    """What `torch.cuda.CUDAGraph` offers, without a device."""

    replays = 0

    def capture_begin(self, pool: object = None, capture_error_mode: str = "global") -> None:
        if pool == "refused":
            raise RuntimeError("no capture")

    def capture_end(self) -> None:
        pass

    def replay(self) -> None:
        self.replays += 1


@pytest.fixture
def graph_class(monkeypatch: pytest.MonkeyPatch) -> type[Graph]:
    import torch

    stub = type("Graph", (Graph,), dict(Graph.__dict__))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", stub)
    for variable in graphs.FOLDERS:
        monkeypatch.delenv(variable, raising=False)
    return stub


@pytest.fixture
def model() -> torch.nn.Module:
    import torch

    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())


def captured(graph: Graph, model: torch.nn.Module) -> None:
    import torch

    graph.capture_begin(capture_error_mode="relaxed")
    model(torch.ones(2, 4))
    graph.capture_end()


def events(text: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    return found


def names(path: Path) -> set[str]:
    return {event["name"] for event in events(gzip.decompress(path.read_bytes())) if "name" in event}


def test_both_ends_mean_the_same_files() -> None:
    assert reader.REPLAYED.fullmatch(f"{graphs.REPLAY_MARK}host-12-0")
    assert reader.FILE.fullmatch(f"graph-host-12-0{GRAPH_SUFFIX}")


def test_each_capture_is_a_file_with_operators_modules_and_shapes(
    tmp_path: Path, graph_class: type[Graph], model: torch.nn.Module
) -> None:
    assert graphs.install(tmp_path)
    captured(graph_class(), model)
    captured(graph_class(), model)
    first, second = sorted(tmp_path.iterdir())
    assert reader.FILE.fullmatch(first.name)
    assert {"aten::addmm", "nn.Module: Linear_0"} <= names(first)
    [mark] = [name for name in names(second) if name.startswith(graphs.CAPTURE_MARK)]
    assert second.name == f"graph-{mark.removeprefix(graphs.CAPTURE_MARK)}{GRAPH_SUFFIX}"
    table = read_trace(first)
    assert any('"Input Dims"' in text for text in table.input_texts)


def test_replays_are_named_while_a_profiler_records_and_only_then(
    tmp_path: Path, graph_class: type[Graph], model: torch.nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    graphs.install(tmp_path)
    graph = graph_class()
    captured(graph, model)
    with torch.profiler.profile() as recorded:
        graph.replay()
    recorded.export_chrome_trace(str(tmp_path / "run.json"))
    [file] = tmp_path.glob(f"*{GRAPH_SUFFIX}")
    [replay] = [name for name in (each.get("name", "") for each in events((tmp_path / "run.json").read_bytes()))
                if name.startswith(graphs.REPLAY_MARK)]  # fmt: skip
    assert file.name == f"graph-{replay.removeprefix(graphs.REPLAY_MARK)}{GRAPH_SUFFIX}"

    def never(name: str) -> None:
        raise AssertionError(name)

    monkeypatch.setattr(torch.autograd.profiler, "record_function", never)
    graph.replay()
    assert graph.replays == 2


def test_a_replay_that_nobody_records_costs_one_flag(
    tmp_path: Path, graph_class: type[Graph], model: torch.nn.Module
) -> None:
    """Calls are noted, since a time would depend on the machine: ours, which reads one flag, and the replay."""
    graphs.install(tmp_path)
    graph = graph_class()
    captured(graph, model)
    called: list[str] = []

    def note(frame: FrameType, event: str, what: object) -> None:
        if event in {"call", "c_call"} and what is not sys.setprofile:
            called.append(frame.f_code.co_name if event == "call" else repr(what))

    sys.setprofile(note)
    try:
        graph.replay()
    finally:
        sys.setprofile(None)
    assert called == ["named_replay", "replay"]


def test_a_capture_inside_a_recording_is_named_there_and_not_recorded_again(
    tmp_path: Path, graph_class: type[Graph], model: torch.nn.Module
) -> None:
    import torch

    graphs.install(tmp_path)
    with torch.profiler.profile() as recorded:
        captured(graph_class(), model)
    assert not list(tmp_path.iterdir())
    assert any(event.name.startswith(graphs.CAPTURE_MARK) for event in recorded.events() or ())


def test_a_failure_of_ours_leaves_the_capture_as_it_is(
    tmp_path: Path, graph_class: type[Graph], model: torch.nn.Module, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    graphs.install(tmp_path / "file" / "below")
    graph = graph_class()
    captured(graph, model)
    graph.replay()
    assert graph.replays == 1
    assert "a graph's capture could not be captured" in caplog.text


def test_a_capture_that_fails_raises_its_own_error_and_ends_the_recording(
    tmp_path: Path, graph_class: type[Graph], model: torch.nn.Module
) -> None:
    import torch

    graphs.install(tmp_path)
    with pytest.raises(RuntimeError, match="no capture"):
        graph_class().capture_begin("refused")
    assert not torch.autograd.profiler._is_profiler_enabled  # noqa: SLF001 - what torch itself asks
    captured(graph_class(), model)


def test_nothing_is_installed_without_a_folder_and_nothing_twice(
    tmp_path: Path, graph_class: type[Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = graph_class.replay
    assert not graphs.install()
    assert graph_class.replay is before
    monkeypatch.setenv("VLLM_TORCH_PROFILER_DIR", str(tmp_path))
    assert graphs.install()
    once = graph_class.replay
    assert graphs.install()
    assert graph_class.replay is once is not before
