"""`tb-tidy doctor`."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from tb_tidy_plugin import __version__
from tb_tidy_plugin.cli.doctor import doctor
from tb_tidy_plugin.trace.scanned import EXTENSION, is_compiled


def told() -> str:
    return CliRunner().invoke(doctor, catch_exceptions=False).output


def test_says_the_versions() -> None:
    text = told()
    assert f"tb-tidy {__version__}, Python {sys.version_info.major}.{sys.version_info.minor}" in text
    assert "numpy " in text


@pytest.mark.compiled
@pytest.mark.skipif(not is_compiled(), reason="the compiled decoder was not built")
def test_says_that_the_compiled_decoder_is_there() -> None:
    assert "The compiled decoder is there." in told()


def test_says_how_to_get_it_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, EXTENSION, None)  # as on a machine that had no compiler
    text = told()
    assert "The compiled decoder is missing: traces are read several times slower, and otherwise the same." in text
    assert "Install a C compiler" in text
