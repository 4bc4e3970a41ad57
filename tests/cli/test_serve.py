"""`tb-tidy serve` as a process: without TensorBoard, ended by Ctrl-C."""

from __future__ import annotations

import ast
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from tests.support.logdirs import trace
from tests.support.recordings import ROOT
from tests.support.waiting import PATIENCE_S

WITHOUT_TENSORBOARD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
for package in ("tensorboard", "google.protobuf", "grpc"):
    sys.modules[package] = None  # so that importing it fails
from tb_tidy_plugin.cli.main import main
sys.argv[0] = "tb-tidy"
main()
"""
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\?token=\S+")


@contextmanager
def serving(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", WITHOUT_TENSORBOARD, "serve", "--no-open", "--no-cache", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_the_page_is_served_without_tensorboard_until_ctrl_c(tmp_path: Path) -> None:
    trace(tmp_path / "run" / "w.7.pt.trace.json")
    with serving(str(tmp_path)) as process:
        assert process.stdout is not None
        first, second = process.stdout.readline(), process.stdout.readline()
        (address,) = ADDRESS.findall(first)
        assert f"serves {tmp_path} at" in first
        assert second == "Ctrl-C ends it.\n"
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with browser.open(address, timeout=PATIENCE_S) as answer:
            assert b"location.replace" in answer.read()
        page = address.partition("?")[0]
        with browser.open(page, timeout=PATIENCE_S) as answer:
            assert b'<script type="module">' in answer.read()
        with browser.open(f"{page}index.js", timeout=PATIENCE_S) as answer:
            assert answer.headers["Content-Type"].startswith("text/javascript")
        with browser.open(f"{page}api/progress?run=run&worker=w&span=7", timeout=PATIENCE_S) as answer:
            assert b'"state":"done"' in answer.read().splitlines()[-1]
        process.send_signal(signal.SIGINT)
        _, complained = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, complained) == (130, "")


def test_a_path_that_is_not_there_is_said() -> None:
    with serving("nowhere") as process:
        said, complained = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said) == (2, "")
    assert complained.startswith("tb-tidy: `nowhere` does not exist.")


def test_the_docs_name_what_is_needed_without_tensorboard() -> None:
    [packages] = re.findall(r"^pip install (click .*)$", (ROOT / "docs/serve.md").read_text(), re.MULTILINE)
    [setup] = [
        each.value
        for each in ast.walk(ast.parse((ROOT / "setup.py").read_text()))
        if isinstance(each, ast.keyword) and each.arg == "install_requires"
    ]
    needed = {re.split("[<>=]", str(text))[0] for text in ast.literal_eval(setup) if ";" not in str(text)}
    assert set(packages.split()) == needed - {"tensorboard"}


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_a_crash_leaves_the_stack_of_each_thread_in_the_log(tmp_path: Path) -> None:
    with serving(str(tmp_path)) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGSEGV)
        _, complained = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in complained
    assert "most recent call first" in complained
