"""Lines from Inductor's cache: those that can be checked, never as exact; else the function that was compiled."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import row_of
from tb_tidy_plugin.sources.cached_lines import with_cached_lines
from tb_tidy_plugin.sources.frames import Frame
from tb_tidy_plugin.sources.inductor_cache import SETTING, cached_graph, folder_of_cache, graph_state
from tb_tidy_plugin.sources.places import place_of
from tests.support.compiled import FORWARD_KEY, captured, compiled_step
from tests.support.inductor_texts import WHOLE, entry, stack

MODEL = ["", "", "", "", "", "", "def forward(x, w):", "    return gate(x @ w * 2)"]
SOURCES = {"model.py": MODEL, "layers.py": ["", "def gate(x):", "    y = x.sin()", "    return y"]}


def place(profile: Profile, name: str = "graph_3_cpp_fused_sin_0") -> Frame | None:
    return place_of(profile, row_of(profile, name))


def looked_up(cache: Path, sources: Mapping[str, list[str]] = SOURCES) -> Profile:
    return with_cached_lines(compiled_step(), sources.get, cache)


class Harmful:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.mkdir, (str(self.path),)


class TestLines:
    def test_are_shown_as_worked_out(self, tmp_path: Path) -> None:
        entry(tmp_path, FORWARD_KEY)
        profile = looked_up(tmp_path)
        assert place(profile, "aten::mm") == Frame(
            "model.py", 8, "forward", "aligned", own_code=True, compiled="forward"
        )
        assert place(profile) == Frame(
            "layers.py", 3, "gate", "aligned", own_code=True, compiled="forward", also=(("model.py", 8),)
        )

    def test_what_the_capture_noted_comes_first(self, tmp_path: Path) -> None:
        entry(tmp_path, FORWARD_KEY)
        noted = captured(compiled_step(), launches=[("extern_kernels.mm", [0]), ("cpp_fused_sin_0", [0])])
        found = place(with_cached_lines(noted, SOURCES.get, tmp_path))
        assert found is not None
        assert (found.file, found.precision) == ("model.py", "exact")

    def test_a_graph_from_before_the_capture_has_them_too(self, tmp_path: Path) -> None:
        entry(tmp_path, FORWARD_KEY)
        found = place(with_cached_lines(captured(compiled_step(), launches=None), SOURCES.get, tmp_path))
        assert found is not None
        assert (found.file, found.line, found.precision) == ("layers.py", 3, "aligned")


class TestOnlyTheFunction:
    FUNCTION = Frame("model.py", 7, "forward", "definition", own_code=True, compiled="forward")

    @pytest.mark.parametrize(
        "changed",
        [
            {"model.py": ["", *MODEL]},
            {"layers.py": ["", "def gate(x):", "    y = x.cos()"]},
            {"model.py": [*MODEL[:6], "def other(x, w):", MODEL[7]]},
            {"model.py": None},
            {"layers.py": None},
        ],
    )
    def test_where_the_sources_say_something_else(self, tmp_path: Path, changed: Mapping[str, list[str]]) -> None:
        entry(tmp_path, FORWARD_KEY)
        assert place(looked_up(tmp_path, {**SOURCES, **changed})) == self.FUNCTION

    @pytest.mark.parametrize(
        "stacks",
        [
            stack(("/job/model.py", 2, "forward", ""), ("/job/layers.py", 3, "gate", "y = x.sin()")),
            stack(("/job/other.py", 8, "forward", "return gate(x @ w * 2)")),
            "nothing",
        ],
    )
    def test_where_the_graph_is_of_another_function(self, tmp_path: Path, stacks: str) -> None:
        entry(tmp_path, FORWARD_KEY, stacks=stacks)
        assert place(looked_up(tmp_path)) == self.FUNCTION

    def test_where_there_is_no_cache(self, tmp_path: Path) -> None:
        profile = compiled_step()
        assert with_cached_lines(profile, SOURCES.get, tmp_path / "missing") is profile
        assert with_cached_lines(profile, SOURCES.get, None) is profile


class TestReading:
    def test_nothing_is_unpickled(self, tmp_path: Path) -> None:
        entry(tmp_path, FORWARD_KEY, content=[Harmful(tmp_path / "harm"), "source_code", "text of code"])
        assert cached_graph(tmp_path, FORWARD_KEY) is None
        assert not (tmp_path / "harm").exists()

    def test_a_broken_entry_is_none(self, tmp_path: Path) -> None:
        path = entry(tmp_path, FORWARD_KEY)
        content = path.read_bytes()
        for end in range(0, len(content), 97):
            path.write_bytes(content[:end])
            assert cached_graph(tmp_path, FORWARD_KEY) is None

    def test_of_several_entries_none_is_chosen(self, tmp_path: Path) -> None:
        path = entry(tmp_path, FORWARD_KEY)
        assert cached_graph(tmp_path, FORWARD_KEY) is not None
        path.with_name("other").write_bytes(path.read_bytes())
        assert cached_graph(tmp_path, FORWARD_KEY) is None

    @pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners here")
    @pytest.mark.parametrize("depth", range(5))
    def test_what_others_may_write_is_not_read(self, tmp_path: Path, depth: int) -> None:
        path = entry(tmp_path / "cache", FORWARD_KEY)
        (path, *path.parents)[depth].chmod(0o777)
        assert cached_graph(tmp_path / "cache", FORWARD_KEY) is None

    @pytest.mark.parametrize("key", ["../../etc", "", "f", "fab/../c", "FAB1", "f" * 200])
    def test_a_key_is_no_path(self, tmp_path: Path, key: str) -> None:
        assert cached_graph(tmp_path, key) is None
        assert graph_state(tmp_path, key) == ()

    def test_the_state_changes_with_the_entries(self, tmp_path: Path) -> None:
        before = graph_state(tmp_path, FORWARD_KEY)
        entry(tmp_path, FORWARD_KEY, stacks=WHOLE)
        assert before == () != graph_state(tmp_path, FORWARD_KEY)

    def test_the_folder_is_the_user_s_setting_or_inductor_s_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(SETTING, "/some/cache")
        assert folder_of_cache() == Path("/some/cache")
        monkeypatch.delenv(SETTING)
        monkeypatch.setenv("LOGNAME", "a:b")
        found = folder_of_cache()
        assert found is not None
        assert found.name == "torchinductor_a_b"
