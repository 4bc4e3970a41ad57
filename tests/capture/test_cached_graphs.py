"""Graphs that nobody noted have their lines on a machine without Inductor's cache, as worked out from their texts."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

import pytest

from tb_tidy_plugin.capture import cached_graphs as of_capture
from tb_tidy_plugin.capture import compiled
from tb_tidy_plugin.capture.cached_graphs import cached_graphs
from tb_tidy_plugin.capture.compiled import GeneratedGraph, Launch, Region, compiled_code, files_in
from tb_tidy_plugin.capture.own_files import OwnFiles
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import row_of
from tb_tidy_plugin.sources.cached_lines import with_cached_lines
from tb_tidy_plugin.sources.frames import Frame
from tb_tidy_plugin.sources.places import place_of
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.compiled_code import CompiledCode
from tests.support.compiled import FORWARD_KEY, compiled_step, with_compiled
from tests.support.inductor_texts import CODE, GRAPH, WHOLE

pytestmark = pytest.mark.torch

SOURCES = {
    "model.py": ["", "", "", "", "", "", "def forward(x, w):", "    return gate(x @ w * 2)"],
    "layers.py": ["", "def gate(x):", "    y = x.sin()", "    return y"],
}


class CompiledFxGraph:
    """Has what a generated graph in use has."""

    def __init__(self, key: str = FORWARD_KEY, code: str = CODE, graph: str = GRAPH, stacks: str = WHOLE) -> None:
        self._fx_graph_cache_key = key
        self.source_code, self.inductor_post_grad_graph_str = code, graph
        self.cache_linemap = [(1, None), (3, stacks), (9, stacks)]
        self.fx_kwargs = {"is_backward": False}


class Job(OwnFiles):
    """Has its files below `/job/`."""

    def name_of(self, path: str) -> str:
        return path.removeprefix("/job/")

    def path_of(self, name: str) -> str | None:
        return f"/job/{name}" if name in SOURCES else None


@pytest.fixture(autouse=True)
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The capture was imported after the code was compiled."""
    module = ModuleType(of_capture.OUTPUT)
    vars(module)["CompiledFxGraph"] = CompiledFxGraph
    monkeypatch.setitem(sys.modules, of_capture.OUTPUT, module)
    monkeypatch.setattr(compiled, "_regions", {})
    monkeypatch.setattr(compiled, "_came_late", True)
    monkeypatch.setattr(of_capture, "MOST_SECONDS", 60.0)  # a busy machine takes seconds to go through all objects


@pytest.fixture
def graph() -> CompiledFxGraph:
    return CompiledFxGraph()


def captured() -> list[dict[str, Any]]:
    return [dict(each) for each in cached_graphs(Job())]


class TestLines:
    def test_are_those_of_inductors_texts(self, graph: CompiledFxGraph) -> None:
        code = compiled_code(Job().name_of, captured())
        assert code is not None
        assert files_in(code) == {"model.py", "layers.py"}
        read = decode(json.dumps(code), CompiledCode)
        assert read.is_sound()
        profile = with_cached_lines(with_compiled(compiled_step(), read), SOURCES.get, None)
        assert self.place(profile, "aten::mm") == Frame(
            "model.py", 8, "forward", "aligned", own_code=True, compiled="forward"
        )
        assert self.place(profile, "graph_3_cpp_fused_sin_0") == Frame(
            "layers.py", 3, "gate", "aligned", own_code=True, compiled="forward", also=(("model.py", 8),)
        )
        moved = {**SOURCES, "model.py": ["", *SOURCES["model.py"]]}
        assert self.place(
            with_cached_lines(with_compiled(compiled_step(), read), moved.get, None), "aten::mm"
        ) == Frame("model.py", 7, "forward", "definition", own_code=True, compiled="forward")

    @staticmethod
    def place(profile: Profile, name: str) -> Frame | None:
        return place_of(profile, row_of(profile, name))

    def test_nothing_but_names_and_lines_is_kept(self, graph: CompiledFxGraph) -> None:
        (found,) = captured()
        assert found == {
            "key": FORWARD_KEY,
            "backward": False,
            "kernels": [["extern_kernels.mm", [0]], ["cpp_fused_sin_0", [1, 0]]],
            "stacks": found["stacks"],
            "lines": [
                ["model.py", 8, "forward", "return gate(x @ w * 2)"],
                ["layers.py", 3, "gate", "y = x.sin()"],
            ],
        }  # fmt: skip

    def test_lines_of_libraries_have_no_text(self) -> None:
        graph = CompiledFxGraph(graph=GRAPH.replace("/job/layers.py", "/job/torch/nn/f.py"))
        (found,) = captured()
        assert ["torch/nn/f.py", 3, "gate", ""] in found["lines"]
        del graph


class TestLeftOut:
    def test_graphs_after_the_time_limit(self, graph: CompiledFxGraph, monkeypatch: pytest.MonkeyPatch) -> None:
        assert len(captured()) == 1
        monkeypatch.setattr(of_capture, "MOST_SECONDS", 0.0)
        assert captured() == []

    @pytest.mark.parametrize(
        "broken",
        [
            {"key": None},
            {"code": ""},
            {"graph": ""},
            {"stacks": ""},
            {"graph": "def forward(self):"},
            {"code": CODE + "#" * of_capture.MOST_GRAPH_CHARACTERS},
            {"graph": GRAPH.replace("y = x.sin()", "y" * 5000)},
        ],
    )
    def test_what_a_version_lacks_or_what_is_too_large(self, broken: dict[str, str]) -> None:
        graph = CompiledFxGraph(**broken)
        assert captured() == []
        del graph

    def test_the_same_graph_again(self, graph: CompiledFxGraph) -> None:
        another = CompiledFxGraph()
        assert len(captured()) == 1
        del another

    @pytest.mark.parametrize(("launches", "count"), [((Launch("extern_kernels.mm", ()),), 0), (None, 1)])
    def test_what_was_noted(
        self, monkeypatch: pytest.MonkeyPatch, graph: CompiledFxGraph, launches: tuple[Launch, ...] | None, count: int
    ) -> None:
        region = Region("forward", {}, {}, [GeneratedGraph(FORWARD_KEY, False, launches)])
        monkeypatch.setattr(compiled, "_regions", {"0/0": region})
        assert len(captured()) == count

    def test_where_all_was_noted_no_object_is_looked_at(
        self, monkeypatch: pytest.MonkeyPatch, graph: CompiledFxGraph
    ) -> None:
        monkeypatch.setattr(compiled, "_came_late", False)
        assert captured() == []

    def test_in_a_torch_without_such_graphs(self, monkeypatch: pytest.MonkeyPatch, graph: CompiledFxGraph) -> None:
        monkeypatch.delitem(sys.modules, of_capture.OUTPUT)
        assert captured() == []
