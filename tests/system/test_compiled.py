"""What is compiled is used only where it is of the sources beside it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tb_tidy_plugin.system.compiled import EXTENSIONS, is_stale, is_usable
from tb_tidy_plugin.trace import scanned
from tb_tidy_plugin.trace.chunks import ChunkDecoder

PACKAGE = Path(__file__).resolve().parents[2] / "tb_tidy_plugin"
BUILT_AT = 1_000_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Holds `loops_for_tests`, a module in the place of a compiled one."""
    written(tmp_path / "loops_for_tests.py", BUILT_AT)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("loops_for_tests", None)


def written(path: Path, time: int, text: str = "") -> None:
    path.write_text(text)
    os.utime(path, (time, time))


@pytest.mark.parametrize("source", ["loops_for_tests.pyx", "_part.pxi"])
def test_older_than_a_source_it_is_left_aside(folder: Path, source: str) -> None:
    written(folder / source, BUILT_AT + 1)
    assert is_stale("loops_for_tests")
    assert not is_usable("loops_for_tests")


@pytest.mark.parametrize(("source", "time"), [("loops_for_tests.pyx", BUILT_AT), ("loops_for_tests.pyi", 2 * BUILT_AT)])
def test_younger_than_what_it_is_built_of_it_is_used(folder: Path, source: str, time: int) -> None:
    written(folder / source, time)
    assert is_usable("loops_for_tests")


def test_an_install_has_no_sources_and_is_used(folder: Path) -> None:
    assert is_usable("loops_for_tests")


def test_what_is_missing_or_cannot_be_loaded_is_not_used(folder: Path) -> None:
    written(folder / "for_another_python.py", BUILT_AT, "raise ImportError('undefined symbol')")
    assert not is_usable("for_another_python")
    assert not is_usable("no_such_loops")


def test_the_portable_decoder_serves_where_the_compiled_one_is_stale(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(folder / "loops_for_tests.pyx", BUILT_AT + 1)
    monkeypatch.setattr(scanned, "DECODER", "loops_for_tests")
    with scanned.fastest_decoder() as decoder:
        assert type(decoder) is ChunkDecoder


def test_all_that_is_compiled_is_known() -> None:
    sources = sorted(source.relative_to(PACKAGE.parent).with_suffix("") for source in PACKAGE.rglob("*.pyx"))
    assert sorted(EXTENSIONS) == [".".join(source.parts) for source in sources]
