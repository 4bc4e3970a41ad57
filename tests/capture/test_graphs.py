"""Captured graphs are recorded and replays named, with a stub in place of the graph: no test here needs a device."""

from __future__ import annotations

import gzip
import json
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from tb_tidy_plugin.capture import graphs
from tb_tidy_plugin.system.side_files import GRAPH_SUFFIX
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


@dataclass
class ProfilerConfig:
    """The fields of `vllm.config.ProfilerConfig` that say where workers write."""

    profiler: str | None = None
    torch_profiler_dir: str = ""


@dataclass
class VllmConfig:
    profiler_config: ProfilerConfig


class Runner:
    """What captures graphs in a worker of vLLM, which has got its configuration from another process."""

    def __init__(self, config: VllmConfig) -> None:
        self.vllm_config: VllmConfig = pickle.loads(pickle.dumps(config))

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} runs the server's code")

    def capture_model(self, graph: Graph, model: torch.nn.Module) -> None:
        captured(graph, model)


class TestVllm:
    """Its plugins are called before a worker has a configuration; `--profiler-config` is in that alone since 0.16."""

    @pytest.fixture(autouse=True)
    def current(self, monkeypatch: pytest.MonkeyPatch) -> list[VllmConfig]:
        """The current configuration, as `set_current_vllm_config` sets it; none at first."""
        module, current = ModuleType("vllm.config"), list[VllmConfig]()
        vars(module)["get_current_vllm_config_or_none"] = lambda: current[0] if current else None
        monkeypatch.setitem(sys.modules, "vllm.config", module)
        return current

    def test_the_folder_is_that_of_the_configuration(
        self, tmp_path: Path, graph_class: type[Graph], model: torch.nn.Module
    ) -> None:
        assert graphs.install_in_server()
        assert graphs.install_in_server(), "vLLM calls plugins in each process that it starts, forks included"
        runner = Runner(VllmConfig(ProfilerConfig("torch", str(tmp_path / "runs"))))
        for _ in range(2):
            runner.capture_model(graph_class(), model)
        assert len([path for path in (tmp_path / "runs").iterdir() if reader.FILE.fullmatch(path.name)]) == 2

    def test_or_of_the_current_one(
        self, tmp_path: Path, graph_class: type[Graph], model: torch.nn.Module, current: list[VllmConfig]
    ) -> None:
        graphs.install_in_server()
        current.append(VllmConfig(ProfilerConfig("torch", str(tmp_path))))
        captured(graph_class(), model)
        assert len(list(tmp_path.iterdir())) == 1

    @pytest.mark.parametrize(
        "profiler",
        [
            ProfilerConfig(),
            ProfilerConfig("cuda", "/nowhere"),
            ProfilerConfig("proton"),
            ProfilerConfig("torch", "gs://bucket/runs"),
        ],
        ids=["none", "cuda", "proton", "store"],
    )
    def test_a_server_that_records_nothing_is_left_as_it_was(
        self, profiler: ProfilerConfig, graph_class: type[Graph], model: torch.nn.Module, tmp_path: Path
    ) -> None:
        before = dict(vars(graph_class))
        assert graphs.install_in_server()
        graph = graph_class()
        Runner(VllmConfig(profiler)).capture_model(graph, model)
        assert {name: vars(graph_class)[name] for name in ("capture_begin", "capture_end", "replay")} == {
            name: before[name] for name in ("capture_begin", "capture_end", "replay")
        }
        graph.replay()
        assert graph.replays == 1
        assert list(tmp_path.iterdir()) == []

    def test_what_somebody_has_wrapped_around_ours_stays(
        self, graph_class: type[Graph], model: torch.nn.Module, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        graphs.install_in_server()
        ours, seen = graph_class.replay, []

        def counted(self: Graph) -> None:
            seen.append(self)
            ours(self)

        monkeypatch.setattr(graph_class, "replay", counted)
        graph = graph_class()
        captured(graph, model)
        graph.replay()
        assert (len(seen), graph.replays) == (1, 1)

    def test_a_configuration_of_another_shape_is_said_and_breaks_nothing(
        self, graph_class: type[Graph], model: torch.nn.Module, monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:  # fmt: skip
        def fail() -> None:
            raise LookupError("another version")

        monkeypatch.setattr(sys.modules["vllm.config"], "get_current_vllm_config_or_none", fail)
        graphs.install_in_server()
        graph = graph_class()
        captured(graph, model)
        graph.replay()
        assert graph.replays == 1
        assert "the folder of the traces could not be captured, graphs stay unnamed: LookupError" in caplog.text

    def test_a_variable_counts_before_the_configuration(
        self, tmp_path: Path, graph_class: type[Graph], model: torch.nn.Module, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TORCHTIDY_GRAPHS", str(tmp_path / "mine"))
        graphs.install_in_server()
        Runner(VllmConfig(ProfilerConfig("torch", str(tmp_path / "runs")))).capture_model(graph_class(), model)
        assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_other_servers_need_a_variable(graph_class: type[Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "vllm.config", raising=False)
    before = graph_class.replay
    assert not graphs.install_in_server()
    assert graph_class.replay is before


def test_the_entry_points_of_both_servers_are_the_function() -> None:
    text = (Path(__file__).parents[2] / "setup.py").read_text(encoding="utf-8")
    for group in ("vllm.general_plugins", "sglang.srt.plugins"):
        assert f'"{group}": ["torchtidy_graphs = tb_tidy_plugin.capture.graphs:install_in_server"]' in text
    assert callable(graphs.install_in_server)
