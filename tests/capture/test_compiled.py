"""What is noted of compiled code never reaches the compiler: a version of PyTorch may lack or change all of it."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tb_tidy_plugin.capture import compiled
from tb_tidy_plugin.capture.compiled import Launch, Region, compiled_code, explained_in_short, files_in, frames
from tb_tidy_plugin.system.private import HAS_OWNERS, NotPrivateError

pytestmark = pytest.mark.torch

STACK = """  File "/job/model.py", line 8, in forward
    h = self.gate(x)
  File "/job/layers.py", line 3, in gate
    return x * 2
"""


def dynamo(monkeypatch: pytest.MonkeyPatch, **content: object) -> Any:  # noqa: ANN401 - stands for a module
    """A module in the place of Dynamo's, which is already imported."""
    module: Any = ModuleType(compiled.DYNAMO)
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, compiled.DYNAMO, module)
    return module


class TestInstall:
    def test_what_is_missing_is_passed_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = dynamo(monkeypatch)
        compiled.note_compilations()
        assert not hasattr(module, "OutputGraph")
        dynamo(monkeypatch, OutputGraph=SimpleNamespace())
        compiled.note_compilations()

    def test_what_fails_is_logged_and_the_compiler_goes_on(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        class OutputGraph:
            """Has nothing of what is looked at."""

            def call_user_compiler(self, graph: str, *, name: str) -> str:
                return f"{graph} {name}"

        dynamo(monkeypatch, OutputGraph=OutputGraph)
        monkeypatch.setattr(compiled, "_compile_id", lambda: "0/0")
        compiled.note_compilations()
        with caplog.at_level(logging.WARNING):
            assert OutputGraph().call_user_compiler("graph", name="fn") == "graph fn"
        assert "its lines are unknown" in caplog.text

    def test_it_is_installed_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class OutputGraph:
            """With one function."""

            def call_user_compiler(self) -> int:
                raise KeyError("the compiler's own error")

        dynamo(monkeypatch, OutputGraph=OutputGraph)
        compiled.note_compilations()
        once = OutputGraph.call_user_compiler
        compiled.note_compilations()
        assert OutputGraph.call_user_compiler is once
        with pytest.raises(KeyError, match="the compiler's own error"):
            OutputGraph().call_user_compiler()


class TestTexts:
    def test_a_stack_is_read_by_its_frames(self) -> None:
        assert frames(STACK) == (("/job/model.py", 8, "forward"), ("/job/layers.py", 3, "gate"))
        assert frames("") == frames("no stack") == ()

    @pytest.mark.parametrize(
        ("reason", "short"),
        [
            ("Failed to trace\n  Explanation: Dynamo does not know\n  Hint: none", "Dynamo does not know"),
            ("0/0: tensor 'x' size mismatch\n0/1: another", "0/0: tensor 'x' size mismatch"),
            ("`f` in file `/opt/lib/torch/_compile.py` is skipped", "`f` in file `_compile.py` is skipped"),
            (r"in C:\Users\me\train.py", "in train.py"),
            ("x / y and a/b.py", "x / y and a/b.py"),
            ("  ", ""),
        ],
    )  # fmt: skip
    def test_a_reason_is_one_line_without_folders(self, reason: str, short: str) -> None:
        assert explained_in_short(reason) == short


class TestGraphsSkipped:
    """CUDA graphs that were asked for: Inductor says why not when it compiles, in its cache, or when a graph runs."""

    MUTATED = f"skipping cudagraphs due to mutated inputs (1 instances). Found from : \n {STACK}"

    @pytest.fixture
    def region(self, monkeypatch: pytest.MonkeyPatch) -> Region:
        region = Region("forward", {"mul": STACK}, {STACK: ("mul",)})
        monkeypatch.setattr(compiled, "_regions", {"0/0": region, "1/0": Region("other", {}, {})})
        return region

    def skips(self) -> list[dict[str, object]]:
        code = compiled_code(lambda path: path.removeprefix("/job/"))
        assert code is not None
        return list(code["skips"])

    def test_when_it_runs_by_the_line_in_the_message(self, monkeypatch: pytest.MonkeyPatch, region: Region) -> None:
        monkeypatch.setattr(compiled, "_compile_id", lambda: None)
        compiled._note_skip(self.MUTATED)  # noqa: SLF001
        compiled._note_skip("skipping cudagraphs due to something later")  # noqa: SLF001
        assert self.skips() == [
            {"id": "0/0", "reason": "mutated inputs (1 instances)", "file": "layers.py", "line": 3, "function": "gate"}
        ]
        assert files_in(compiled_code(lambda path: path) or {}) == {"/job/layers.py"}

    @pytest.mark.parametrize(
        ("message", "reason"),
        [
            ("skipping cudagraphs due to cpu device (arg0_1). Found from : \n /x", "cpu device (arg0_1)"),
            ("skipping cudagraphs due to skipping cudagraphs due to multiple devices: 2", "multiple devices: 2"),
            ("disabling cudagraphs for backward due to an annotation", "an annotation"),
            ("another message", "another message"),
        ],
    )  # fmt: skip
    def test_when_it_compiles(self, monkeypatch: pytest.MonkeyPatch, region: Region, message: str, reason: str) -> None:
        monkeypatch.setattr(compiled, "_compile_id", lambda: "0/0")
        compiled._note_skip(message)  # noqa: SLF001
        assert [(each["reason"], each["file"]) for each in self.skips()] == [(reason, "")]

    @pytest.mark.parametrize("asked", [True, False])
    def test_of_a_cached_graph_where_they_were_asked_for(
        self, monkeypatch: pytest.MonkeyPatch, region: Region, asked: bool
    ) -> None:
        config = SimpleNamespace(triton=SimpleNamespace(cudagraphs=asked))
        monkeypatch.setitem(sys.modules, "torch._inductor.config", config)
        monkeypatch.setattr(compiled, "_compile_id", lambda: "0/0")
        info = SimpleNamespace(cudagraph_fail_reasons=["mutated inputs", "non-Tensor inputs"])
        graph: Any = SimpleNamespace(_fx_graph_cache_key=None, cache_key=None, fx_kwargs={}, cudagraph_info=info)
        compiled._finish(graph)  # noqa: SLF001
        assert [each["reason"] for each in self.skips()] == ["mutated inputs, non-Tensor inputs"] * asked

    def test_the_function_that_logs_it_is_wrapped_wherever_it_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def log(message: str) -> str:
            return message

        one, another = (ModuleType(f"torch._inductor.{name}") for name in ("one", "another"))
        for module in (one, another):
            vars(module)["log"] = log
            monkeypatch.setitem(sys.modules, module.__name__, module)
        heard: list[str] = []
        compiled._wrap_everywhere(one, "log", heard.append)  # noqa: SLF001
        compiled._wrap_everywhere(one, "log", heard.append)  # noqa: SLF001
        compiled._wrap_everywhere(None, "log", heard.append)  # noqa: SLF001 - as where a version lacks the module
        assert [vars(module)["log"]("why") for module in (one, another)] == ["why", "why"]
        assert heard == ["why", "why"]


class TestNotes:
    def test_beside_the_cache_they_come_back(self, tmp_path: Path) -> None:
        path, launches = (
            tmp_path / "torchtidy" / "fkey.ccode.json",
            (Launch("cpp_fused_mul_0", (("mul", "mul_1"), ())),),
        )
        assert compiled._kept(path) is None  # noqa: SLF001 - the cache of a compiler that ran before
        compiled._keep(path, launches)  # noqa: SLF001
        assert compiled._kept(path) == launches  # noqa: SLF001
        path.write_text('{"version": 2, "launches": []}')
        assert compiled._kept(path) is None  # noqa: SLF001

    @pytest.mark.skipif(not HAS_OWNERS, reason="the system has no permissions of this kind")
    def test_what_others_may_have_written_is_not_read(self, tmp_path: Path) -> None:
        path = tmp_path / "fkey.ccode.json"
        compiled._keep(path, ())  # noqa: SLF001
        path.chmod(0o666)
        with pytest.raises(NotPrivateError):
            compiled._kept(path)  # noqa: SLF001
