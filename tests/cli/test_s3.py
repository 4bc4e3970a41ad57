"""Traces in a bucket of a real S3 server: on the command line and in TensorBoard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from tb_tidy_plugin.trace.remote import RemotePath
from tests.support.logdirs import trace
from tests.support.ranks import tb_tidy
from tests.support.served import needs_the_installed_plugin, tensorboard
from tests.support.stores import uploaded
from tests.support.waiting import until

SERVER = """
import sys, threading
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
RUNS = "s3://traces/runs"


@pytest.fixture(scope="module")
def s3() -> Iterator[None]:
    """A server of its own, which this process and those that it starts take for AWS."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        known = {"AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        before = dict(os.environ)
        os.environ.update(known | {"AWS_DEFAULT_REGION": "us-east-1"})
        fsspec.filesystem("s3").mkdir("traces")
        yield
        os.environ.clear()
        os.environ.update(before)
        server.communicate()


@pytest.fixture
def runs(s3: None, tmp_path: Path) -> Path:
    """The same runs on the disk and in the bucket."""
    trace(tmp_path / "one" / "w.5.pt.trace.json")
    trace(tmp_path / "two" / "w.5.pt.trace.json.gz", operators=4000)
    uploaded(tmp_path, RUNS)
    return tmp_path


def test_the_report_is_that_of_the_disk(runs: Path) -> None:
    on_disk, on_s3 = (tb_tidy("check", at, "--isolated", "--format", "json") for at in (runs, RUNS))
    assert on_s3.returncode == 0, on_s3.stderr
    assert json.loads(on_s3.stdout.replace(f"{RUNS}/", f"{runs}/")) == json.loads(on_disk.stdout)


def test_a_bucket_that_is_not_there(s3: None) -> None:
    done = tb_tidy("check", "s3://other/runs")
    assert done.returncode == 2
    assert done.stderr == "tb-tidy: `s3://other/runs` does not exist.\nCheck the address.\n"


def test_a_file_larger_than_what_is_fetched_at_once(runs: Path) -> None:
    content = os.urandom(20 << 20)
    fsspec.filesystem("s3").pipe_file("traces/large", content)
    with RemotePath("s3://traces/large").open() as stream:
        pieces = [stream.read(4 << 20) for _ in range(6)]
    assert [len(piece) for piece in pieces] == [4 << 20] * 5 + [0]
    assert b"".join(pieces) == content


def test_tensorboard_shows_the_bucket(runs: Path, tmp_path: Path) -> None:
    needs_the_installed_plugin()
    with tensorboard("--logdir", RUNS, folder=tmp_path) as served:
        assert until(served.runs) == ["one", "two"]
        answer = served.analysed("run=two&worker=w&span=5")
    assert [state["problem"] for state in answer["states"]] == [None]
    assert [profile["path"] for profile in answer["report"]["profiles"]] == [f"{RUNS}/two/w.5.pt.trace.json.gz"]
