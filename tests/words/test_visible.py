"""What goes into a log: names of files that somebody else chose, and what processes complained of."""

from __future__ import annotations

import ast
import logging
from pathlib import Path

import pytest

import tb_tidy_plugin
from tb_tidy_plugin.words.visible import Lines, log_called

HOSTILE = "run\x1b]0;owned\x07\x9b31m\r\nWARNING: forged\u202egpj.\u2066\udcff"
SHOWN = "run\ufffd]0;owned\ufffd\ufffd31m\ufffd\ufffdWARNING: forged\ufffdgpj.\ufffd\ufffd"
PACKAGE = Path(tb_tidy_plugin.__file__).parent
WITHOUT_OURS = PACKAGE / "plugin" / "loader.py"  # TensorBoard imports it unguarded; it names no file

log = log_called("tb_tidy_plugin.tests.visible")


def test_names_in_a_message_are_one_line_that_steers_nothing(caplog: pytest.LogCaptureFixture) -> None:
    log.warning("worker for %s ended with %d: %s", Path(HOSTILE), -9, OSError(HOSTILE))
    assert caplog.messages == [f"worker for {SHOWN} ended with -9: {SHOWN}"]


def test_lines_stay_lines_that_look_like_no_message(caplog: pytest.LogCaptureFixture) -> None:
    log.warning("it said: %s", Lines("one\nWARNING: \x1b[2Jtwo\r\nthree"))
    assert caplog.messages == ["it said: \n    one\n    WARNING: \ufffd[2Jtwo\n    three"]


def test_a_traceback_steers_nothing_either(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        log.exception("a rule failed")
    text = caplog.handler.format(caplog.records[0])
    assert "ValueError: run\ufffd]0;owned" in text
    first, *others = text.split("\n")
    assert all(line.isprintable() for line in (first, *others))
    assert all(line.startswith("    ") for line in others)


def test_a_log_has_the_filter_once() -> None:
    before = list(log.filters)
    assert log_called(log.name) is log
    assert log.filters == before
    assert logging.getLogger("tensorboard").filters == [], "that one is TensorBoard's own"


def test_every_log_of_the_package_is_such_a_one() -> None:
    asked = {
        path
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute | ast.Name) and "getLogger" in ast.unparse(node)
    }
    assert asked == {PACKAGE / "words" / "visible.py", WITHOUT_OURS}
