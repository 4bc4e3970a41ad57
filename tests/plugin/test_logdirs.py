"""--logdir and --logdir_spec, in the form TensorBoard itself reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tidy_plugin.plugin.logdirs import Logdir, parse_logdirs

HERE = str(Path.cwd())


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("/runs", [Logdir("/runs")]),
        ("a:/runs/a,b:/runs/b", [Logdir("/runs/a", "a"), Logdir("/runs/b", "b")]),
        (" a:/runs/a , ,/runs/b ", [Logdir("/runs/a", "a"), Logdir("/runs/b")]),
        ("a:relative", [Logdir(f"{HERE}/relative", "a")]),
        ("/odd:name", [Logdir("/odd:name")]),
        ("a:/odd:name", [Logdir("/odd:name", "a")]),
        (":/runs", [Logdir("/runs")]),
        ("s3://bucket/runs", [Logdir("s3://bucket/runs")]),
        ("a:s3://bucket/runs", [Logdir("s3://bucket/runs", "a")]),
        ("a:/runs,a:/runs", [Logdir("/runs", "a")]),
        ("/runs/../other/", [Logdir("/other")]),
        ("", []),
    ],
)
def test_logdir_spec(spec: str, expected: list[Logdir]) -> None:
    assert list(parse_logdirs("", spec)) == expected


def test_a_logdir_is_taken_whole_whatever_is_in_its_name() -> None:
    assert parse_logdirs("/runs/a:b,c", "ignored:/x") == (Logdir("/runs/a:b,c"),)


def test_a_home_folder_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert parse_logdirs("~/runs", "") == (Logdir("/home/someone/runs"),)
    assert parse_logdirs("", "~/runs") == (Logdir("/home/someone/runs"),)


@pytest.mark.parametrize("address", ["gs://bucket/x", "hdfs://host:9000/x", "https+x://y"])
def test_an_address_with_a_scheme_is_remote(address: str) -> None:
    [logdir] = parse_logdirs(address, "")
    assert logdir == Logdir(address)
    assert logdir.is_remote


def test_a_local_folder_is_not_remote() -> None:
    assert not Logdir("/runs/s3:/x").is_remote
