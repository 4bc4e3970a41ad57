"""The plugin on stores: looking, what is known while one cannot be reached, mutes."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import MuteChange, Mutes
from tb_tidy_plugin.plugin.mutes import NAME, MutesError, MuteStore
from tb_tidy_plugin.plugin.scan import Catalog, Key, look
from tb_tidy_plugin.system.side_files import CAPTURE_SUFFIX
from tb_tidy_plugin.trace.remote import RemotePath
from tests.support.logdirs import trace
from tests.support.stores import uploaded

STORE = "memory://bucket/runs"
NOTHING = Mutes(findings=[], rules=[])
A_MUTE = MuteChange(mute=Mutes(findings=["a1"], rules=[]), unmute=NOTHING)


def looked(address: str = STORE) -> Catalog:
    return look([Logdir(address)])


def test_runs_workers_and_spans(tmp_path: Path) -> None:
    for name in ("a/w1.200.pt.trace.json", "a/w1.100.pt.trace.json.gz", "b/c/w.7.pt.trace.json", "a/notes.txt"):
        trace(tmp_path / name)
    uploaded(tmp_path, STORE)
    assert {key: found.span_index for key, found in looked().items()} == {
        ("a", "w1", "100"): 1,
        ("a", "w1", "200"): 2,
        ("b/c", "w", "7"): 1,
    }


def test_traces_by_their_content_are_asked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace(tmp_path / "job" / "rank_0" / "trace.json")
    trace(tmp_path / "job" / "rank_1" / "trace.json.gz")
    (tmp_path / "job" / "config.json").write_text("{}")
    uploaded(tmp_path, STORE)
    expected = [("job", "rank_0/trace", ""), ("job", "rank_1/trace", "")]
    assert list(looked()) == expected
    monkeypatch.setattr(RemotePath, "heads", None)
    assert list(looked()) == expected


def test_one_that_a_store_does_not_show_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace(tmp_path / "unseen" / "trace.json")
    uploaded(tmp_path, STORE)
    with monkeypatch.context() as patch:
        patch.setattr(RemotePath, "heads", lambda _folder, files, _size: [None] * len(files))
        assert looked() == {}
    assert [key.run for key in looked()] == ["unseen"]


def test_the_stamp_changes_with_the_file_and_what_lies_beside_it(tmp_path: Path) -> None:
    path = trace(tmp_path / "w.pt.trace.json")
    uploaded(tmp_path, STORE)
    stamps = [found.stamp for found in [*looked().values(), *looked().values()]]
    assert stamps[0] == stamps[1]
    trace(path, operators=4)
    uploaded(tmp_path, STORE)
    stamps += [found.stamp for found in looked().values()]
    fsspec.filesystem("memory").pipe_file(f"/bucket/runs/{path.name}{CAPTURE_SUFFIX}", b"{}")
    stamps += [found.stamp for found in looked().values()]
    assert len(set(stamps)) == 3


def test_a_store_that_cannot_be_reached_is_said() -> None:
    [(key, found)] = looked("unreachable://bucket/runs").items()
    assert key == Key("unreachable://bucket/runs", "", "")
    assert found.problem is not None
    assert found.problem.error.startswith("The folder cannot be listed: LookupError")
    assert "The server tries again" in found.problem.advice


def test_what_was_known_stays_while_a_store_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace(tmp_path / "run" / "w.pt.trace.json")
    uploaded(tmp_path, STORE)
    before = looked()

    def gone(*_arguments: object, **_others: object) -> None:
        raise TimeoutError("no answer")

    with monkeypatch.context() as network:
        network.setattr(type(fsspec.filesystem("memory")), "find", gone)
        assert look([Logdir(STORE)], last=before) == before
    assert looked() == before


def test_mutes_are_kept_on_the_store() -> None:
    store = MuteStore([Logdir(STORE)])
    assert store.answer().can_keep
    store.change(A_MUTE)
    again = MuteStore([Logdir(STORE)]).answer()
    assert (again.kept, again.path, again.mutes.findings) == (True, f"{STORE}/{NAME}", ["a1"])


def test_a_store_that_may_not_be_written_says_so() -> None:
    with pytest.raises(MutesError, match="Permission denied"):
        MuteStore([Logdir("guarded://bucket/runs")]).change(A_MUTE)
